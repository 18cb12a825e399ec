#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Field reports 54 to 69: valid images that some reader refused or misread."""
import os
import stat
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import corpus  # noqa: E402
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Failure, check, is_, main, test  # noqa: E402
from tools import FSCK, ROOT, expect, fresh, fsck, mkfs, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def good(*names):
    """Extract images of the corpus and compare with their manifests."""
    for name in names:
        folder = os.path.dirname(tools.corpus('good', name + '.erofs'))
        words = corpus.words_for(folder, name)
        target = fresh()
        expect(fsck('--extract=' + target, '--workers=2', *words,
                    os.path.join(folder, name + '.erofs')), 0)
        wanted = corpus.wanted_tree(os.path.join(folder, name + '.mtree'))
        faults = tree.compare(wanted, tree.read(target, xattrs=False), xattrs=False, nlink=ROOT,
                              probe=tools.scratch())
        tree.remove(target)
        if faults:
            raise Failure(name + ':\n' + '\n'.join(faults[:8]))


def made(files, *words):
    """mkfs.erofs over files, extraction, comparison with what was put in."""
    folder = fresh('source', make=True, mode=0o755)
    for name, data in files.items():
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(data)
    picture = mkfs(folder, *words)
    for workers in ('1', '2'):
        target = fresh()
        expect(fsck('--extract=' + target, '--workers=' + workers, picture), 0, silent=True)
        for name, data in files.items():
            with open(os.path.join(target, name), 'rb') as file:
                check(file.read() == data, '%s of %s is wrong' % (name, ' '.join(words)))
        tree.remove(target)
    return picture


@test('field 54: blocks of 16 KiB, and below 4 KiB')
def _():
    good('kinds-b16384', 'small-b65536', 'kinds-b512', 'kinds-b1024', 'kinds-b2048',
         'data-lz4-b512', 'small-lz4-b1024', 'data-lz4-b2048-frag', 'small-lz4-b16384')
    for bits in (9, 10, 11, 12, 13, 14, 15, 16):
        root = samples.plain_root()
        for name in ('runs', 'holes', 'all-hole'):
            del root.entries[name]
        target = fresh()
        expect(fsck('--extract=' + target, save(mkimg.build(root, bits=bits))), 0, silent=True)
        samples.same(root, target, owner=ROOT, mode=ROOT)


@test('field 55: a file of 9 * 10^15 bytes, all hole, chunks of 2^43: ends at once')
def _():
    root = mkimg.Dir({'huge': mkimg.Chunked([mkimg.HOLE] * 1024, 31, size=9 * 10 ** 15),
                      'z': mkimg.File(b'z')})
    picture = save(mkimg.build(root))
    for words in ([], ['--extract'], ['--workers=2']):
        result = expect(fsck(*words, picture, timeout=10), 0)
        check(tools.SLOW or result.seconds < 2, result)
    target = fresh()
    expect(fsck('--extract=' + target, picture, watch=tools.scratch(), timeout=10), {0, 8})
    is_(os.stat(os.path.join(target, 'z')).st_size, 1, 'the other file')


@test('field 57: ztailpacking with tails of 1 to 100 incompressible bytes')
def _():
    good('data-lz4-ztail', 'data-lz4-v1.5-ztail')
    files = {'t%03d' % n: b'text ' * 2000 + os.urandom(n) for n in range(0, 101, 5)}
    files.update({'n%03d' % n: os.urandom(n) for n in range(1, 101, 9)})
    made(files, '-zlz4', '-Eztailpacking')
    made({'only': os.urandom(77)}, '-zlz4', '-Eztailpacking')
    made({'only': b'a' * 5000 + os.urandom(50)}, '-zlz4hc', '-Eztailpacking,legacy-compress')


@test('field 59: extents of 16 MiB and more: 64 MiB of zeros, -C1048576')
def _():
    good('big-zstd-1m')
    for words in (['-zzstd'], ['-zlzma'], ['-zlz4'], ['-zdeflate']):
        made({'zeros': bytes(64 << 20)}, '-C1048576', *words)


