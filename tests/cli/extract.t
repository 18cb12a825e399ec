#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 4, X1 to X13: extraction, into folders of every kind."""
import os
import re
import resource
import stat
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import FSCK, ROOT, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def extract(picture, *words, status=0, target=None, patterns=(), **more):
    target = target or fresh()
    return target, expect(fsck('--extract=' + target, *words, picture, **more), status, *patterns)


def content(*parts):
    with open(os.path.join(*parts), 'rb') as file:
        return file.read()


def write(data, *parts):
    with open(os.path.join(*parts), 'wb') as file:
        file.write(data)


def built(entries, **more):
    root = mkimg.Dir(entries, **more)
    return save(mkimg.build(root)), root


def user_owns(path):
    """An image that an ordinary user may read."""
    os.chmod(path, 0o644)
    return path


@test('a tree with one of everything, for every worker setting')
def _():
    picture, root = samples.plain()
    wanted = samples.picture(root)
    if not ROOT:
        wanted = tree.for_user(wanted, os.getuid(), os.getgid(), 0o022)
    for workers in tools.WORKERS:
        target, _ = extract(picture, '--workers=' + workers, umask=0o022)
        samples.same(root, target, wanted)


@test('X1: the target is not made before superblock and root are trusted')
def _():
    image = mkimg.Image.load(samples.plain()[0])
    image.put(image.root.at + 4, 'H', 0o100644)
    for data in (bytes(image.seal().data), b'\0' * 8192):
        target, _ = extract(save(data), status={4, 8})
        check(not os.path.lexists(target), 'target was made')


@test('X1: missing parents of the target are an error')
def _():
    parent = fresh()
    extract(samples.plain()[0], target=os.path.join(parent, 'x'), status=8)
    check(not os.path.lexists(parent), 'a parent was made')


@test('X1: an existing folder is used, empty or not, "." too')
def _():
    picture, root = samples.plain()
    folder = fresh('there', make=True)
    write(b'mine', folder, 'other')
    expect(fsck('--extract=.', picture, cwd=folder), 0)
    is_(content(folder, 'other'), b'mine', 'what was there')
    os.unlink(os.path.join(folder, 'other'))
    os.utime(folder, ns=(0, root.time))
    samples.same(root, folder, owner=ROOT, mode=ROOT)


@test('X1: --path of a file: the target is the file to make')
def _():
    target, _ = extract(samples.plain()[0], '--path=/one')
    is_(content(target), b'hello\n', 'file')
    is_(os.stat(target).st_mtime_ns, 1600000000123456789, 'time')


@test('X2: links planted in the target are not followed')
def _():
    picture, root = samples.plain()
    for words, status in (([], {8}), (['--overwrite'], {0})):
        outside, target = fresh('outside', make=True), fresh('inside', make=True)
        write(b'precious', outside, 'one')
        before = os.stat(outside)
        os.symlink(outside, os.path.join(target, 'dir'))
        os.symlink(os.path.join(outside, 'one'), os.path.join(target, 'one'))
        extract(picture, *words, target=target, status=status)
        is_(os.listdir(outside), ['one'], 'names outside')
        is_(content(outside, 'one'), b'precious', 'content outside')
        is_(os.stat(outside).st_mode, before.st_mode, 'mode outside')
        is_(os.stat(outside).st_mtime_ns, before.st_mtime_ns, 'time outside')
        if words and ROOT:
            samples.same(root, target)


@test('X2: an empty folder of the image over a link to a folder: mode and times stay outside')
def _():
    picture, _ = built({'dir': mkimg.Dir({}, mode=0)})
    outside, target = fresh('outside', make=True), fresh('inside', make=True)
    before = os.stat(outside)
    os.symlink(outside, os.path.join(target, 'dir'))
    extract(picture, target=target, status=8)
    after = os.stat(outside)
    is_((after.st_mode, after.st_mtime_ns), (before.st_mode, before.st_mtime_ns), 'outside')


@test('X2: the target itself may be reached through a link')
def _():
    folder = fresh('real', make=True)
    alias = fresh('alias')
    os.symlink(folder, alias)
    extract(samples.plain()[0], target=alias)
    check(os.path.exists(os.path.join(folder, 'one')), 'nothing behind the link')


