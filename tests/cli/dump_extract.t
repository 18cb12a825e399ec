#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md sections 4, 6, 8: dump.erofs --extract with members, globs and lists."""
import glob
import os
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, ROOT, dump, expect, fresh, fsck, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')


def extract(picture, *words, status=0, target=None, patterns=(), **more):
    target = target or fresh()
    return target, expect(dump('--extract=' + target, picture, *words, **more), status, *patterns)


def found(target):
    """Paths below the target, as text."""
    return sorted(p[2:].decode('utf-8', 'surrogateescape') for p in tree.read(target) if p != b'.')


def nested():
    files = {n: mkimg.File(n.encode()) for n in ('a.c', 'a.h', 'b.c', 'x[1]')}
    return save(mkimg.build(mkimg.Dir({
        'src': mkimg.Dir({**files, 'sub': mkimg.Dir({'c.c': mkimg.File(b'c'), 'd.o': mkimg.File(b'd')},
                                                    mode=0o711, time=1500000000123456789)},
                         mode=0o750),
        'doc': mkimg.Dir({'a.txt': mkimg.File(b'text')}),
        'empty': mkimg.Dir(),
        'top.c': mkimg.File(b'top'),
    })))


@test('everything, for every worker setting: the same as the image')
def _():
    picture, root = samples.plain()
    for workers in tools.WORKERS:
        target, _ = extract(picture, '--workers=' + workers)
        samples.same(root, target, xattrs=False, owner=ROOT)


@test('the same tree and the same report as fsck.erofs --extract=DIR, corpus images')
def _():
    for path in sorted(glob.glob(tools.corpus('good', '*.erofs')))[::9]:
        name = os.path.basename(path)
        if os.path.exists(path[:-6] + '.blob') or 'merged' in name or 'incremental' in name:
            continue
        words = ('--offset=12288',) if 'offset' in name else ()
        mine, _ = extract(path, '--xattrs', *words)
        other = fresh()
        expect(fsck('--extract=' + other, '--xattrs', *words, path), 0)
        faults = tree.compare(tree.read(other), tree.read(mine), probe=tools.scratch())
        check(not faults, name, *faults[:5])
        tree.remove(mine)
        tree.remove(other)


@test('X1: the default folder is ./erofs-root: new or empty, or --overwrite')
def _():
    picture, work = nested(), fresh(make=True)
    expect(dump('--extract', picture, cwd=work), 0)
    check(os.path.exists(os.path.join(work, 'erofs-root', 'src', 'a.c')), 'files')
    expect(dump('--extract', picture, cwd=work), 2, r'erofs-root: the folder is not empty')
    expect(dump('--extract', '--overwrite', picture, cwd=work), 0)
    work = fresh(make=True)
    os.mkdir(os.path.join(work, 'erofs-root'))
    expect(dump('--extract', picture, cwd=work), 0)


@test('X1: not an image, or a damaged root: status 2, no folder')
def _():
    target = fresh()
    expect(dump('--extract=' + target, save(b'\0' * 8192)), 2)
    expect(dump('--extract=' + target, save(b'')), 2)
    check(not os.path.exists(target), 'folder')
    expect(dump('--extract=' + target + '/no/parents', nested()), 2, 'No such file')
    expect(dump('--extract=' + target + '/now/parents', '--mkdir-parents', nested()), 0)


@test('R1: --extract DIR IMAGE is answered with --extract=DIR, status 2')
def _():
    picture, folder = nested(), fresh(make=True)
    expect(dump('--extract', folder, picture), 2, r'did you mean --extract=')
    is_(os.listdir(folder), [], 'files')


@test('members: exact, slashes do not matter, a directory means its subtree')
def _():
    picture = nested()
    target, _ = extract(picture, '/src/sub/', 'top.c')
    is_(found(target), ['src', 'src/sub', 'src/sub/c.c', 'src/sub/d.o', 'top.c'])
    target, _ = extract(picture, 'src/x\\[1]')
    is_(found(target), ['src', 'src/x[1]'])
    target, _ = extract(picture, './/doc/./a.txt')
    is_(found(target), ['doc', 'doc/a.txt'])


