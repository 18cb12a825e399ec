#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs --chunksize and --blobdev: equal chunks once, zeros not at all (cli.md 7, format.md 6.3)."""
import os
import random
import re
import resource
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import ROOT, dump, expect, fresh, fsck, make, save  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')

FIXED = ['-Uclear', '-T1700000000', '--mkfs-time', '--quiet']
K = 4096


def source(**files):
    top = fresh('src', make=True, mode=0o755)
    for name, data in files.items():
        forest.write(os.path.join(top, name), data)
    return top


def noise(seed, size):
    return random.Random(seed).randbytes(size)


def bytes_of(path):
    with open(path, 'rb') as file:
        return file.read()


def device(words):
    return ['--device=' + w.split('=', 1)[1] for w in words if w.startswith('--blobdev=')]


def made(top, *words):
    """An image that is sound and has what is in the folder."""
    image, out = fresh('img'), fresh('out')
    expect(make(*FIXED, *words, image, top), 0, silent=True)
    expect(fsck('--workers=2', '--strict', *device(words), image), 0, silent=True)
    expect(fsck('--workers=2', '--extract=' + out, *device(words), image), 0)
    is_(tree.compare(tree.read(top, xattrs=False), tree.read(out, xattrs=False), xattrs=False, owner=ROOT,
                     times=False), [], ' '.join(words))
    tree.remove(out)
    return image


def extents(image, name, *words):
    """(offset, length, place, device) of each; the place of a hole is None."""
    text = expect(dump('-e', '--path=/' + name, *words, image), 0).out.decode()
    out = []
    for line in text.splitlines():
        found = re.match(r' *\d+: *(\d+)\.\. *(\d+) \| *\d+ : *(\d+)\.\. *\d+ \| *(\d+)(?: *# device (\d+))?', line)
        if found:
            start, end, place, length, number = (int(n or 0) for n in found.groups())
            out.append((start, end - start, place if length else None, number))
    return out


def layout(image, name):
    return re.search(r'Layout: (\d)', expect(dump('--path=/' + name, image), 0).out.decode()).group(1)


