#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs: long prefixes, digests, room for attributes; directories without "."; --offset (cli.md 7)."""
import hashlib
import os
import re
import struct
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, skip_all, test  # noqa: E402
from tools import dump, expect, fresh, fsck, make, save  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')
if not tools.has_xattrs():
    skip_all('no folder that takes attributes')

FIXED = ['-Uclear', '-T1700000000', '--mkfs-time', '--quiet']
LONG = 'user.a.rather.long.name.'


def source():
    top = fresh('src', make=True, mode=0o755)
    for n in range(6):
        path = os.path.join(top, 'f%d' % n)
        forest.write(path, b'%d' % n * (n * 3000))
        os.setxattr(path, LONG + '%d' % n, b'value')
        os.setxattr(path, LONG + 'shared', b'for all')
    os.setxattr(os.path.join(top, 'f0'), LONG[:-1], b'too short for the prefix')
    os.setxattr(os.path.join(top, 'f0'), 'user.x', b'')
    os.makedirs(os.path.join(top, 'd', 'e'))
    return top


TOP = source()


def need_libcrypto():
    if 'libcrypto' in make('--quiet', '--xattr-inode-digest', fresh(), TOP).text:
        raise Skip('built without libcrypto')


def made(*words, top=TOP, more=None):
    """An image that shows the source in Linux; more: attributes that are added to regular files."""
    image = fresh('img')
    expect(make(*FIXED, *words, image, top), 0, silent=True)
    expect(fsck('--workers=2', '--strict', image), 0, silent=True)
    wanted, out = tree.read(top), fresh('out')
    for entry in wanted.values():
        if more and entry.kind == 'file' and entry.size:
            entry.xattrs.update(more(entry))
    expect(fsck('--workers=2', '--xattrs', '--extract=' + out, image), 0)
    got = tree.read(out)
    tree.remove(out)
    is_(tree.compare(wanted, got, probe=tools.scratch(), owner=tools.ROOT), [], 'extracted')
    if tools.ROOT:
        with tools.Mount('-t', 'erofs', '-o', 'loop,ro', image) as mount:
            is_(tree.compare(wanted, tree.read(mount)), [], 'mounted')
    return image


def features(image):
    text = expect(dump('-s', image), 0).out.decode()
    return {w for line in re.findall(r'compatible features:(.*)', text) for w in line.split()}


def size(image, name):
    return int(re.search(r'Xattr size: (\d+)', expect(dump('--path=/' + name, image), 0).out.decode()).group(1))


@test('--xattr-prefix: names are stored without it, the longest that fits counts')
def _():
    plain, one = made(), made('--xattr-prefix=' + LONG)
    two = made('--xattr-prefix', 'user.a.', '--xattr-prefix=' + LONG, '--xattr-prefix=user.a.rather')
    check({'xattr_prefixes', 'plain_xattr_pfx'} <= features(one))
    check('xattr_prefixes' not in features(plain))
    saved = len(LONG) - len('user.')
    check(saved - 3 <= size(plain, 'f1') - size(one, 'f1') <= saved + 3)
    is_(size(two, 'f1'), size(one, 'f1'))
    made('--xattr-prefix=user.', '--xattr-prefix=none.such', '--xattr-prefix=system.posix_acl_access')
    made('--xattr-prefix=' + LONG + 'shared', '-x0')


@test('--xattr-prefix: the table is in the packed file where there is one, not with plain-xattr-prefixes')
def _():
    words = ['--xattr-prefix=' + LONG, '-zlz4', '-Efragments']
    check('plain_xattr_pfx' not in features(made(*words)))
    check('plain_xattr_pfx' in features(made(*words, '-Eplain-xattr-prefixes')))
    image = made(*words, '-E', 'all-fragments,dedupe')
    check({'fragments', 'xattr_prefixes'} <= features(image))
    is_(len({open(made(*words, '--workers=' + n), 'rb').read() for n in '127'}), 1)