@test('X3: without --overwrite what exists is an error for that entry, and stays')
def _():
    picture, root = samples.plain()
    target = fresh('there', make=True)
    write(b'mine', target, 'one')
    os.mkdir(os.path.join(target, 'dir'))
    extract(picture, target=target, status=8, patterns=[r'/?one\b.*(?i:exists)'])
    is_(content(target, 'one'), b'mine', 'the file that was there')
    os.unlink(os.path.join(target, 'one'))
    wanted = samples.picture(root)
    del wanted[b'./one']
    samples.same(root, target, wanted, owner=ROOT, mode=ROOT, times=False)


@test('X3: an existing folder gets the mode and time of the image at the end')
def _():
    picture, _ = samples.plain()
    target = fresh('there', make=True)
    os.mkdir(os.path.join(target, 'dir'), 0o700)
    extract(picture, target=target)
    info = os.stat(os.path.join(target, 'dir'))
    is_(stat.S_IMODE(info.st_mode), 0o750, 'mode')
    is_(info.st_mtime_ns, 1234567890987654321, 'time')


@test('X3: --overwrite replaces files, links, FIFOs; twice gives the same tree')
def _():
    picture, root = samples.plain()
    target = fresh('there', make=True)
    write(b'old', target, 'one')
    os.symlink('nowhere', os.path.join(target, 'big'))
    os.mkfifo(os.path.join(target, 'runs'))
    write(b'old', target, 'link')
    write(b'old', target, 'fifo')
    os.symlink('.', os.path.join(target, 'dir'))
    for _ in range(2):
        extract(picture, '--overwrite', target=target, timeout=10)
        samples.same(root, target, owner=ROOT, mode=ROOT)


@test('X3: --overwrite unlinks, it does not write into what has other names')
def _():
    picture, _ = samples.plain()
    target, other = fresh('there', make=True), fresh('other')
    write(b'mine', other)
    os.link(other, os.path.join(target, 'one'))
    extract(picture, '--overwrite', target=target)
    is_(content(other), b'mine', 'the other name')
    is_(content(target, 'one'), b'hello\n', 'the file')


@test('X3: a folder that is not empty in place of a file is an error, the rest is made')
def _():
    picture, _ = samples.plain()
    target = fresh('there', make=True)
    os.makedirs(os.path.join(target, 'one', 'below'))
    extract(picture, '--overwrite', target=target, status=8, patterns=[r'/?one\b'])
    check(os.path.isdir(os.path.join(target, 'one', 'below')), 'folder')
    is_(content(target, 'dir', 'in'), b'inside\n', 'the rest')


@test('X4: hard links stay links, across folders, and of every type')
def _():
    twice = mkimg.File(b'x' * 70000)
    link, fifo = mkimg.Link('t'), mkimg.Special(stat.S_IFIFO)
    picture, root = built({'a': twice, 'd': mkimg.Dir({'b': twice, 'l': link, 'f': fifo}),
                           'z': twice, 'l': link, 'f': fifo})
    for workers in tools.WORKERS:
        target, _ = extract(picture, '--workers=' + workers)
        samples.same(root, target, owner=ROOT)


@test('E5: hard links whose names lie far apart come out whole in little memory, in read-only folders too')
def _():
    files = [mkimg.File(b'%d' % n) for n in range(40000)]
    rows = {}
    for folder in ('a', 'b', 'c'):
        rows[folder] = mkimg.Dir({'%05d' % n: node for n, node in enumerate(files)}, mode=0o555,
                                 mtime=1700000000)
    picture, _ = built(rows)
    for words in (('--workers=1',), ('--workers=2',), ('--workers=2', '--overwrite')):
        for user in ({}, tools.as_user()) if ROOT else ({},):
            target, result = extract(picture, '--max-memory=6M', *words, **user)
            check('link' not in result.text, result)
            found = {}
            for folder in rows:
                where = os.path.join(target, folder)
                info = os.stat(where)
                is_(stat.S_IMODE(info.st_mode), 0o555, folder)
                is_(info.st_mtime, 1700000000, folder)
                with os.scandir(where) as names:
                    found[folder] = {e.name: e.inode() for e in names}
            is_(len(found['a']), 40000, 'names')
            check(found['a'] == found['b'] == found['c'], 'links are not what they were')
            is_(len(set(found['a'].values())), 40000, 'inodes')
            is_(content(target, 'b', '12345'), b'12345')
            is_(os.stat(os.path.join(target, 'c', '39999')).st_nlink, 3, 'links')


