#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Field reports 40 to 53: getting the tree out faithfully and safely."""
import os
import re
import stat
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, ROOT, dump, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def content(*parts):
    with open(os.path.join(*parts), 'rb') as file:
        return file.read()


def renamed(old, new):
    """An image with one name overwritten by another of the same length."""
    image = mkimg.Image(mkimg.build(mkimg.Dir({
        old: mkimg.File(b'evil\n'), 'd': mkimg.Dir({}), 'z': mkimg.File(b'intact\n')})))
    at = image.root.entries()[old][3]
    image.data[at:at + len(old)] = new
    return save(bytes(image.seal().data), 'renamed')


@test('field 40: names with "/", NUL, "." and "..": damage, never created, nothing outside')
def _():
    for new in (b'../esc', b'a/b/cc', b'/tmp/e', b'd/evil', b'./evil', b'////ev'):
        box = fresh('box', make=True)
        picture = renamed(b'aaaaaa', new)
        for words in ([], ['--overwrite']):
            target = os.path.join(box, 'x')
            expect(fsck(*words, '--extract=' + target, picture, cwd=box), {4, 12}, r'0x[0-9a-f]+')
            is_(os.listdir(box), ['x'], 'names beside the target for %r' % new)
            is_(content(target, 'z'), b'intact\n', 'the rest')
            is_(sorted(tree.read(target)), [b'.', b'./d', b'./z'], 'names for %r' % new)
            tree.remove(target)


@test('field 40: ".." as a second entry')
def _():
    picture = renamed(b'aa', b'..')
    box = fresh('box', make=True)
    target = os.path.join(box, 'x')
    expect(fsck('--extract=' + target, picture), {4, 12})
    is_(os.listdir(box), ['x'], 'names beside the target')
    is_(content(target, 'z'), b'intact\n', 'the rest')


@test('field 41: links in the target (parent, entry): nothing outside is touched')
def _():
    root = mkimg.Dir({'dir': mkimg.Dir({'f': mkimg.File(b'new\n', mode=0o4755, uid=7)}, mode=0),
                      'hole': mkimg.Dir({}, mode=0), 'p': mkimg.File(b'p', mode=0o777),
                      's': mkimg.Link('elsewhere', uid=9)})
    picture = save(mkimg.build(root))
    for words in ([], ['--overwrite']):
        outside, target = fresh('outside', make=True), fresh('inside', make=True)
        os.mkdir(os.path.join(outside, 'sub'))
        with open(os.path.join(outside, 'sub', 'f'), 'wb') as file:
            file.write(b'precious')
        for name, to in (('dir', 'sub'), ('hole', 'sub'), ('p', 'sub/f'), ('s', 'sub/f')):
            os.symlink(os.path.join(outside, to), os.path.join(target, name))
        before = tree.read(outside)
        for workers in tools.WORKERS:
            fsck(*words, '--extract=' + target, '--workers=' + workers, picture)
            is_(tree.compare(before, tree.read(outside)), [], 'outside')
        if words and ROOT:
            samples.same(root, target)


@test('field 41: a folder swapped for a link while we extract')
def _():
    root = mkimg.Dir({'d': mkimg.Dir({'f%04d' % n: mkimg.File(b'x', mode=0o777, uid=n)
                                      for n in range(4000)})})
    picture = save(mkimg.build(root))
    outside = fresh('outside', make=True)
    before = tree.read(outside)
    for _ in range(5):
        target = fresh()

        def during(process):
            inner = os.path.join(target, 'd')
            until = time.monotonic() + 3
            while time.monotonic() < until:
                try:
                    os.rename(inner, inner + '.away')
                    os.symlink(outside, inner)
                    return
                except OSError:
                    pass

        fsck('--extract=' + target, picture, during=during)
        is_(tree.compare(before, tree.read(outside)), [], 'outside')
        tree.remove(target)


@test('field 43: holes of chunks: size exact, blocks not allocated')
def _():
    hole, data = mkimg.HOLE, bytes(range(256)) * 64
    for size_less in (0, 1, 4095, 4096):
        root = mkimg.Dir({
            'first': mkimg.Chunked([hole, data], 2), 'middle': mkimg.Chunked([data, hole, data], 2),
            'last': mkimg.Chunked([data, hole], 2, size=32768 - size_less),
            'all': mkimg.Chunked([hole] * 9, 2, size=9 * 16384 - size_less)})
        picture = save(mkimg.build(root))
        target = fresh()
        expect(fsck('--extract=' + target, picture), 0, silent=True)
        samples.same(root, target, owner=ROOT)
        for name, size in (('first', 16384), ('middle', 32768), ('last', 16384), ('all', 0)):
            is_(os.stat(os.path.join(target, name)).st_blocks * 512, size, 'allocated: ' + name)


