#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Images made by our mkfs.erofs: Linux shows the source, every checker accepts them.

Trees: one with a bit of everything for each set of options, random ones of fixed seeds (SEEDS, a
number) with options drawn by the seed. An image must be the same byte for byte when made again.
"""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import roundtrip  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Tap  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')

OPTIONS = [
    [], ['-Enoinline_data'], ['-Eforce-inode-extended'], ['-x0'], ['-x1000000'],
    ['-b512'], ['-b1024', '-Enoinline_data'], ['-b2048', '-E^xattr-name-filter'],
    ['-b8192'], ['-b16384'], ['-b65536', '-Enosbcrc'],
    ['--xattr-prefix=user.', '--xattr-prefix=user.long', '--xattr-inode-digest'], ['-Edot-omitted'],
    ['--chunksize=4096'], ['--chunksize=64K', '-Eforce-chunk-indexes', '-Enoinline_data'], ['-b512', '--chunksize=512'],
]
SEEDS = int(os.environ.get('SEEDS') or (4 if tools.SLOW else 30))


def main():
    tap = Tap()
    source = tools.fresh('source', make=True, mode=0o755)
    forest.make_source(source)
    for words in OPTIONS:
        roundtrip.report(tap, 'mkfs.erofs ' + ' '.join(words), source, words)
    for seed in range(SEEDS):
        source = tools.fresh('random')
        forest.grow(source, seed)
        words = random.Random(seed).choice(OPTIONS)
        roundtrip.report(tap, 'random tree %d, mkfs.erofs %s' % (seed, ' '.join(words)), source, words)
        tree.remove(source)
    tap.done()


main()