@test('--xattr-prefix: too many, too long')
def _():
    for words, said in ((['--xattr-prefix=user.%d' % n for n in range(129)], '128'),
                        (['--xattr-prefix=user.' + 'x' * 256], 'longer')):
        image = fresh('img')
        expect(make(*FIXED, *words, image, TOP), 1, said)
        check(not os.path.exists(image))
    made(*['--xattr-prefix=user.%d' % n for n in range(128)])


@test('--xattr-inode-digest: of contents, hidden or under a name; fsck.erofs checks them')
def _():
    need_libcrypto()
    hidden = made('--xattr-inode-digest')
    expect(fsck('--workers=2', '--xattr-inode-digest', hidden), 0)
    check({'ishare_xattrs', 'xattr_prefixes'} <= features(hidden))
    for words in ([], ['-zlz4', '-Eall-fragments'], ['--chunksize=4096', '--xattr-prefix=user.dig'], ['-x0']):
        image = made('--xattr-inode-digest=user.digest', *words,
                     more=lambda e: {b'user.digest': b'sha256:' + bytes.fromhex(e.digest)})
        expect(fsck('--workers=2', '--xattr-inode-digest', image), 0)
    data = bytearray(open(hidden, 'rb').read())
    at = data.index(hashlib.sha256(b'1' * 3000).digest())
    data[at] ^= 1
    expect(fsck('--workers=2', '--no-sbcrc', '--xattr-inode-digest', save(bytes(data))), 4)


def stale():
    """Files of every kind that have an attribute where their digest is to be."""
    top = fresh('src', make=True, mode=0o755)
    forest.write(os.path.join(top, 'one'), b'contents')
    forest.write(os.path.join(top, 'empty'), b'')
    forest.write(os.path.join(top, 'bare'), b'')
    for n in range(4):
        forest.write(os.path.join(top, 'same%d' % n), b'equal' * 1000)
    os.mkdir(os.path.join(top, 'dir'))
    for name in ('one', 'empty', 'same0', 'same1', 'dir'):
        os.setxattr(os.path.join(top, name), 'user.digest', b'a lie')
    os.setxattr(os.path.join(top, 'empty'), 'user.other', b'stays')
    os.link(os.path.join(top, 'empty'), os.path.join(top, 'name of empty'))
    return top


def attributes(image):
    """What its files have after an extraction: {name: {attribute: value}}"""
    out = fresh('out')
    expect(fsck('--workers=2', '--xattrs', '--extract=' + out, image), 0)
    try:
        return {name: {key: os.getxattr(os.path.join(out, name), key) for key in
                       os.listxattr(os.path.join(out, name)) if key.startswith('user.')} for name in os.listdir(out)}
    finally:
        tree.remove(out)


def archive_of(top):
    """As tar: of what is there twice, once with another attribute; and one that says it twice."""
    file = fresh('tar')
    with tarfile.open(file, 'w', format=tarfile.PAX_FORMAT) as out:
        for name in sorted(os.listdir(top)):
            path = os.path.join(top, name)
            info = out.gettarinfo(path, name)
            for key in os.listxattr(path):
                if key.startswith('user.'):
                    info.pax_headers['SCHILY.xattr.' + key] = os.getxattr(path, key).decode()
                    info.pax_headers['LIBARCHIVE.xattr.' + key] = 'YSBsaWUgYWdhaW4='
            out.addfile(info, open(path, 'rb') if info.isreg() else None)
    return file