@test('X5: an ordinary user gets FIFOs and sockets; devices are skipped with a warning, status 0')
def _():
    picture, root = built({'c': mkimg.Special(stat.S_IFCHR, 1, 3),
                           'b': mkimg.Special(stat.S_IFBLK, 8, 1),
                           'f': mkimg.Special(stat.S_IFIFO), 's': mkimg.Special(stat.S_IFSOCK),
                           'z': mkimg.File(b'z')})
    user = tools.as_user()
    target, result = extract(user_owns(picture), patterns=[r'^<W> erofs: '], **user)
    is_(sorted(os.listdir(target)), ['f', 's', 'z'], 'names')
    samples.form_fault(result)
    extract(picture, '--strict', status=8, **user)


@test('X5: root makes devices')
def _():
    tools.need_root()
    picture, root = built({'c': mkimg.Special(stat.S_IFCHR, 5, 300, mode=0o666),
                           'b': mkimg.Special(stat.S_IFBLK, 259, 70000),
                           'w': mkimg.Special(stat.S_IFCHR, 0, 0)})
    target, _ = extract(picture)
    samples.same(root, target)


@test('X6: with --xattrs all attributes come out: capabilities, empty values, ACLs')
def _():
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('the scratch file system has no user attributes')
    picture, root = samples.xattrs()
    for workers in tools.WORKERS:
        target, result = extract(picture, '--xattrs', '--workers=' + workers)
        samples.same(root, target)
        check(not result.err, result)


@test('X6: without --xattrs, and with --no-xattrs behind it, none are set')
def _():
    picture, root = samples.xattrs()
    wanted = samples.picture(root)
    for entry in wanted.values():
        entry.xattrs = {}
    for words in ([], ['--xattrs', '--no-xattrs']):
        target, _ = extract(picture, *words)
        samples.same(root, target, wanted, owner=ROOT, mode=ROOT)


@test('X6: without privilege one warning for all trusted and capability attributes, status 0')
def _():
    if not tools.has_xattrs():
        raise Skip('the scratch file system has no user attributes')
    picture, root = samples.xattrs()
    user = tools.as_user()
    target, result = extract(user_owns(picture), '--xattrs', umask=0o022, **user)
    lines = [l for l in result.text.splitlines() if l.startswith('<W>')]
    check(1 <= len(lines) <= 2, 'warnings', result)
    got = tree.read(target)
    is_(got[b'./empty'].xattrs, {b'user.a': b'1', b'user.empty': b'', b'user.z': b'3'}, '/empty')
    is_(got[b'./locked'].xattrs, {b'user.ro': b'yes'}, '/locked, mode 0444')
    is_(got[b'./dir'].xattrs, {b'user.d': b'dir'}, '/dir')
    extract(picture, '--xattrs', '--strict', status=8, **user)


@test('X7: set-user-id is kept by root, dropped by others unless --preserve-perms')
def _():
    picture, _ = built({'su': mkimg.File(b'x', mode=0o6755, uid=0)})
    user = tools.as_user()
    mode = lambda t, n='su': stat.S_IMODE(os.stat(os.path.join(t, n)).st_mode)
    user_owns(picture)
    if ROOT:
        is_(oct(mode(extract(picture)[0])), '0o6755', 'root')
        is_(oct(mode(extract(picture, '--no-preserve-owner')[0])), '0o755', 'root, owner not kept')
        is_(oct(mode(extract(picture, '--no-preserve-owner', '--preserve-perms')[0])), '0o6755',
            'root, owner not kept, perms asked for')
    is_(oct(mode(extract(picture, umask=0o022, **user)[0])), '0o755', 'user')
    is_(oct(mode(extract(picture, '--preserve-perms', umask=0o077, **user)[0])), '0o6755',
        'user, perms asked for')


