#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 4, X1 to X13: extraction by both tools, into folders of every kind."""
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
from entrance import both  # noqa: E402
from tap import Skip, check, is_, main  # noqa: E402
from tools import FSCK, ROOT, expect, fresh, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def extract(tool, picture, *words, status=0, dump=None, target=None, patterns=(), **more):
    """status: of fsck.erofs; dump: of dump.erofs where it is not what tool.status() makes of that."""
    target = target or fresh()
    result = tool.run('--extract=' + target, *words, picture, **more)
    return target, expect(result, tool.status(status, dump), *patterns)


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


@both('a tree with one of everything, for every worker setting')
def _(tool):
    picture, root = samples.plain()
    wanted = samples.picture(root)
    if not ROOT:
        wanted = tree.for_user(wanted, os.getuid(), os.getgid(), 0o022)
    for workers in tools.WORKERS:
        target, _ = extract(tool, picture, '--workers=' + workers, umask=0o022)
        samples.same(root, target, wanted)


@both('X1: the target is not made before superblock and root are trusted')
def _(tool):
    image = mkimg.Image.load(samples.plain()[0])
    image.put(image.root.at + 4, 'H', 0o100644)
    for data in (bytes(image.seal().data), b'\0' * 8192):
        target, _ = extract(tool, save(data), status={4, 8})
        check(not os.path.lexists(target), 'target was made')


@both('X1: missing parents of the target are an error')
def _(tool):
    parent = fresh()
    extract(tool, samples.plain()[0], target=os.path.join(parent, 'x'), status=8, dump=2)
    check(not os.path.lexists(parent), 'a parent was made')


@both('X1: an existing folder is used, empty or not, "." too')
def _(tool):
    picture, root = samples.plain()
    folder = fresh('there', make=True)
    write(b'mine', folder, 'other')
    expect(tool.run('--extract=.', picture, cwd=folder), 0)
    is_(content(folder, 'other'), b'mine', 'what was there')
    os.unlink(os.path.join(folder, 'other'))
    os.utime(folder, ns=(0, root.time))
    samples.same(root, folder, owner=ROOT, mode=ROOT)


@both('X1: --path of a file: the target is the file to make')
def _(tool):
    target, _ = extract(tool, samples.plain()[0], '--path=/one')
    is_(content(target), b'hello\n', 'file')
    is_(os.stat(target).st_mtime_ns, 1600000000123456789, 'time')


@both('X2: links planted in the target are not followed')
def _(tool):
    picture, root = samples.plain()
    for words, status in (([], {8}), (['--overwrite'], {0})):
        outside, target = fresh('outside', make=True), fresh('inside', make=True)
        write(b'precious', outside, 'one')
        before = os.stat(outside)
        os.symlink(outside, os.path.join(target, 'dir'))
        os.symlink(os.path.join(outside, 'one'), os.path.join(target, 'one'))
        extract(tool, picture, *words, target=target, status=status)
        is_(os.listdir(outside), ['one'], 'names outside')
        is_(content(outside, 'one'), b'precious', 'content outside')
        is_(os.stat(outside).st_mode, before.st_mode, 'mode outside')
        is_(os.stat(outside).st_mtime_ns, before.st_mtime_ns, 'time outside')
        if words and ROOT:
            samples.same(root, target)


@both('X2: an empty folder of the image over a link to a folder: mode and times stay outside')
def _(tool):
    picture, _ = built({'dir': mkimg.Dir({}, mode=0)})
    outside, target = fresh('outside', make=True), fresh('inside', make=True)
    before = os.stat(outside)
    os.symlink(outside, os.path.join(target, 'dir'))
    extract(tool, picture, target=target, status=8)
    after = os.stat(outside)
    is_((after.st_mode, after.st_mtime_ns), (before.st_mode, before.st_mtime_ns), 'outside')


@both('X2: the target itself may be reached through a link')
def _(tool):
    folder = fresh('real', make=True)
    alias = fresh('alias')
    os.symlink(folder, alias)
    extract(tool, samples.plain()[0], target=alias)
    check(os.path.exists(os.path.join(folder, 'one')), 'nothing behind the link')


@both('X3: without --overwrite what exists is an error for that entry, and stays')
def _(tool):
    picture, root = samples.plain()
    target = fresh('there', make=True)
    write(b'mine', target, 'one')
    os.mkdir(os.path.join(target, 'dir'))
    extract(tool, picture, target=target, status=8, patterns=[r'/?one\b.*(?i:exists)'])
    is_(content(target, 'one'), b'mine', 'the file that was there')
    os.unlink(os.path.join(target, 'one'))
    wanted = samples.picture(root)
    del wanted[b'./one']
    samples.same(root, target, wanted, owner=ROOT, mode=ROOT, times=False)