@test('field 61: encoded extents, xattrs in the metabox, 48-bit, prefixes in the packed inode')
def _():
    good('small-zstd-48bit', 'data-zstd-48bit-maxext', 'small-lz4-48bit-maxext', 'xattrs-metabox',
         'kinds-48bit', 'xattrs-prefix', 'small-chunk-48bit')
    made({'a': os.urandom(5000) + b'a' * 30000, 'b': b'b' * 100000}, '-E48bit', '-zzstd', '-C65536')


@test('field 62: 80 names of 255 bytes: padding behind the last name of a block')
def _():
    root = mkimg.Dir({('%03d' % n).ljust(255, 'n'): mkimg.File(b'%d' % n) for n in range(80)})
    target = fresh()
    expect(fsck('--extract=' + target, save(mkimg.build(root))), 0, silent=True)
    samples.same(root, target, owner=ROOT)


@test('field 62: "." and ".." are not first where names sort before them')
def _():
    root = mkimg.Dir({'-x': mkimg.File(b'1'), b'\x01': mkimg.File(b'2'), '!': mkimg.File(b'3'),
                      '.-': mkimg.File(b'4'), '...': mkimg.File(b'5'), '.a': mkimg.File(b'6')})
    target = fresh()
    expect(fsck('--extract=' + target, save(mkimg.build(root))), 0, silent=True)
    samples.same(root, target, owner=ROOT)


@test('field 62: the 0padding bit on a plain image; an inode that straddles a block')
def _():
    root = mkimg.Dir({'a': mkimg.File(b'plain\n'), 'x': mkimg.File(b'y', xattrs={
        'user.big': b'v' * 3000}), 'w': mkimg.File(b'w', xattrs={'user.big': b'u' * 3000})})
    picture = save(mkimg.build(root, incompat=1))
    target = fresh()
    xattrs = tools.has_xattrs()
    expect(fsck('--extract=' + target, *['--xattrs'] * xattrs, picture), 0, silent=True)
    samples.same(root, target, owner=ROOT, xattrs=xattrs)


@test('field 63: a directory of size 0 is reported; a symlink across a block is reported')
def _():
    image = mkimg.Image(mkimg.build(mkimg.Dir({'d': mkimg.Dir({}), 'z': mkimg.File(b'z')})))
    image.find('d').set_size(0)
    expect(fsck(save(bytes(image.seal().data))), 4, r'/d\b')
    result = fsck('--extract', tools.corpus('bad', 'inode-inline-cross.erofs'))
    expect(result, 4, r'/a\b')


@test('field 64: a build time without nanoseconds; concatenated images; padding before and behind')
def _():
    with open(samples.plain()[0], 'rb') as file:
        data = file.read()
    two = save(data + data)
    expect(fsck('--extract', two), 0, silent=True)
    expect(fsck('--extract', '--offset=%d' % len(data), two), 0, silent=True)
    expect(fsck('--extract', '--offset=%d' % 8192, save(b'\xff' * 8192 + data + b'\xff' * 777)), 0)


@test('field 67: times of compact inodes come from the superblock')
def _():
    good('kinds-ignore-mtime', 'kinds-compact', 'kinds-fixed-time')


@test('field 68: a vendor variant without "." and "..": one finding, the rest is read')
def _():
    folder = tools.corpus('bad', 'dir-no-dots.erofs')
    expect(fsck('--extract', folder), 4, r'/d\b')
    image = mkimg.Image.load(samples.plain()[0])
    inode = image.find('one')
    image.put(inode.at + 4, 'H', 0)
    target = fresh()
    result = expect(fsck('--extract=' + target, save(bytes(image.seal().data))), 4, r'/one\b')
    check(len(result.text.splitlines()) <= 3, 'a page of errors', result)
    check(os.path.exists(os.path.join(target, 'dir', 'in')), 'the rest')


@test('field 69: the legacy layout and the new one in all their builders')
def _():
    good('data-lz4-legacy', 'data-lz4-no0pad', 'small-lz4-v1.1', 'small-lz4-v1.5-legacy',
         'data-lz4-frag-v1.8.10')


@test('an image of special files, whiteouts and empty folders only')
def _():
    root = mkimg.Dir({'w': mkimg.Special(stat.S_IFCHR, 0, 0), 'e': mkimg.Dir({}),
                      'f': mkimg.Special(stat.S_IFIFO)})
    picture = save(mkimg.build(root))
    expect(fsck('--workers=2', picture), 0, silent=True)


main()
