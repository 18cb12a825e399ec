#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Field reports 70 to 88: damaged and hostile images, each fixed somewhere once."""
import fnmatch
import os
import resource
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import corpus  # noqa: E402
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from mkimg import DEFLATE, ZSTD, Dir, File, Packed, Runs, zstd_frame  # noqa: E402
from tap import Failure, check, is_, main, test  # noqa: E402
from tools import FSCK, ROOT, expect, fresh, fsck, mkfs, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def rows(*patterns):
    """Rows of the corpus, one worker setting each (bad.t runs them all)."""
    tools.corpus('bad', 'EXPECT.tsv')
    found = [r for r in corpus.read_rows() if any(fnmatch.fnmatch(r['name'], p) for p in patterns)]
    check(found, 'no row for', *patterns)
    faults = []
    for row in found:
        words = ['--device=' + os.path.join(corpus.BAD, 'base-blob.blob')] \
            if row['base'] == 'blob' and row['name'] != 'dev-missing' else []
        image = os.path.join(corpus.BAD, row['name'] + '.erofs')
        result = fsck('--extract', '--workers=2', *words, image)
        faults += corpus.status_faults(row, result, 'check')
        if row['class'] == 'report':
            faults += corpus.names_fault(row, result)
    if faults:
        raise Failure('\n'.join(map(str, faults[:6])))


def damaged(root, *gone, image=None, status=4):
    """Check and extract: the paths gone are named with an offset, all else is as it should be."""
    picture = save(bytes(image.seal().data) if image else mkimg.build(root))
    patterns = [r'/%s\b.*0x[0-9a-f]+|0x[0-9a-f]+.*/%s\b' % (name, name) for name in gone]
    for workers in tools.WORKERS:
        expect(fsck('--workers=' + workers, picture), status, *patterns)
        target = fresh()
        expect(fsck('--extract=' + target, '--workers=' + workers, picture), status, *patterns)
        wanted = samples.picture(root)
        for name in gone:
            for path in [p for p in wanted if tree.below(p, [b'./' + name.encode()])]:
                del wanted[path]
        samples.same(root, target, wanted, owner=ROOT)
        tree.remove(target)


def intact(**more):
    return dict({'z': File(b'intact\n'), 'r': Runs([(90, 5)])}, **more)


