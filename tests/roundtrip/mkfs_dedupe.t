#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""-E dedupe: what is there twice is stored once, and Linux shows the source.

Copies that begin with a pcluster's contents and end with one are told by compact indexes; those that end
within a pcluster need full ones, and so do twins beside others in neighbouring lclusters, which share an address
(format.md 9.2, 9.12).
"""
import os
import random
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import roundtrip  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Failure, Skip, Tap  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')
if tools.SLOW:
    print('1..0 # SKIP slow under this sanitizer: mkfs_z.t has a sample with dedupe')
    sys.exit(0)

MIB = 1 << 20
EACH = (('--workers=1',), ('--workers=7',))
FULL, COMPACT = 1, 3
tap = Tap()


def grow(top):
    """What lies between a file and its copies is more than what is in flight: format.md knows no distance, we do."""
    dice = random.Random(12)
    body = forest.pattern(dice, 3 * MIB)
    forest.write(os.path.join(top, 'a'), body)
    forest.write(os.path.join(top, 'b-between'), forest.pattern(dice, 40 * MIB))
    forest.write(os.path.join(top, 'c-equal'), body)
    forest.write(os.path.join(top, 'd-shifted'), forest.pattern(dice, 5001) + body)
    forest.write(os.path.join(top, 'e-changed'), body[:MIB] + b'!' + body[MIB + 1:])
    forest.write(os.path.join(top, 'f-short'), body[:MIB + 77])


def layout_of(picture, name):
    text = tools.expect(tools.dump('--path=/' + name, picture), 0).out.decode()
    return int(re.search(r'Layout: (\d)', text).group(1))


def made(words):
    run = tools.expect(tools.make('-T1', '-Uclear', *words, tools.fresh('i'), source), 0)
    return int(re.search(rb'deduplicated bytes \(of source files\): (\d+)', run.out).group(1))


def check_words(words, layout):
    roundtrip.run(source, words, EACH, seen, timeout=300)
    plain, found = made([w for w in words if 'dedupe' not in w]), made(words)
    if plain or found < 7 * MIB:
        raise Failure('of 10 MiB that are there twice %d bytes were found' % found)
    if layout:
        picture = roundtrip.make_image(source, words)
        got = layout_of(picture, 'c-equal')
        if got != layout:
            raise Failure('the copy has layout %d, not %d' % (got, layout))
        return 'layout %d' % got
    return None


source = tools.fresh('twice', make=True, mode=0o755)
grow(source)
seen = tree.read(source, xattrs=tools.has_xattrs())
for words, layout in (
        (['-zlz4', '-Ededupe'], FULL), (['-zlz4', '-C65536', '-Ededupe'], COMPACT),
        (['-zlz4', '-C65536', '-Ededupe,legacy-compress'], FULL), (['-zlz4', '-C65536', '-E48bit,dedupe'], FULL),
        (['-zzstd,1', '-C16384', '-Ededupe,ztailpacking'], 0), (['-zlz4', '-b512', '-C4096', '-Ededupe'], FULL),
        (['-zlz4', '-b16384', '-C65536', '-Ededupe'], COMPACT), (['-zlz4', '-b65536', '-C65536', '-Ededupe'], FULL),
        (['-zlz4', '-C65536', '-Ededupe,fragments'], 0)):
    title = ' '.join(words)
    try:
        note = check_words(words, layout)
    except Skip as why:
        tap.skip(title, why)
    except Failure as why:
        tap.line(False, title, str(why))
    else:
        tap.line(True, title + (' (%s)' % note if note else ''))


def few_twins():
    """One short twin in a packed file of 40 MiB would make its map longer than what it saves."""
    top = tools.fresh('few', make=True, mode=0o755)
    dice = random.Random(13)
    words = [dice.randbytes(3).hex() for _ in range(500)]
    body = ' '.join(dice.choices(words, k=MIB // 7)).encode()
    forest.write(os.path.join(top, 'a'), body)
    forest.write(os.path.join(top, 'b-between'), forest.pattern(dice, 40 * MIB))
    forest.write(os.path.join(top, 'c'), dice.randbytes(5000) + body[100000:130000] + dice.randbytes(5000))
    sizes = []
    for more in ('all-fragments', 'all-fragments,dedupe'):
        words = ['-zlz4', '-C4096', '-E' + more]
        roundtrip.run(top, words, EACH, timeout=300)
        picture = roundtrip.make_image(top, words)
        sizes.append(os.stat(picture).st_size)
    # the extent in front of a twin ends before its pcluster is full; the longer map would take five blocks
    if sizes[1] > sizes[0] + 2 * 4096:
        raise Failure('with dedupe it is larger: %d and %d bytes' % tuple(sizes))


try:
    few_twins()
except (Failure, Skip) as why:
    tap.line(False, 'dedupe of little', str(why))
else:
    tap.line(True, 'dedupe of little leaves the map short')
tap.done()