def places(image, name, *words, size=K):
    """Where each chunk of the size lies; runs are taken apart."""
    out = {}
    for start, length, place, number in extents(image, name, *words):
        for at in range(0, length, size):
            out[(start + at) // size] = (number, place + at) if place is not None else None
    return out


@test('--chunksize: equal chunks are there once, within a file and between files; the summary tells the bytes')
def _():
    a, b = noise(1, K), noise(2, K)
    top = source(one=a + b + a + a, two=b + noise(3, K) + a + b'end', three=noise(4, K) + b'end')
    image = made(top, '--chunksize=4096')
    one, two, three = (places(image, n) for n in ('one', 'two', 'three'))
    is_([one[0], one[0], two[0]], [one[2], one[3], one[1]])
    is_((two[2], two[3]), (one[0], three[1]))
    is_(len({*one.values(), *two.values(), *three.values()}), 5)
    check(os.path.getsize(image) <= 7 * K, 'the image is as small as that')
    text = expect(make('-Uclear', '--chunksize=4096', fresh(), top), 0).out.decode()
    check('deduplicated bytes (of source files): %d\n' % (4 * K + 3) in text, text)


@test('--chunksize: the same hash does not make chunks equal')
def _():
    # numbers whose blocks have one XXH32
    pair = [(n * 0x9e3779b97f4a7c15 % 2 ** 64).to_bytes(8, 'little') + n.to_bytes(4, 'little') + b'x' * (K - 12)
            for n in (271457, 100523)]
    made(source(one=pair[0], two=pair[1], three=pair[1] + pair[0]), '--chunksize=4096')


@test('--chunksize: chunks of zeros are holes, at the end and as all of a file too')
def _():
    a = noise(1, 3 * K)
    top = source(all=bytes(10 * K + 1), end=a + bytes(5 * K + 7), middle=a[:K] + bytes(2 * K) + a[K:], short=bytes(K))
    image = made(top, '--chunksize=4096')
    is_(extents(image, 'all'), [(0, 10 * K + 1, None, 0)])
    is_(extents(image, 'short'), [(0, K, None, 0)])
    is_([e[2] is None for e in extents(image, 'end')], [False, True])
    is_([p is None for p in places(image, 'middle').values()], [False, True, True, False, False])
    check(os.path.getsize(image) <= 5 * K)


@test('--chunksize: sizes around a chunk, larger chunks, every block size')
def _():
    dice = random.Random(5)
    top = source(**{'%d' % size: forest.pattern(dice, size) for size in
                    (0, 1, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537, 131072, 1 << 20, (1 << 20) + 1)},
                 copy=forest.pattern(random.Random(5), 513))
    for words in (['--chunksize=4096'], ['--chunksize=64K'], ['--chunksize=1M'], ['--chunksize=8M'],
                  ['-b512', '--chunksize=512'], ['-b16384', '--chunksize=32768'], ['-b65536', '--chunksize=65536']):
        for more in ([], ['-Enoinline_data'], ['-Eforce-chunk-indexes'], ['-zlz4', '-Eztailpacking']):
            made(top, *words, *more)


@test('--chunksize: what fits beside its inode stays there, but not with noinline_data or --blobdev')
def _():
    top, blob = source(little=b'x' * 100, block=b'y' * K), fresh('blob')
    is_([layout(made(top, '--chunksize=4096'), n) for n in ('little', 'block')], ['2', '4'])
    for words in (['-Enoinline_data'], ['--blobdev=' + blob]):
        image = made(top, '--chunksize=4096', *words)
        is_([layout(image, n) for n in ('little', 'block')], ['4', '4'], words)


@test('-E force-chunk-indexes, force-inode-blockmap: eight or four bytes for a chunk')
def _():
    top = source(one=(noise(1, K) + noise(2, K)) * 500 + noise(1, K))
    long, short, auto = (os.path.getsize(made(top, '--chunksize=4096', *w)) for w in
                         (['-Eforce-chunk-indexes'], ['-Eforce-inode-blockmap'], []))
    is_((auto, long - short), (short, K))
    expect(make('-Eforce-chunk-indexes', '--quiet', fresh(), top), 0, silent=True)


@test('--chunksize with -z: what shrinks is compressed, the rest is in chunks')
def _():
    top = source(text=b'again and again\n' * 5000, noise=noise(1, 20 * K), again=noise(1, 20 * K))
    image = made(top, '-zlz4', '--chunksize', '4096')
    is_([layout(image, n) for n in ('text', 'noise', 'again')], ['3', '4', '4'])
    is_(places(image, 'noise'), places(image, 'again'))


@test('--chunksize: the same bytes for every --workers')
def _():
    top = fresh('src', make=True, mode=0o755)
    forest.make_source(top)
    forest.write(os.path.join(top, 'large'), forest.pattern(random.Random(7), 10 << 20) + noise(3, 3 << 20))
    forest.write(os.path.join(top, 'large2'), noise(3, 3 << 20) + forest.pattern(random.Random(7), 10 << 20))
    for words in (['--chunksize=4096'], ['--chunksize=8M', '-zlz4']):
        results = set()
        for workers in ('1', '2', '7'):
            image, blob = fresh('img'), fresh('blob')
            expect(make(*FIXED, *words, '--blobdev=' + blob, '--workers=' + workers, image, top), 0, silent=True)
            results.add((bytes_of(image), bytes_of(blob)))
            os.unlink(image)
            os.unlink(blob)
        is_(len(results), 1, words)


@test('--blobdev: the chunks are in the device alone; fsck.erofs needs it, and Linux reads it')
def _():
    top, blob = fresh('src', make=True, mode=0o755), fresh('blob')
    forest.make_source(top)
    image = made(top, '--chunksize=4096', '--blobdev=' + blob)
    check(os.path.getsize(image) < 400000 < os.path.getsize(blob))
    is_(os.path.getsize(blob) % K, 0)
    is_({e[3] for e in extents(image, 'data/f00', '--device=' + blob) if e[2] is not None}, {1})
    expect(fsck('--workers=2', image), (4, 8))
    whole = save(bytes_of(image) + bytes_of(blob))
    expect(fsck('--workers=2', '--strict', whole), 0, silent=True)
    tools.need_root()
    done = subprocess.run(['losetup', '-f', '--show', '-r', blob], capture_output=True)
    if done.returncode:
        raise Skip('no loop device: ' + done.stderr.decode().strip())
    loop = done.stdout.decode().strip()
    try:
        with tools.Mount('-t', 'erofs', '-o', 'loop,ro,device=' + loop, image) as mount:
            got = tree.read(mount, xattrs=tools.has_xattrs())
    finally:
        subprocess.run(['losetup', '-d', loop], check=False)
    is_(tree.compare(tree.read(top, xattrs=tools.has_xattrs()), got, xattrs=tools.has_xattrs()), [])


@test('--blobdev: into the place of an old one, which stays after a failure; V16: both are left out of SOURCE')
def _():
    top = source(one=noise(1, 3 << 20))
    image, blob = os.path.join(top, 'img'), os.path.join(top, 'blob')
    words = ['-Uclear', '-T0', '--quiet', '--chunksize=4096', '--blobdev=' + blob]
    expect(make(*words, image, top), 0, silent=True)
    first = bytes_of(image), bytes_of(blob)
    expect(make(*words, image, top), 0, silent=True)
    check((bytes_of(image), bytes_of(blob)) == first, 'made again within SOURCE')
    expect(make(*words, image, top, limits=[(resource.RLIMIT_FSIZE, 1000000)]), 1, 'cannot write .*blob')
    check((bytes_of(image), bytes_of(blob)) == first, 'the old ones are there')
    is_(sorted(os.listdir(top)), ['blob', 'img', 'one'])
    shutil.rmtree(top)


@test('--chunksize and --blobdev: what makes no sense is refused, and nothing is made')
def _():
    top, image, blob = source(one=b'1'), fresh('img'), fresh('blob')
    for words, said in ((['--chunksize=1000'], 'power of two'), (['--chunksize=2048'], 'block size'),
                        (['--chunksize=2G'], 'power of two'), (['--chunksize=0'], 'power of two'),
                        (['--chunksize=x'], 'power of two'), (['--blobdev=' + blob], '--chunksize'),
                        (['--chunksize=4096', '--blobdev=' + image], 'same file'),
                        (['--chunksize=4096', '--blobdev=' + blob, '-Eforce-inode-blockmap'], 'block map'),
                        (['-E^force-chunk-indexes'], 'unknown word'),
                        (['--tar=headerball', '--chunksize=4096'], 'no contents')):
        expect(make(*FIXED, *words, image, top), 1, said)
        check(not os.path.exists(image) and not os.path.exists(blob), words)


main()