@both('X3: an existing folder gets the mode and time of the image at the end')
def _(tool):
    picture, _ = samples.plain()
    target = fresh('there', make=True)
    os.mkdir(os.path.join(target, 'dir'), 0o700)
    extract(tool, picture, target=target)
    info = os.stat(os.path.join(target, 'dir'))
    is_(stat.S_IMODE(info.st_mode), 0o750, 'mode')
    is_(info.st_mtime_ns, 1234567890987654321, 'time')


@both('X3: --overwrite replaces files, links, FIFOs; twice gives the same tree')
def _(tool):
    picture, root = samples.plain()
    target = fresh('there', make=True)
    write(b'old', target, 'one')
    os.symlink('nowhere', os.path.join(target, 'big'))
    os.mkfifo(os.path.join(target, 'runs'))
    write(b'old', target, 'link')
    write(b'old', target, 'fifo')
    os.symlink('.', os.path.join(target, 'dir'))
    for _ in range(2):
        extract(tool, picture, '--overwrite', target=target, timeout=10)
        samples.same(root, target, owner=ROOT, mode=ROOT)


@both('X3: --overwrite unlinks, it does not write into what has other names')
def _(tool):
    picture, _ = samples.plain()
    target, other = fresh('there', make=True), fresh('other')
    write(b'mine', other)
    os.link(other, os.path.join(target, 'one'))
    extract(tool, picture, '--overwrite', target=target)
    is_(content(other), b'mine', 'the other name')
    is_(content(target, 'one'), b'hello\n', 'the file')


@both('X3: a folder that is not empty in place of a file is an error, the rest is made')
def _(tool):
    picture, _ = samples.plain()
    target = fresh('there', make=True)
    os.makedirs(os.path.join(target, 'one', 'below'))
    extract(tool, picture, '--overwrite', target=target, status=8, patterns=[r'/?one\b'])
    check(os.path.isdir(os.path.join(target, 'one', 'below')), 'folder')
    is_(content(target, 'dir', 'in'), b'inside\n', 'the rest')


@both('X4: hard links stay links, across folders, and of every type')
def _(tool):
    twice = mkimg.File(b'x' * 70000)
    link, fifo = mkimg.Link('t'), mkimg.Special(stat.S_IFIFO)
    picture, root = built({'a': twice, 'd': mkimg.Dir({'b': twice, 'l': link, 'f': fifo}),
                           'z': twice, 'l': link, 'f': fifo})
    for workers in tools.WORKERS:
        target, _ = extract(tool, picture, '--workers=' + workers)
        samples.same(root, target, owner=ROOT)


@both('E5: hard links whose names lie far apart come out whole in little memory, in read-only folders too')
def _(tool):
    files = [mkimg.File(b'%d' % n) for n in range(40000)]
    rows = {}
    for folder in ('a', 'b', 'c'):
        rows[folder] = mkimg.Dir({'%05d' % n: node for n, node in enumerate(files)}, mode=0o555,
                                 mtime=1700000000)
    picture, _ = built(rows)
    for words in (('--workers=1',), ('--workers=2',), ('--workers=2', '--overwrite')):
        for user in ({}, tools.as_user()) if ROOT else ({},):
            target, result = extract(tool, picture, '--max-memory=6M', *words, **user)
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


@both('X5: an ordinary user gets FIFOs and sockets; devices are skipped with a warning, status 0')
def _(tool):
    picture, root = built({'c': mkimg.Special(stat.S_IFCHR, 1, 3),
                           'b': mkimg.Special(stat.S_IFBLK, 8, 1),
                           'f': mkimg.Special(stat.S_IFIFO), 's': mkimg.Special(stat.S_IFSOCK),
                           'z': mkimg.File(b'z')})
    user = tools.as_user()
    target, result = extract(tool, user_owns(picture), patterns=[r'^<W> erofs: '], **user)
    is_(sorted(os.listdir(target)), ['f', 's', 'z'], 'names')
    tool.form_fault(result)
    extract(tool, picture, '--strict', status=8, **user)


@both('X5: root makes devices')
def _(tool):
    tools.need_root()
    picture, root = built({'c': mkimg.Special(stat.S_IFCHR, 5, 300, mode=0o666),
                           'b': mkimg.Special(stat.S_IFBLK, 259, 70000),
                           'w': mkimg.Special(stat.S_IFCHR, 0, 0)})
    target, _ = extract(tool, picture)
    samples.same(root, target)