@test('field 44: link groups by inode, also in a subtree; each type; skipped ones counted')
def _():
    twice = mkimg.File(b'twice')
    root = mkimg.Dir({'a': twice, 'd': mkimg.Dir({'b': twice, 'c': twice}),
                      'dev': mkimg.Special(stat.S_IFCHR, 1, 3)})
    picture = save(mkimg.build(root))
    os.chmod(picture, 0o644)
    target = fresh()
    expect(fsck('--extract=' + target, '--path=/d', picture), 0)
    numbers = {os.stat(os.path.join(target, n)).st_ino for n in 'bc'}
    is_(len(numbers), 1, 'inodes of b and c')
    result = expect(fsck('--extract=' + fresh(), picture, **tools.as_user()), 0,
                    r'^<W> erofs: .*(?i:skip|device)')
    check(re.search(r'\b1\b|/dev', result.text), result)


@test('field 45: owners and modes by kind of user, umask 0, 022, 077')
def _():
    root = mkimg.Dir({'f': mkimg.File(b'x', mode=0o666), 'd': mkimg.Dir({}, mode=0o777)})
    picture = save(mkimg.build(root))
    os.chmod(picture, 0o644)
    user = tools.as_user()
    for umask in (0, 0o022, 0o077):
        target = fresh()
        expect(fsck('--extract=' + target, picture, umask=umask, **user), 0)
        ids = (tools.NOBODY, tools.NOBODY) if ROOT else (os.getuid(), os.getgid())
        samples.same(root, target, tree.for_user(samples.picture(root), *ids, umask))


@test('field 46: an Android label: set or a counted warning, never a stop')
def _():
    root = mkimg.Dir({'f': mkimg.File(b'f', xattrs={
        'security.selinux': b'u:object_r:system_file:s0\0', 'user.z': b'after'})})
    picture = save(mkimg.build(root))
    os.chmod(picture, 0o644)
    target = fresh()
    result = expect(fsck('--extract=' + target, '--xattrs', picture, **tools.as_user()), 0)
    is_(content(target, 'f'), b'f', 'content')
    if tools.has_xattrs():
        is_(os.getxattr(os.path.join(target, 'f'), 'user.z'), b'after', 'the next attribute')
    samples.form_fault(result)


@test('field 47: names that are no UTF-8, every type in one tree')
def _():
    root = mkimg.Dir({b'\xff\xfe': mkimg.File(b'1'),
                      b'\xc3(': mkimg.Dir({b'\x80': mkimg.Link(b'\xff')}),
                      b'a\nb\tc': mkimg.Special(stat.S_IFIFO), b' ': mkimg.Special(stat.S_IFSOCK),
                      b'-rf': mkimg.File(b'2'), b'x' * 255: mkimg.File(b'3')})
    picture = save(mkimg.build(root))
    target = fresh()
    expect(fsck('--extract=' + target, picture, env={'LC_ALL': 'C'}), 0, silent=True)
    samples.same(root, target, owner=ROOT)


@test('field 48: failure before the first file: the target is not made')
def _():
    image = mkimg.Image.load(samples.plain()[0])
    image.put(image.root.at, 'H', 0xFF00)
    for path in (save(bytes(image.seal().data)), save(b'text ' * 3000), '/no/such'):
        target = fresh()
        check(fsck('--extract=' + target, path).status in (4, 8))
        check(not os.path.lexists(target), path)


@test('field 49: "not EROFS" and "damaged EROFS" have different status; no root needed')
def _():
    user = tools.as_user()
    damaged = samples.damaged()[0]
    os.chmod(damaged, 0o644)
    other = save(b'hsqs' + bytes(9000))
    os.chmod(other, 0o644)
    is_((fsck('--extract', damaged, **user).status, fsck(other, **user).status), (4, 8), 'status')


@test('field 50: -d --extract DIR IMAGE: an error that says how to write it')
def _():
    folder = fresh('dir', make=True)
    result = expect(fsck('-d', '--extract', folder, samples.plain()[0]), 16)
    samples.form_fault(result)


@test('field 52: reads by odd small pieces equal the whole (--cat of every layout)')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    for name in ('data-lz4-64k', 'data-lz4-frag', 'data-zstd-48bit-64k', 'small-chunk16k'):
        picture = tools.corpus('good', name + '.erofs')
        target = fresh()
        expect(fsck('--extract=' + target, picture), 0)
        entries = [p for p, e in tree.read(target, xattrs=False).items() if e.kind == 'file']
        for path in entries[::7]:
            whole = content(os.fsencode(target), path)
            is_(len(dump('--cat', b'--path=/' + path[2:], picture).out), len(whole), path)
            check(dump('--cat', b'--path=/' + path[2:], picture).out == whole, name, path)



main()