@test('modes: exact for root, less umask for others; --no-preserve-perms takes the umask for root')
def _():
    picture, root = built({'f': mkimg.File(b'x', mode=0o777), 'd': mkimg.Dir({}, mode=0o777)})
    user_owns(picture)
    user = tools.as_user()
    for umask in (0, 0o022, 0o077):
        def modes(*words, **more):
            target, _ = extract(picture, *words, umask=umask, **more)
            return {stat.S_IMODE(os.lstat(os.path.join(target, n)).st_mode) for n in 'fd'}
        is_(modes(**user), {0o777 & ~umask}, 'user, umask %o' % umask)
        is_(modes('--preserve-perms', **user), {0o777}, 'user, asked for, umask %o' % umask)
        if ROOT:
            is_(modes(), {0o777}, 'root, umask %o' % umask)
            is_(modes('--no-preserve-perms'), {0o777 & ~umask}, 'root, no perms, %o' % umask)


@test('owners: restored by root, one\'s own for others, --no-preserve-owner')
def _():
    tools.need_root()
    picture, root = built({'f': mkimg.File(b'x', uid=70000, gid=4294967294),
                           'l': mkimg.Link('f', uid=12, gid=34)}, uid=5, gid=6)
    target, _ = extract(picture)
    samples.same(root, target)
    target, _ = extract(picture, '--no-preserve-owner')
    is_({(e.uid, e.gid) for e in tree.read(target).values()}, {(0, 0)}, 'owners')


@test('times: nanoseconds, of links and folders too, before 1970 too')
def _():
    picture, root = built({'l': mkimg.Link('x', time=-1500000001), 'f': mkimg.File(b'', time=-1),
                           'd': mkimg.Dir({'x': mkimg.File(b'x')}, time=123456789)}, time=77)
    target, _ = extract(picture)
    samples.same(root, target, owner=ROOT)


@test('X8: holes of chunks are holes; size exact; first, middle, last, all')
def _():
    hole, data = mkimg.HOLE, b'D' * 65536
    picture, root = built({
        'first': mkimg.Chunked([hole, data], 4), 'middle': mkimg.Chunked([data, hole, data], 4),
        'last': mkimg.Chunked([data, hole], 4, size=131072 - 77),
        'all': mkimg.Chunked([hole] * 64, 4, size=64 * 65536 - 1)})
    wanted = {'first': 1, 'middle': 2, 'last': 1, 'all': 0}
    for workers in tools.WORKERS:
        target, _ = extract(picture, '--workers=' + workers)
        samples.same(root, target, owner=ROOT)
        for name, chunks in wanted.items():
            blocks = os.stat(os.path.join(target, name)).st_blocks * 512
            is_(blocks, chunks * 65536, 'bytes allocated of ' + name)


@test('X9: a damaged file leaves neither a short file nor a temporary name')
def _():
    picture, root = samples.damaged(('f05', 'f11'))
    for workers in tools.WORKERS:
        target, _ = extract(picture, '--workers=' + workers, status=4)
        wanted = samples.picture(root)
        del wanted[b'./f05'], wanted[b'./f11']
        samples.same(root, target, wanted, owner=ROOT)


@test('X9: a damaged file does not destroy the old one before it knows (no --overwrite: never)')
def _():
    picture, _ = samples.damaged()
    target = fresh('there', make=True)
    write(b'old', target, 'f05')
    extract(picture, target=target, status={4, 8, 12})
    is_(content(target, 'f05'), b'old', 'the old file')


@test('X10: the first error of each file is reported, the others go on')
def _():
    picture, _ = samples.damaged(('f02', 'f05', 'f19'))
    for workers in tools.WORKERS:
        _, result = extract(picture, '--workers=' + workers, status=4)
        named = re.findall(r'/(f\d\d) \(nid', result.text)
        is_(named, ['f02', 'f05', 'f19'], 'files named')


@test('X10: --fail-fast stops at the first error')
def _():
    picture, _ = samples.damaged(('f02', 'f19'))
    _, result = extract(picture, '--fail-fast', '--workers=1', status=4)
    named = re.findall(r'/(f\d\d) \(nid', result.text)
    is_(len(named), 1, 'files named')


