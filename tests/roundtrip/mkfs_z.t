#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compressed images made by our mkfs.erofs: Linux shows the source, every checker accepts them, and they
are the same byte for byte whoever makes them.

The matrix is layout, kind of tail, algorithm, -C and -b; each pair of two of its values is met. FULL=1: all
of it, which takes an hour. Random trees of fixed seeds (SEEDS, a number) with options drawn by the seed.
T picks by words of the titles.
"""
import itertools
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import roundtrip  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Failure, Skip, Tap  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')

MIB = 1 << 20
LAYOUTS = ('', 'legacy-compress', '48bit')
TAILS = ('', 'ztailpacking', 'fragments', 'fragments,ztailpacking', 'all-fragments', 'all-fragments,dedupe', 'dedupe')
CODECS = ('lz4', 'lz4hc,9', 'lzma,1', 'deflate', 'libdeflate', 'zstd')
PCLUSTERS = (4096, 16384, 65536, MIB)
BLOCKS = (512, 1024, 4096, 16384, 65536)
AXES = (LAYOUTS, TAILS, CODECS, PCLUSTERS, BLOCKS)
EACH = (('--workers=1',), ('--workers=2',), ('--workers=7',), ('--workers=2',))
FULL = bool(os.environ.get('FULL'))
SEEDS = int(os.environ.get('SEEDS') or (4 if tools.SLOW else 40))
T = os.environ.get('T', '').lower().split()
TIMEOUT = 1200 if tools.SLOW else 300


def valid(point):
    return point[3] % point[4] == 0


def words_of(layout, tail, codec, pcluster, block):
    extra = ','.join(filter(None, (layout, tail)))
    return ['-z' + codec, '-C%d' % pcluster, '-b%d' % block] + (['-E' + extra] if extra else [])


def pairs_of(point):
    return {(i, point[i], k, point[k]) for i, k in itertools.combinations(range(len(point)), 2)}


def sample(points):
    """Points such that each pair of values that one has is in one of these."""
    wanted = set().union(*map(pairs_of, points))
    dice, out = random.Random(6), []
    while wanted:
        few = dice.sample(points, min(300, len(points)))
        best = max(few, key=lambda p: len(pairs_of(p) & wanted))
        if not pairs_of(best) & wanted:
            best = next(p for p in points if pairs_of(p) & wanted)
        wanted -= pairs_of(best)
        out.append(best)
    return out


def matrix():
    points = list(filter(valid, itertools.product(*AXES)))
    if not FULL:
        points = sample(points)[::10 if tools.SLOW else 1]
    return [words_of(*p) for p in points]


def known_codecs():
    text = tools.make('--version').out.decode()
    return [c for c in CODECS if c.split(',')[0] in text.split('\n')[1].replace(',', ' ').split()]


class Report:
    """Many at a time; results in order."""

    def __init__(self):
        self.tap = Tap()
        self.pool = ThreadPoolExecutor(1 if tools.SLOW else tools.JOBS)
        self.waiting = []

    def add(self, title, function, *args, **more):
        if not T or any(word in title.lower() for word in T):
            self.waiting.append((title, self.pool.submit(function, *args, **more)))
            # sources are made as they are needed: not all at once
            if len(self.waiting) > 2 * tools.JOBS:
                self.show()

    def show(self):
        title, future = self.waiting.pop(0)
        try:
            note = future.result()
        except Skip as why:
            self.tap.skip(title, why)
        except Exception as why:
            self.tap.line(False, title, '%s: %s' % (type(why).__name__, why))
        else:
            self.tap.line(True, title + (' (%s)' % note if note else ''))

    def done(self):
        while self.waiting:
            self.show()
        self.tap.done()


def draw(dice, codecs):
    """Options by chance."""
    while True:
        point = [dice.choice(axis) for axis in (LAYOUTS, TAILS, codecs, PCLUSTERS, BLOCKS)]
        if valid(point):
            break
    words = words_of(*point)
    more = ('-Enoinline_data', '-Eforce-inode-extended', '-x0', '--max-extent-bytes=%d' % dice.choice(
        (1, point[4], 3 * point[4], 70000)), '-Efragments=%d' % max(16384, point[4]), '-E^xattr-name-filter')
    return words + [w for w in more if dice.randrange(4) == 0]


def random_tree(seed, words):
    source = tools.fresh('random')
    forest.grow(source, seed)
    try:
        return roundtrip.run(source, words, EACH[:2], timeout=TIMEOUT)
    finally:
        tree.remove(source)


def packed_tails(seed, words):
    """format.md, pitfall 16: the packed file's own end is noise, and lies beside its inode."""
    dice = random.Random(seed)
    source = tools.fresh('tails')
    for n in range(dice.randrange(1, 12)):
        forest.write(os.path.join(source, 'f%02d' % n), dice.choice((
            dice.randbytes(dice.randrange(1, 9000)), forest.pattern(dice, dice.randrange(1, 30000)))))
    try:
        return roundtrip.run(source, words, EACH[:2], timeout=TIMEOUT)
    finally:
        tree.remove(source)