@test('globs: * stays within a part, ** does not; includes add up, excludes win')
def _():
    picture = nested()
    target, _ = extract(picture, '--include=*.c')
    is_(found(target), ['top.c'])
    target, _ = extract(picture, '--include=**/*.c')
    is_(found(target), ['src', 'src/a.c', 'src/b.c', 'src/sub', 'src/sub/c.c', 'top.c'])
    target, _ = extract(picture, '--include=src/?.c', 'doc')
    is_(found(target), ['doc', 'doc/a.txt', 'src', 'src/a.c', 'src/b.c'])
    target, _ = extract(picture, '--exclude=src/sub', '--exclude=**/*.h', '--exclude=empty')
    is_(found(target), ['doc', 'doc/a.txt', 'src', 'src/a.c', 'src/b.c', 'src/x[1]', 'top.c'])
    target, _ = extract(picture, '--exclude=src/sub', 'src/sub/c.c', status=1, patterns=['src/sub/c.c'])
    is_(found(target), [])


@test('parents of what is selected are made with their own metadata, and no other directories')
def _():
    target, _ = extract(nested(), '--include=**/d.o')
    is_(found(target), ['src', 'src/sub', 'src/sub/d.o'])
    if ROOT:
        is_(stat.S_IMODE(os.stat(os.path.join(target, 'src')).st_mode), 0o750)
        is_(stat.S_IMODE(os.stat(os.path.join(target, 'src', 'sub')).st_mode), 0o711)
    is_(os.stat(os.path.join(target, 'src', 'sub')).st_mtime_ns, 1500000000123456789)


@test('a pattern that matches nothing is named, status 1; the rest is there')
def _():
    target, result = extract(nested(), 'top.c', 'nowhere', '--include=**/*.zip', status=1)
    is_(found(target), ['top.c'])
    check('nowhere: nothing' in result.text and '**/*.zip: nothing' in result.text, result)
    check('top.c' not in result.text, result)


@test('patterns that make no sense are usage errors, status 2, nothing made')
def _():
    for word in ('--include=[a', '--exclude=', '--include=x\\', '--include=[z-a]'):
        target, _ = extract(nested(), word, status=2, patterns=[r'is no pattern'])
        check(not os.path.exists(target), word)
    expect(dump('--include=x', '-s', nested()), 2, '--include needs')
    expect(dump('--null', '--extract=' + fresh(), nested()), 2, '--null needs')
    expect(dump('--overwrite', nested()), 2, '--overwrite needs --extract')
    expect(dump('--extract=', nested()), 2, 'needs a folder')
    for action in ('-s', '-S', '--ls', '--to-tar=x', '--blkid-udev'):
        expect(dump('--extract=' + fresh(), action, nested()), 2, 'does not go with')
    expect(dump('-s', nested(), 'top.c'), 2, 'unexpected argument: top.c')


@test('--files-from: exact names a line, from a file or standard input, --null for NUL')
def _():
    picture = nested()
    target, _ = extract(picture, '--files-from=' + save(b'src/x[1]\n\ntop.c', 'list'))
    is_(found(target), ['src', 'src/x[1]', 'top.c'])
    target, _ = extract(picture, '--null', '--files-from=' + save(b'src/a.c\0doc\0', 'list'))
    is_(found(target), ['doc', 'doc/a.txt', 'src', 'src/a.c'])
    target = fresh()
    done = subprocess.run([DUMP, '--extract=' + target, '--files-from=-', picture], input=b'top.c\n')
    is_((done.returncode, found(target)), (0, ['top.c']))
    extract(picture, '--files-from=' + save(b'*.c\n', 'list'), status=1, patterns=[r'\*\.c: nothing'])
    target, _ = extract(picture, '--files-from=/does/not/exist', status=2, patterns=['No such file'])
    target, _ = extract(picture, '--files-from=' + save(b'', 'list'), status=2)
    check(not os.path.exists(target), 'an empty list is not everything')