@both('X6: with --xattrs all attributes come out: capabilities, empty values, ACLs')
def _(tool):
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('the scratch file system has no user attributes')
    picture, root = samples.xattrs()
    for workers in tools.WORKERS:
        target, result = extract(tool, picture, '--xattrs', '--workers=' + workers)
        samples.same(root, target)
        check(not result.err, result)


@both('X6: without --xattrs, and with --no-xattrs behind it, none are set')
def _(tool):
    picture, root = samples.xattrs()
    wanted = samples.picture(root)
    for entry in wanted.values():
        entry.xattrs = {}
    for words in ([], ['--xattrs', '--no-xattrs']):
        target, _ = extract(tool, picture, *words)
        samples.same(root, target, wanted, owner=ROOT, mode=ROOT)


@both('X6: without privilege one warning for all trusted and capability attributes, status 0')
def _(tool):
    if not tools.has_xattrs():
        raise Skip('the scratch file system has no user attributes')
    picture, root = samples.xattrs()
    user = tools.as_user()
    target, result = extract(tool, user_owns(picture), '--xattrs', umask=0o022, **user)
    lines = [l for l in result.text.splitlines() if l.startswith('<W>')]
    check(1 <= len(lines) <= 2, 'warnings', result)
    got = tree.read(target)
    is_(got[b'./empty'].xattrs, {b'user.a': b'1', b'user.empty': b'', b'user.z': b'3'}, '/empty')
    is_(got[b'./locked'].xattrs, {b'user.ro': b'yes'}, '/locked, mode 0444')
    is_(got[b'./dir'].xattrs, {b'user.d': b'dir'}, '/dir')
    extract(tool, picture, '--xattrs', '--strict', status=8, **user)


@both('X7: set-user-id is kept by root, dropped by others unless --preserve-perms')
def _(tool):
    picture, _ = built({'su': mkimg.File(b'x', mode=0o6755, uid=0)})
    user = tools.as_user()
    mode = lambda t, n='su': stat.S_IMODE(os.stat(os.path.join(t, n)).st_mode)
    user_owns(picture)
    if ROOT:
        is_(oct(mode(extract(tool, picture)[0])), '0o6755', 'root')
        is_(oct(mode(extract(tool, picture, '--no-preserve-owner')[0])), '0o755', 'root, owner not kept')
        is_(oct(mode(extract(tool, picture, '--no-preserve-owner', '--preserve-perms')[0])), '0o6755',
            'root, owner not kept, perms asked for')
    is_(oct(mode(extract(tool, picture, umask=0o022, **user)[0])), '0o755', 'user')
    is_(oct(mode(extract(tool, picture, '--preserve-perms', umask=0o077, **user)[0])), '0o6755',
        'user, perms asked for')


@both('modes: exact for root, less umask for others; --no-preserve-perms takes the umask for root')
def _(tool):
    picture, root = built({'f': mkimg.File(b'x', mode=0o777), 'd': mkimg.Dir({}, mode=0o777)})
    user_owns(picture)
    user = tools.as_user()
    for umask in (0, 0o022, 0o077):
        def modes(*words, **more):
            target, _ = extract(tool, picture, *words, umask=umask, **more)
            return {stat.S_IMODE(os.lstat(os.path.join(target, n)).st_mode) for n in 'fd'}
        is_(modes(**user), {0o777 & ~umask}, 'user, umask %o' % umask)
        is_(modes('--preserve-perms', **user), {0o777}, 'user, asked for, umask %o' % umask)
        if ROOT:
            is_(modes(), {0o777}, 'root, umask %o' % umask)
            is_(modes('--no-preserve-perms'), {0o777 & ~umask}, 'root, no perms, %o' % umask)


@both('owners: restored by root, one\'s own for others, --no-preserve-owner')
def _(tool):
    tools.need_root()
    picture, root = built({'f': mkimg.File(b'x', uid=70000, gid=4294967294),
                           'l': mkimg.Link('f', uid=12, gid=34)}, uid=5, gid=6)
    target, _ = extract(tool, picture)
    samples.same(root, target)
    target, _ = extract(tool, picture, '--no-preserve-owner')
    is_({(e.uid, e.gid) for e in tree.read(target).values()}, {(0, 0)}, 'owners')