@test('--xattr-inode-digest: an attribute of that name in the source is replaced; empty files have none')
def _():
    need_libcrypto()
    top = stale()
    archive = archive_of(top)
    for words in ([], ['-x0'], ['-zlz4', '-Eall-fragments,dedupe'], ['--chunksize=4096'], ['--hard-dereference'],
                  ['--tar=f'], ['--tar=f', '-x0', '-zlz4']):
        image = fresh('img')
        expect(make(*FIXED, '--verify', '--xattr-inode-digest=user.digest', *words, image,
                    archive if '--tar=f' in words else top), 0, silent=True)
        expect(fsck('--workers=2', '--strict', '--xattr-inode-digest', image), 0)
        got = attributes(image)
        of = {data: {'user.digest': b'sha256:' + hashlib.sha256(data).digest()} for data in (b'contents', b'equal' * 1000)}
        kept = got['empty'].pop('user.other')
        check(kept in (b'stays', b'a lie again'), str(kept))
        got.pop('name of empty')
        # of folders it is no digest, and none of ours
        check(got.pop('dir')['user.digest'] in (b'a lie', b'a lie again'))
        is_(got, {'one': of[b'contents'], 'empty': {}, 'bare': {}, **{'same%d' % n: of[b'equal' * 1000] for n in range(4)}},
            str(words))


@test('--xattr-inode-digest: fsck.erofs --verify expects it of files alone')
def _():
    need_libcrypto()
    top = stale()
    image = fresh('img')
    expect(make(*FIXED, '--xattr-inode-digest=user.digest', image, top), 0, silent=True)
    for name in ('one', 'empty', 'same0', 'same1'):
        os.removexattr(os.path.join(top, name), 'user.digest')
    words = ['--workers=2', '--verify=dir:' + top, '--verify-only=xattr']
    expect(fsck(*words, image), 0)
    os.removexattr(os.path.join(top, 'dir'), 'user.digest')
    expect(fsck(*words, image), 4, '/dir: xattr.user.digest')


@test('-x: with a negative number the source has no attributes, and what is added is shared as by default')
def _():
    top = fresh('src', make=True, mode=0o755)
    for n in range(3):
        forest.write(os.path.join(top, 'd%d' % n, '.wh..wh..opq'), b'')
        forest.write(os.path.join(top, 'd%d' % n, 'file'), b'')
        os.setxattr(os.path.join(top, 'd%d' % n), 'user.x', b'value')
    for words, wanted in ((['-x-1'], 16), (['-x', '-1'], 16), (['-x-9'], 16), (['-x1', '-x-9'], 16), (['-x2'], 20)):
        image = fresh('img')
        expect(make(*FIXED, '--aufs', *words, image, top), 0, silent=True)
        is_(b'value' in open(image, 'rb').read(), words == ['-x2'], words)
        is_(size(image, 'd1'), wanted, words)


@test('--xattr-inode-digest: a name that no attribute has, or that is an ACL')
def _():
    need_libcrypto()
    for name in ('user.', 'trusted.', 'system.posix_acl_access', 'system.posix_acl_default', ''):
        image = fresh('img')
        expect(make(*FIXED, '--xattr-inode-digest=' + name, image, TOP), 1, 'no name for a digest')
        check(not os.path.exists(image))


@test('--xattr-inode-digest: of equal contents stored once where -x says so, whatever else is as large')
def _():
    need_libcrypto()
    top = fresh('src', make=True, mode=0o755)
    large = b''.join(hashlib.sha512(b'%d' % n).digest() for n in range(1 << 17))
    for name, data in (('none', b''), ('one', b'1'), ('large', large), ('long', large + b'!'),
                       ('twin', b'twin' * 999), ('twin2', b'twin' * 999), ('like', b'like' * 999),
                       *(('same%d' % n, b'same' * 2000) for n in range(4))):
        forest.write(os.path.join(top, name), data)
    for words in ([], ['-x0'], ['-x1'], ['-x3'], ['-x4'], ['-x', '-1'], ['-zlz4'], ['-zlz4', '-Efragments,dedupe'],
                  ['--chunksize=4096']):
        image = made('--xattr-inode-digest=user.digest', *words, top=top,
                     more=lambda e: {b'user.digest': b'sha256:' + bytes.fromhex(e.digest)})
        expect(fsck('--workers=2', '--xattr-inode-digest', image), 0)
        data = open(image, 'rb').read()
        most = {'-x0': 0, '-x1': 1, '-x3': 3, '-x4': 4}.get(words[0] if words else '', 2)
        for text, count in ((b'same' * 2000, 4), (b'twin' * 999, 2), (b'like' * 999, 1), (large, 1)):
            is_(data.count(hashlib.sha256(text).digest()), 1 if count > most else count, str(words))