def large_files(top):
    dice = random.Random(11)
    text = forest.pattern(dice, 3 * MIB + 12345)
    noise = dice.randbytes(5 * MIB + 1)
    repeated = bytearray()
    while len(repeated) < 40 * MIB:
        start = dice.randrange(len(text) - 200000)
        repeated += text[start:start + dice.randrange(1000, 200000)]
        if dice.randrange(8) == 0:
            repeated += dice.randbytes(dice.randrange(1, 9000))
    forest.write(os.path.join(top, 'repeated'), bytes(repeated))
    forest.write(os.path.join(top, 'noise'), noise * 2)
    forest.write(os.path.join(top, 'half'), forest.pattern(dice, 4 * MIB + 7) + noise)
    forest.write(os.path.join(top, 'half-turned'), noise[:4 * MIB - 100] + text)
    forest.write(os.path.join(top, 'zeros'), bytes(30 * MIB + 1))
    for more in (-1, 0, 1):
        forest.write(os.path.join(top, 'segment%d' % more), (text + text)[:4 * MIB + more])
    forest.write(os.path.join(top, 'two-segments'), bytes(4 * MIB) + noise[:4 * MIB])


LARGE = (
    ['-zlz4'], ['-zlz4', '-C65536', '-Ededupe'], ['-zlz4', '-C1048576', '-Eall-fragments,dedupe'],
    ['-zlz4hc,9', '-C16384', '-Elegacy-compress,fragments'], ['-zzstd,1', '-C65536', '-Eztailpacking,dedupe'],
    ['-zzstd', '-C1048576', '-E48bit,fragments,dedupe'], ['-zlibdeflate,1', '-b512', '-C4096', '-Eztailpacking'],
    ['-zdeflate,1', '-C131072', '-b16384', '-Efragments'],
)


def with_hints(source):
    """--compress-hints: pclusters of three sizes, three algorithms, files left alone."""
    hints = tools.save(b'# the first that fits counts\n0 /noise|small/s00\n4096 1 ^k1/\n65536 2 same/\n16384 2 k[02]\n')
    for layout in LAYOUTS:
        for tail in TAILS:
            extra = ','.join(filter(None, (layout, tail)))
            words = ['-zlz4:lzma,1:zstd,1', '-C32768', '--compress-hints=' + hints] + (['-E' + extra] if extra else [])
            yield words


def main():
    codecs = known_codecs()
    report = Report()
    source = tools.fresh('source', make=True, mode=0o755)
    forest.make_borders(source)
    wanted = tree.read(source, xattrs=tools.has_xattrs())

    def same(words):
        return roundtrip.run(source, words, EACH, wanted, timeout=TIMEOUT)

    for words in matrix():
        if words[0][2:] in codecs:
            report.add('matrix: ' + ' '.join(words), same, words)
    if len(codecs) == len(CODECS):
        for words in list(with_hints(source))[::1 if FULL else 4]:
            report.add('hints: ' + ' '.join(words), same, words)
    for number in (1, 511, 4096, 5000, 65536):
        for layout in LAYOUTS:
            words = ['-zlz4', '-C16384', '--max-extent-bytes=%d' % number] + (['-E' + layout] if layout else [])
            report.add('extents: ' + ' '.join(words), same, words)
    for seed in range(SEEDS):
        words = draw(random.Random(seed + 1000), codecs)
        report.add('random tree %d: %s' % (seed, ' '.join(words)), random_tree, seed, words)
    for seed in range(SEEDS):
        words = ['-z' + codecs[seed % len(codecs)], '-Efragments,ztailpacking', '-C%d' % PCLUSTERS[seed % 3]]
        report.add('packed tail %d: %s' % (seed, ' '.join(words)), packed_tails, seed, words)
    large = tools.fresh('large', make=True, mode=0o755)
    chosen = [w for w in LARGE if w[0][2:].split(',')[0] in [c.split(',')[0] for c in codecs]]
    if not tools.SLOW and (not T or 'large' in T):
        large_files(large)
        seen = tree.read(large)
        for words in chosen if FULL else chosen[1::3]:
            report.add('large files: ' + ' '.join(words), roundtrip.run, large, words, EACH[1:3], seen, timeout=TIMEOUT)
    report.done()


if __name__ == '__main__':
    try:
        main()
    except Failure as why:
        sys.exit(str(why))