@both('times: nanoseconds, of links and folders too, before 1970 too')
def _(tool):
    picture, root = built({'l': mkimg.Link('x', time=-1500000001), 'f': mkimg.File(b'', time=-1),
                           'd': mkimg.Dir({'x': mkimg.File(b'x')}, time=123456789)}, time=77)
    target, _ = extract(tool, picture)
    samples.same(root, target, owner=ROOT)


@both('X8: holes of chunks are holes; size exact; first, middle, last, all')
def _(tool):
    hole, data = mkimg.HOLE, b'D' * 65536
    picture, root = built({
        'first': mkimg.Chunked([hole, data], 4), 'middle': mkimg.Chunked([data, hole, data], 4),
        'last': mkimg.Chunked([data, hole], 4, size=131072 - 77),
        'all': mkimg.Chunked([hole] * 64, 4, size=64 * 65536 - 1)})
    wanted = {'first': 1, 'middle': 2, 'last': 1, 'all': 0}
    for workers in tools.WORKERS:
        target, _ = extract(tool, picture, '--workers=' + workers)
        samples.same(root, target, owner=ROOT)
        for name, chunks in wanted.items():
            blocks = os.stat(os.path.join(target, name)).st_blocks * 512
            is_(blocks, chunks * 65536, 'bytes allocated of ' + name)


@both('X9: a damaged file leaves neither a short file nor a temporary name')
def _(tool):
    picture, root = samples.damaged(('f05', 'f11'))
    for workers in tools.WORKERS:
        target, _ = extract(tool, picture, '--workers=' + workers, status=4)
        wanted = samples.picture(root)
        del wanted[b'./f05'], wanted[b'./f11']
        samples.same(root, target, wanted, owner=ROOT)


@both('X9: a damaged file does not destroy the old one before it knows (no --overwrite: never)')
def _(tool):
    picture, _ = samples.damaged()
    target = fresh('there', make=True)
    write(b'old', target, 'f05')
    extract(tool, picture, target=target, status={4, 8, 12})
    is_(content(target, 'f05'), b'old', 'the old file')


@both('X10: the first error of each file is reported, the others go on')
def _(tool):
    picture, _ = samples.damaged(('f02', 'f05', 'f19'))
    for workers in tools.WORKERS:
        _, result = extract(tool, picture, '--workers=' + workers, status=4)
        named = re.findall(r'/(f\d\d) \(nid', result.text)
        is_(named, ['f02', 'f05', 'f19'], 'files named')


@both('X10: --fail-fast stops at the first error')
def _(tool):
    picture, _ = samples.damaged(('f02', 'f19'))
    _, result = extract(tool, picture, '--fail-fast', '--workers=1', status=4)
    named = re.findall(r'/(f\d\d) \(nid', result.text)
    is_(len(named), 1, 'files named')


@both('X11: two entries of one name: an error, never a silent overwrite')
def _(tool):
    builder = mkimg.Builder(mkimg.Dir({'aa': mkimg.File(b'first\n'),
                                       'ab': mkimg.File(b'second\n')}))
    image = mkimg.Image(builder.build())
    at = image.root.entries()[b'ab'][3]
    image.data[at:at + 2] = b'aa'
    path = save(bytes(image.seal().data))
    for words in ([], ['--overwrite']):
        target, _ = extract(tool, path, *words, status={4, 12}, patterns=[r'aa'])
        if os.path.exists(os.path.join(target, 'aa')):
            is_(content(target, 'aa'), b'first\n', 'the first one')


@both('X12: same tree and same report for every worker setting, many files')
def _(tool):
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
        _, result = extract(tool, path, '--workers=' + workers, target=target, status=4)
        texts.add(result.text)
        trees.append(tree.read(target))
        tree.remove(target)
    is_(len(texts), 1, 'reports: %s' % sorted(texts))
    named = re.findall(r'/(d\d\d/f\d\d\d) \(nid', texts.pop())
    is_(named, ['d00/f010', 'd03/f001', 'd03/f002', 'd17/f058'], 'order of the report')
    for other in trees[1:]:
        is_(tree.compare(trees[0], other), [], 'trees')


@both('X13: an ordinary user with --preserve: chown fails, a warning, status 0')
def _(tool):
    picture, root = built({'f': mkimg.File(b'x', uid=1, gid=1)})
    user = tools.as_user()
    target, result = extract(tool, user_owns(picture), '--preserve', patterns=[r'^<W> erofs: '], **user)
    is_(content(target, 'f'), b'x', 'file')


