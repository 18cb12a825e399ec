#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""X10, --salvage: bytes changed at random (fixed seed) in healthy compressed images.

Changes in data: an extent whose stored bytes were not touched is that of the healthy file, and no
range in the report overlaps it. Changes anywhere: status 0, 4, 8 or 12, no crash, the same report
and tree for every worker setting.
"""
import os
import random
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import tools  # noqa: E402
import tree  # noqa: E402
from tap import check, main, skip_all, test  # noqa: E402

if not tools.DUMP or not tools.FSCK:
    skip_all('fsck.erofs and dump.erofs not found (set FSCK, DUMP)')
ROUNDS = 3 if tools.SLOW else 10
IMAGES = ('data-lz4', 'data-lz4-legacy', 'data-lz4hc-16k', 'data-zstd', 'data-lzma', 'data-deflate',
          'big-zstd-1m')
ROW = r'^ *\d+: *(\d+)\.\. *(\d+) \| *\d+ : *(\d+)\.\. *(\d+) \| *\d+'


def extents(image, path):
    """(logical start, end, physical start, end) as dump.erofs -e shows them."""
    result = tools.dump('-e', '--path=' + path, image)
    return [tuple(map(int, row)) for row in re.findall(ROW, result.out.decode('latin-1'), re.M)]


def named(result, path):
    text = r': %s \(nid \d+\) @ 0x([0-9a-f]+): (\d+) bytes cannot' % re.escape(path)
    return [(int(a, 16), int(a, 16) + int(n)) for a, n in re.findall(text, result.text)]


def salvage(image, box, workers='2'):
    target = os.path.join(box, 'x')
    tree.remove(target)
    result = tools.fsck('--no-sbcrc', '--salvage', '--workers=' + workers, '--extract=' + target,
                        image)
    fault = tools.sane(result)
    check(not fault and result.status in (0, 4, 8, 12), fault, result)
    return result, target


def healthy(image, box):
    target = os.path.join(box, 'base')
    tools.expect(tools.fsck('--extract=' + target, image), 0)
    files = {}
    for path, entry in tree.read(target).items():
        if entry.kind == 'file' and entry.size:
            name = os.fsdecode(path[1:])
            with open(target + name, 'rb') as file:
                files[name] = file.read(), extents(image, name)
    return files


def compare(files, target, result, changed):
    touched = 0
    for name, (wanted, parts) in files.items():
        check(os.path.exists(target + name), name, 'is missing', result)
        with open(target + name, 'rb') as file:
            got = file.read()
        check(len(got) == len(wanted), name, 'has another size')
        ranges = named(result, name)
        for start, end in ranges:
            check(not any(got[start:end]), name, 'no zeros in', start, end)
        for la, la_end, pa, pa_end in parts:
            if pa == pa_end or any(pa <= at < pa_end for at in changed):
                touched += 1
                continue
            check(got[la:la_end] == wanted[la:la_end], name, 'differs in', la, la_end, ranges)
            check(not any(a < la_end and la < b for a, b in ranges), name, 'sound, but named:', la,
                  la_end, ranges)
    return touched


def change(source, image, rng, places):
    with open(source, 'rb') as file:
        data = bytearray(file.read())
    for at in places:
        data[at] ^= rng.randrange(1, 256)
    with open(image, 'wb') as file:
        file.write(data)


def flips_in_data(name):
    source = tools.corpus('good', name + '.erofs')
    box = tools.fresh('flips', make=True)
    image = os.path.join(box, 'image')
    rng = random.Random(name)
    files = healthy(source, box)
    stored = sorted({(pa, end) for _, parts in files.values() for _, _, pa, end in parts
                     if end > pa})
    check(stored, 'no extents were listed')
    lost = touched = 0
    for _ in range(ROUNDS):
        spans = rng.sample(stored, min(6, len(stored)))
        places = {rng.randrange(pa, end) for pa, end in spans for _ in range(3)}
        change(source, image, rng, places)
        result, target = salvage(image, box)
        touched += compare(files, target, result, places)
        lost += result.text.count('are zeros')
    check(touched and lost, 'nothing was lost: this proves nothing')
    tree.remove(box)


def flips_anywhere(name):
    source = tools.corpus('good', name + '.erofs')
    box = tools.fresh('flips', make=True)
    image = os.path.join(box, 'image')
    rng = random.Random(name + '2')
    size = os.path.getsize(source)
    for _ in range(ROUNDS):
        places = {rng.randrange(1152, size if rng.random() < 0.5 else min(size, 20000))
                  for _ in range(20)}
        change(source, image, rng, places)
        seen = []
        for workers in tools.WORKERS:
            result, target = salvage(image, box, workers)
            seen.append((result.status, result.err, os.path.isdir(target) and {
                p: (e.kind, e.size, e.digest)
                for p, e in tree.read(target, data=64 << 20).items()}))
        check(all(s == seen[0] for s in seen), 'not the same for every worker setting', places)
    tree.remove(box)


for image_name in IMAGES:
    test('X10: sound extents beside broken ones, %s' % image_name)(
        lambda name=image_name: flips_in_data(name))
    test('X10: changes anywhere, %s' % image_name)(lambda name=image_name: flips_anywhere(name))
main()