@test('X11: two entries of one name: an error, never a silent overwrite')
def _():
    builder = mkimg.Builder(mkimg.Dir({'aa': mkimg.File(b'first\n'),
                                       'ab': mkimg.File(b'second\n')}))
    image = mkimg.Image(builder.build())
    at = image.root.entries()[b'ab'][3]
    image.data[at:at + 2] = b'aa'
    path = save(bytes(image.seal().data))
    for words in ([], ['--overwrite']):
        target, _ = extract(path, *words, status={4, 12}, patterns=[r'aa'])
        if os.path.exists(os.path.join(target, 'aa')):
            is_(content(target, 'aa'), b'first\n', 'the first one')


@test('X12: same tree and same report for every worker setting, many files')
def _():
    root = mkimg.Dir({'d%02d' % d: mkimg.Dir({
        'f%03d' % n: mkimg.Runs([(n % 251 + 1, 2 + n % 7)]) if n % 3 else mkimg.File(b'%d' % n)
        for n in range(60)}) for d in range(20)})
    picture = mkimg.Image(mkimg.Builder(root).build())
    for folder, name in (('d03', 'f001'), ('d03', 'f002'), ('d17', 'f058'), ('d00', 'f010')):
        at = root.entries[folder].entries[name].pclusters[0]
        picture.data[at:at + 4096] = b'\xff' * 4096
    path = save(bytes(picture.data))
    texts, trees = set(), []
    target = fresh()
    for workers in tools.WORKERS + ['3', '8']:
        _, result = extract(path, '--workers=' + workers, target=target, status=4)
        texts.add(result.text)
        trees.append(tree.read(target))
        tree.remove(target)
    is_(len(texts), 1, 'reports: %s' % sorted(texts))
    named = re.findall(r'/(d\d\d/f\d\d\d) \(nid', texts.pop())
    is_(named, ['d00/f010', 'd03/f001', 'd03/f002', 'd17/f058'], 'order of the report')
    for other in trees[1:]:
        is_(tree.compare(trees[0], other), [], 'trees')


@test('X13: an ordinary user with --preserve: chown fails, a warning, status 0')
def _():
    picture, root = built({'f': mkimg.File(b'x', uid=1, gid=1)})
    user = tools.as_user()
    target, result = extract(user_owns(picture), '--preserve', patterns=[r'^<W> erofs: '], **user)
    is_(content(target, 'f'), b'x', 'file')


@test('no space: the file is named, no short file, the rest is made, status 8')
def _():
    cases = {'plain': mkimg.File(os.urandom(1000000), inline=False),
             'compressed': mkimg.Runs([(65, 250)])}
    for name, node in cases.items():
        picture, root = built({'large': node, 'small': mkimg.File(b'fits\n')})
        for workers in tools.WORKERS:
            with tools.tmpfs('900k') as where:
                target, result = extract(picture, '--workers=' + workers, status=8,
                                         target=os.path.join(where, 'x'),
                                         patterns=[r'large.*(?i:no space)'])
                is_(os.listdir(target), ['small'], '%s, workers=%s' % (name, workers))


@test('no space for names: what could not be made is named, status 8')
def _():
    picture, _ = built({'f%03d' % n: mkimg.File(b'x') for n in range(200)})
    with tools.Mount('-t', 'tmpfs', '-o', 'nr_inodes=50', 'tmpfs') as where:
        target, result = extract(picture, status=8, target=os.path.join(where, 'x'),
                                 patterns=[r'(?i)no space'])
        for name in os.listdir(target):
            is_(content(target, name), b'x', name)


@test('R24: a file size limit is EFBIG for that file, not a death by SIGXFSZ')
def _():
    picture, root = built({'large': mkimg.File(os.urandom(400000)), 'small': mkimg.File(b's')})
    target, _ = extract(picture, status=8, limits=[(resource.RLIMIT_FSIZE, 100000)],
                        patterns=[r'large.*(?i:file too large)'])
    is_(os.listdir(target), ['small'], 'files')


@test('few descriptors: a deep and wide tree comes out with 64 of them')
def _():
    node = mkimg.Dir({'end': mkimg.File(b'end')})
    for n in range(300):
        node = mkimg.Dir({'d': node, 'f': mkimg.Runs([(n % 200 + 1, 2)])})
    picture = save(mkimg.build(node))
    for workers in tools.WORKERS:
        target, _ = extract(picture, '--workers=' + workers,
                            limits=[(resource.RLIMIT_NOFILE, 64)])
        samples.same(node, target, owner=ROOT)
        tree.remove(target)


main()