@both('X5, X6, X13: of each kind of thing that could not be set one line, with count, first path and reason')
def _(tool):
    kinds = {
        r'devices skipped: 3, the first is /d/c1: Operation not permitted':
            {'c1': mkimg.Special(stat.S_IFCHR, 1 << 8 | 3), 'c2': mkimg.Special(stat.S_IFCHR, 1 << 8 | 5),
             'z1': mkimg.Special(stat.S_IFBLK, 8 << 8)},
        r'owners not restored: 7, the first is /d/o1: Operation not permitted':
            {'o%d' % n: mkimg.File(b'', uid=n) for n in range(1, 8)},
        r'privileged extended attributes skipped: 5, the first is /d/p1: Operation not permitted':
            {'p1': mkimg.File(b'', xattrs={'trusted.a': b'1', 'trusted.b': b'2'}),
             'p2': mkimg.File(b'', xattrs={'security.capability': samples.CAPABILITY, 'trusted.a': b'1'}),
             'p3': mkimg.Dir({}, xattrs={'trusted.overlay.opaque': b'y'})},
        r'extended attributes skipped: 4, the first is /d/s1: Operation not supported':
            {'s%d' % n: mkimg.File(b'', xattrs={'user.a': b'1'}) for n in range(1, 5)},
    }
    user = tools.as_user()
    uid = user.get('user', os.getuid())
    nodes = {}
    for more in kinds.values():
        nodes.update(more)
    for name, node in nodes.items():
        if not name.startswith('o'):
            node.uid = node.gid = uid
    root = mkimg.Dir({'d': mkimg.Dir(nodes, uid=uid, gid=uid)}, uid=uid, gid=uid)
    picture = user_owns(save(mkimg.build(root)))
    with tools.Mount('-t', 'ramfs', 'ramfs') as where:      # it has no user attributes
        os.chmod(where, 0o777)
        for workers in tools.WORKERS:
            target, result = extract(tool, picture, '--preserve', '--xattrs', '--workers=' + workers,
                                     target=os.path.join(where, workers), **user)
            lines = sorted(': '.join(line.rsplit(': ', 3)[1:]) for line in result.text.splitlines())
            is_(lines, sorted(kinds), str(result))
            tool.form_fault(result)
            is_(len(tree.read(target)), 2 + len(nodes) - 3, 'names')
        _, result = extract(tool, picture, '--preserve', '--xattrs', '--strict', status=8,
                            target=os.path.join(where, 'strict'), **user)
        is_(len([l for l in result.text.splitlines() if 'the first is' in l]), 4, str(result))


@both('no space: the file is named, no short file, the rest is made, status 8')
def _(tool):
    cases = {'plain': mkimg.File(os.urandom(1000000), inline=False),
             'compressed': mkimg.Runs([(65, 250)])}
    for name, node in cases.items():
        picture, root = built({'large': node, 'small': mkimg.File(b'fits\n')})
        for workers in tools.WORKERS:
            with tools.tmpfs('900k') as where:
                target, result = extract(tool, picture, '--workers=' + workers, status=8,
                                         target=os.path.join(where, 'x'),
                                         patterns=[r'large.*(?i:no space)'])
                is_(os.listdir(target), ['small'], '%s, workers=%s' % (name, workers))


@both('no space for names: what could not be made is named, status 8')
def _(tool):
    picture, _ = built({'f%03d' % n: mkimg.File(b'x') for n in range(200)})
    with tools.Mount('-t', 'tmpfs', '-o', 'nr_inodes=50', 'tmpfs') as where:
        target, result = extract(tool, picture, status=8, target=os.path.join(where, 'x'),
                                 patterns=[r'(?i)no space'])
        for name in os.listdir(target):
            is_(content(target, name), b'x', name)


@both('R24: a file size limit is EFBIG for that file, not a death by SIGXFSZ')
def _(tool):
    picture, root = built({'large': mkimg.File(os.urandom(400000)), 'small': mkimg.File(b's')})
    target, _ = extract(tool, picture, status=8, limits=[(resource.RLIMIT_FSIZE, 100000)],
                        patterns=[r'large.*(?i:file too large)'])
    is_(os.listdir(target), ['small'], 'files')


@both('few descriptors: a deep and wide tree comes out with 64 of them')
def _(tool):
    node = mkimg.Dir({'end': mkimg.File(b'end')})
    for n in range(300):
        node = mkimg.Dir({'d': node, 'f': mkimg.Runs([(n % 200 + 1, 2)])})
    picture = save(mkimg.build(node))
    for workers in tools.WORKERS:
        target, _ = extract(tool, picture, '--workers=' + workers,
                            limits=[(resource.RLIMIT_NOFILE, 64)])
        samples.same(node, target, owner=ROOT)
        tree.remove(target)


main()