@test('names are bytes: a member that is no UTF-8, in the C and a UTF-8 locale')
def _():
    picture, _ = samples.plain()
    for locale in ('C', 'C.UTF-8'):
        target = os.fsencode(fresh())
        done = subprocess.run([DUMP, b'--extract=' + target, picture, b'caf\xc3\xa9 \xff'],
                              env={**os.environ, 'LC_ALL': locale}, capture_output=True)
        is_((done.returncode, os.listdir(target)), (0, [b'caf\xc3\xa9 \xff']), locale)


@test('--strip-components drops leading parts, shorter names are left out; collisions are errors (X11)')
def _():
    target, _ = extract(nested(), '--strip-components=1')
    is_(found(target), ['a.c', 'a.h', 'a.txt', 'b.c', 'sub', 'sub/c.c', 'sub/d.o', 'x[1]'])
    target, _ = extract(nested(), '--strip-components=2', 'src/sub', 'doc')
    is_(found(target), ['c.c', 'd.o'])
    twice = save(mkimg.build(mkimg.Dir({n: mkimg.Dir({'same': mkimg.File(n.encode())}) for n in 'ab'})))
    target, _ = extract(twice, '--strip-components=1', status=1, patterns=['same'])
    is_(found(target), ['same'])


@test('X4: of a hard link with only some names selected the first one is the file')
def _():
    node = mkimg.File(b'linked')
    picture = save(mkimg.build(mkimg.Dir({'a': node, 'b': node, 'c': node})))
    target, _ = extract(picture, 'b', 'c')
    is_(found(target), ['b', 'c'])
    b, c = (os.stat(os.path.join(target, n)) for n in 'bc')
    is_((b.st_ino, b.st_nlink), (c.st_ino, 2))


@test('--path and --nid: from there; a file: DIR is the file; a missing path: status 1, nothing made')
def _():
    target, _ = extract(nested(), '--path=/src', 'sub')
    is_(found(target), ['sub', 'sub/c.c', 'sub/d.o'])
    target, _ = extract(nested(), '--path=/top.c')
    with open(target, 'rb') as file:
        is_(file.read(), b'top')
    target, _ = extract(nested(), '--path=/nothing', status=1)
    check(not os.path.exists(target), 'made')