def deflate(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


@test('field 70: deep and cyclic paths')
def _():
    rows('dirent-cycle-*', 'dir-deep-3000')


@test('field 71: huge extents are not allocated whole')
def _():
    rows('bomb-*', 'inode-size-huge', 'inode-size-1t')


@test('field 72: zstd content size smaller, larger than the extent: refused; absent, equal: right')
def _():
    root = Dir(intact(small=Packed([(zstd_frame(65, 8192, 100), 2)], ZSTD, 8192),
                      large=Packed([(zstd_frame(65, 8192, 9000), 2)], ZSTD, 8192)))
    damaged(root, 'small', 'large')
    fine = Dir({'equal': Packed([(zstd_frame(65, 8192, 8192), 2)], ZSTD, 8192),
                'absent': Packed([(zstd_frame(65, 8192), 2)], ZSTD, 8192)})
    target = fresh()
    expect(fsck('--extract=' + target, save(mkimg.build(fine))), 0, silent=True)
    for name in fine.entries:
        with open(os.path.join(target, name), 'rb') as file:
            is_(file.read(), b'A' * 8192, name)


@test('field 72: a symlink of 2^64-1 bytes')
def _():
    rows('symlink-huge')
    root = Dir(intact(l=mkimg.Link('target')))
    image = mkimg.Image(mkimg.build(root))
    image.find('l').set_size((1 << 64) - 1)
    damaged(root, 'l', image=image)


@test('field 73: short output of each codec is an error')
def _():
    rows('lz4-short')
    root = Dir(intact(s=Packed([(zstd_frame(65, 8000), 2)], ZSTD, 8192),
                      d=Packed([(deflate(b'A' * 8000), 2)], DEFLATE, 8192)))
    root.entries.pop('r')
    damaged(root, 's', 'd')


@test('field 73: short output, as made by mkfs.erofs with every codec')
def _():
    folder = fresh('source', make=True, mode=0o755)
    for name in ('a', 'b'):
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(b''.join(b'%d %s\n' % (n, name.encode()) for n in range(6000)))
    for words in (['-zlz4'], ['-zlzma'], ['-zdeflate'], ['-zzstd']):
        image = mkimg.Image.load(mkfs(folder, '-C65536', '-Elegacy-compress', *words))
        inode = image.find('a')
        # the index behind the last extent says where that ends
        last = inode.index(inode.size // 4096) + 2
        is_(image.get(last, 'H'), inode.size % 4096, 'end of the last extent')
        image.put(last, 'H', inode.size % 4096 + 50)
        image.put(inode.at + 8, 'I', inode.size + 50)
        target = fresh()
        expect(fsck('--extract=' + target, save(bytes(image.seal().data))), 4, r'/a\b.*0x[0-9a-f]+')
        is_(os.listdir(target), ['b'], ' '.join(words))


@test('field 73: a stream with more than the extent holds')
def _():
    root = Dir(intact(s=Packed([(zstd_frame(65, 12000), 2)], ZSTD, 8192),
                      d=Packed([(deflate(b'A' * 9000), 2)], DEFLATE, 8192)))
    root.entries.pop('r')
    damaged(root, 's', 'd')


@test('field 76: pclusters that overlap are reported, and decoding ends')
def _():
    rows('z-overlap')
    # one pcluster for 4 lclusters and for 5
    root = Dir(intact(v=Runs([(65, 4), (66, 5)])))
    image = mkimg.Image(mkimg.build(root))
    inode = image.find('v')
    image.put(inode.index(4) + 4, 'I', image.get(inode.index(0) + 4, 'I'))
    expect(fsck('--extract', save(bytes(image.seal().data)), timeout=10), 4, r'/v\b')


@test('field 78: name offsets behind the block, or no multiple of 12')
def _():
    rows('dirent-nameoff*')
    root = Dir({'d%d' % n: Dir({'f%03d' % k: File(b'%d' % k) for k in range(300)})
                for n in range(2)})
    root.entries['z'] = File(b'z')
    image = mkimg.Image(mkimg.build(root))
    last = max(e[2] for e in image.find('d0').entries().values())
    image.put(last + 8, 'H', 4096)
    damaged_dir(root, 'd0', image)


def damaged_dir(root, name, image):
    target = fresh()
    expect(fsck('--extract=' + target, save(bytes(image.seal().data))), {4, 12}, r'/%s\b' % name)
    wanted = samples.picture(root)
    skip = [b'/' + name.encode()]
    got = tree.read(target, xattrs=False)
    is_(tree.compare(wanted, got, skip=skip, owner=ROOT), [], 'the rest')


@test('field 79: more shared xattrs counted than the area has room for')
def _():
    rows('xattr-shared-count', 'xattr-icount-*')
    image = mkimg.Image(mkimg.build(Dir(intact(a=File(b'a', xattrs={'user.a': b'1'})))))
    inode = image.find('a')
    image.data[inode.core + 4] = 0xFF
    for words in (['--extract'], ['--extract=' + fresh(), '--xattrs']):
        expect(fsck(*words, save(bytes(image.seal().data))), {4, 12}, r'/a\b')


@test('field 80: packed inode and metabox that hold themselves')
def _():
    rows('frag-self*', 'frag-nid-*', 'metabox-self', 'metabox-nid-*')


@test('field 81: plain extent longer than its input; device numbers out of range')
def _():
    rows('chunk-device*', 'real-interlaced-tail', 'z-plain-lie')
    root = Dir(intact(v=Runs([(65, 4)])))
    image = mkimg.Image(mkimg.build(root))
    inode = image.find('v')
    image.put(inode.index(0), 'H', 0)
    damaged(root, 'v', image=image)


@test('field 81: device ids start at 1, and the last one counts')
def _():
    picture, parts, root = samples.devices()
    image = mkimg.Image.load(picture)
    at = mkimg.up(image.find('b').end, 8)
    image.put(at + 2, 'H', 3)
    result = fsck('--extract', *['--device=' + p for p in parts], save(bytes(image.seal().data)))
    expect(result, {4, 8, 12}, r'/b\b')


@test('field 82: endless loops in indexes')
def _():
    rows('zc-*', 'z-lookback-*', 'z-forward-*')
    root = Dir(intact(v=Runs([(65, 6)])))
    for delta in (0, 7, 0xFFFF):
        image = mkimg.Image(mkimg.build(root))
        inode = image.find('v')
        for lcn in range(1, 6):
            image.put(inode.index(lcn) + 4, 'H', delta)
        expect(fsck('--extract', '--workers=2', save(bytes(image.seal().data)), timeout=10), {4, 0})


@test('field 83: fragments beyond the packed inode')
def _():
    rows('frag-offset*', 'frag-size')


@test('field 84: a plain pcluster whose source ends behind its buffer')
def _():
    rows('z-plain-lie', 'trunc-*')


@test('field 85: lengths that do not fit')
def _():
    rows('z-size-*', 'z-cblkcnt-*')


@test('field 86: block size bits that shift out')
def _():
    rows('sb-blkszbits-*')


@test('field 87: files shorter than the header')
def _():
    rows('trunc-*')
    whole = mkimg.build(Dir({'a': File(b'a')}))
    for size in (0, 1, 1023, 1024, 1028, 1100, 1151, 1152, 1200, 4095):
        expect(fsck(save(whole[:size])), {4, 8}, r'^<E> erofs: ')


@test('field 88: what is left on disk: a bomb under a file size limit, links never followed')
def _():
    picture = tools.corpus('bad', 'bomb-names.erofs')
    target = fresh()
    fsck('--extract=' + target, picture, limits=[(resource.RLIMIT_FSIZE, 1 << 20)],
         watch=tools.scratch())
    if os.path.isdir(target):
        used = sum(e.blocks * 512 for e in tree.read(target, data=0).values())
        check(used < 256 << 20, '%d MiB left on disk' % (used >> 20))
    rows('escape-*', 'name-*')


@test('random bytes in every block of the metadata: no crash, no hang, same report for all workers')
def _():
    import random
    source = samples.plain()[0]
    with open(source, 'rb') as file:
        data = file.read()
    dice = random.Random(20261201)
    for turn in range(10 if tools.SLOW else 60):
        image = mkimg.Image(data)
        for _ in range(dice.choice((1, 3, 20))):
            at = dice.randrange(4096, min(len(data), 12288))
            image.data[at] = dice.randrange(256)
        path = save(bytes(image.seal().data))
        texts = set()
        for workers in tools.WORKERS:
            target = fresh()
            result = fsck('--extract=' + target, '--workers=' + workers, path,
                          watch=tools.scratch(), limits=[(resource.RLIMIT_FSIZE, 64 << 20)])
            fault = tools.sane(result)
            check(not fault, 'turn %d: %s' % (turn, fault), result)
            texts.add(result.err.replace(os.fsencode(target), b'TARGET'))
            tree.remove(target)
        is_(len(texts), 1, 'turn %d: reports %r' % (turn, texts))
        os.unlink(path)


main()