@test('--root-xattr-isize: the root has so much room at least')
def _():
    for words, wanted in (([], 0), (['--root-xattr-isize=100'], 100), (['--root-xattr-isize=1'], 16),
                          (['--root-xattr-isize', '9999'], 10000), (['--root-xattr-isize=0'], 0)):
        is_(size(made(*words), ''), wanted, words)
    expect(make(*FIXED, '--root-xattr-isize=300000', fresh(), TOP), 1, '262140')
    expect(make(*FIXED, '--root-xattr-isize=x', fresh(), TOP), 1, 'number')


@test('-E dot-omitted: directories have no entry for themselves')
def _():
    image = made('-Edot-omitted')
    check('48bit' in features(image))
    data, plain = (open(i, 'rb').read() for i in (image, made()))
    root = struct.unpack_from('<H', data, 1024 + 14)[0] * 32
    is_(struct.unpack_from('<H', data, root)[0] & 0x10, 0x10)
    other = struct.unpack_from('<H', plain, 1024 + 14)[0] * 32
    is_(struct.unpack_from('<I', plain, other + 8)[0] - struct.unpack_from('<I', data, root + 8)[0], 13)
    made('-Edot-omitted', '-zlz4', '-Eforce-inode-extended')
    made('-E^dot-omitted')


@test('-E fragdedupe: equal fragments once, as often as they come with off')
def _():
    top = fresh('src', make=True, mode=0o755)
    for n in range(20):
        forest.write(os.path.join(top, 'f%d' % n), bytes(range(256)) * 16)
    words = ['-zlz4', '-Eall-fragments']
    one, off = ('deduplicated bytes (of source files): %d\n' % n for n in (19 * 4096, 0))
    for word, wanted in (('fragdedupe', one), ('fragdedupe=inode', one), ('fragdedupe=full', one),
                         ('fragdedupe=off', off), ('^fragdedupe', off)):
        image = fresh('img')
        out = expect(make('-Uclear', *words, '-E' + word, image, top), 0).out.decode()
        check(wanted in out, word + out)
        made(*words, '-E' + word, top=top)
    expect(make('-Efragdedupe=some', fresh(), top), 1, 'unknown word')


@test('--offset: the image begins there, what is in front of it stays')
def _():
    front = b'first' * 3000
    for words in ([], ['-zlz4', '-Ededupe,fragments'], ['--chunksize=4096']):
        plain = made(*words)
        file = save(front)
        expect(make(*FIXED, *words, '--offset=10000', file, TOP), 0, silent=True)
        data = open(file, 'rb').read()
        check(data == front[:10000] + open(plain, 'rb').read(), 'moved as it is')
        expect(fsck('--workers=2', '--strict', '--offset=10000', file), 0, silent=True)
    image, blocks = fresh('img'), fresh('list')
    expect(make(*FIXED, '--offset=64K', '--block-list-file=' + blocks, image, TOP), 0, silent=True)
    is_(open(image, 'rb').read(65536), bytes(65536))
    check(os.path.getsize(blocks))
    expect(make(*FIXED, '--offset=-1', image, TOP), 1, 'number')


@test('--offset: a device, or a file that is written in place')
def _():
    plain, file = made(), save(b'x' * 5000 + b'y' * 500000)
    with open(file, 'r+b') as out:
        expect(make(*FIXED, '--offset=5000', '/dev/fd/%d' % out.fileno(), TOP, pass_fds=(out.fileno(),)), 0,
               silent=True)
    check(open(file, 'rb').read() == b'x' * 5000 + open(plain, 'rb').read())


main()