@test('what is not selected is not read: one small file out of 4 GiB')
def _():
    piece = mkimg.File(b'small\n')
    spread = {'d%03d' % n: mkimg.Dir({'f%02d' % k: mkimg.File(b'x' * 5000) for k in range(40)})
              for n in range(100)}
    picture = save(mkimg.build(mkimg.Dir({**spread, 'here': mkimg.Dir({'small': piece})})))
    big = 4 << 30
    os.truncate(picture, big)
    target = fresh()
    log = fresh()
    trace = ['strace', '-f', '-e', 'trace=read,pread64,preadv,mmap', '-o', log]
    try:
        # nobody looks for leaks while somebody else traces
        done = subprocess.run([*trace, DUMP, '--extract=' + target, picture, 'here/small'],
                              capture_output=True, env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
    except FileNotFoundError:
        raise Skip('no strace')
    is_(done.returncode, 0, done.stderr)
    is_(found(target), ['here', 'here/small'])
    total = 0
    with open(log) as file:
        for line in file:
            words = line.rsplit('= ', 1)
            if ('read' in line) and words[-1].strip().isdigit():
                total += int(words[-1])
    check(0 < total < 1 << 20, 'bytes read: %d of an image of %d' % (total, os.path.getsize(picture)))


@test('X5, X6: an ordinary user gets all contents, one line for each kind of thing that could not be set')
def _():
    user = tools.as_user()
    devices = {n: mkimg.Special(stat.S_IFCHR, 1, 3) for n in ('null', 'zero')}
    trusted = {n: mkimg.File(b't', xattrs={'trusted.t': b'1'}) for n in ('t1', 't2')}
    picture = save(mkimg.build(mkimg.Dir({**devices, **trusted, 'f': mkimg.File(b'f', uid=7)})))
    target, result = extract(picture, '--xattrs', **user)
    if not user and ROOT:
        raise Skip('no ordinary user')
    is_(sorted(n for n in found(target) if n in ('f', 't1', 't2')), ['f', 't1', 't2'])
    is_(len([x for x in result.text.splitlines() if 'devices skipped: 2' in x]), 1, result)
    is_(len([x for x in result.text.splitlines() if 'attributes skipped: 2' in x]), 1, result)
    extract(picture, '--xattrs', '--strict', status=1, **user)


@test('X10: damaged files are named, the rest comes out, status 1; --salvage keeps them')
def _():
    picture, _ = samples.damaged()
    target, result = extract(picture, status=1, patterns=['f05'])
    is_(len(found(target)), 19)
    target, _ = extract(picture, '--salvage', status=1, patterns=['f05'])
    is_(len(found(target)), 20)
    target, _ = extract(picture, 'f01', 'f06')
    is_(found(target), ['f01', 'f06'])
    target, _ = extract(picture, 'f05', '--fail-fast', status=1)
    is_(found(target), [])


@test('X3, C5: a second run with --overwrite gives the same tree, on ext4 and tmpfs')
def _():
    picture, root = samples.plain()
    if not ROOT:
        raise Skip('needs root')
    disk = save(b'', 'disk')
    os.truncate(disk, 64 << 20)
    if subprocess.run(['mkfs.ext4', '-q', '-F', disk], capture_output=True).returncode:
        raise Skip('no mkfs.ext4')
    for words in (('-o', 'loop', disk), ('-t', 'tmpfs', 'tmpfs')):
        with tools.Mount(*words) as folder:
            target = os.path.join(folder, 'x')
            for more in ((), ('--overwrite',)):
                extract(picture, *more, target=target)
                samples.same(root, target, xattrs=False)
            extract(picture, target=target, status=1, patterns=['File exists'])


@test('a full target: status 1, no short file')
def _():
    picture, _ = samples.plain()
    with tools.tmpfs('96k') as folder:
        target, result = extract(picture, target=os.path.join(folder, 'x'), status=1)
        check('No space' in result.text, result)
        for path, entry in tree.read(target).items():
            if path == b'./big':
                is_(entry.size, 25600)


@test('R10: nothing on standard output; --json=FILE has the result')
def _():
    import json
    report = fresh()
    target, result = extract(nested(), '--json=' + report)
    is_(result.out, b'')
    with open(report) as file:
        is_(json.load(file)['result'], 'clean')
    extract(samples.damaged()[0], '--json=' + report, status=1)
    with open(report) as file:
        facts = json.load(file)
    is_((facts['result'], facts['exit']), ('damaged', 1))
    check(any(f['path'] == '/f05' for f in facts['findings']), facts['findings'])


@test('members for --ls and --to-tar choose the same names')
def _():
    picture = nested()
    words = ('src/sub', '--include=**/*.h', '--exclude=**/d.o')
    listed = expect(dump('--ls', picture, *words), 0).out.decode().split()
    is_(sorted(listed), ['/src/a.h', '/src/sub', '/src/sub/c.c'])
    expect(dump('--ls', picture, 'none'), 1, 'none: nothing')
    done = subprocess.run([DUMP, '--to-tar', picture, *words], capture_output=True)
    names = subprocess.run(['tar', 'tf', '-'], input=done.stdout, capture_output=True).stdout
    is_(names.decode().split(), ['./', 'src/', 'src/a.h', 'src/sub/', 'src/sub/c.c'])
    expect(dump('--to-tar=' + fresh(), picture, 'none'), 1, 'none: nothing')


main()
