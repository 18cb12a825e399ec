#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Images made by our mkfs.erofs: Linux shows the source, every checker accepts them.

Trees: one with a bit of everything for each set of options, random ones of fixed seeds (SEEDS, a
number) with options drawn by the seed. An image must be the same byte for byte when made again.
"""
import filecmp
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Failure, Skip, Tap  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')

FIXED = ['-T1700000000', '--mkfs-time', '-Uclear', '--quiet']
OPTIONS = [
    [], ['-Enoinline_data'], ['-Eforce-inode-extended'], ['-x0'], ['-x1000000'],
    ['-b512'], ['-b1024', '-Enoinline_data'], ['-b2048', '-E^xattr-name-filter'],
    ['-b8192'], ['-b16384'], ['-b65536', '-Enosbcrc'],
    ['--xattr-prefix=user.', '--xattr-prefix=user.long', '--xattr-inode-digest'], ['-Edot-omitted'],
    ['--chunksize=4096'], ['--chunksize=64K', '-Eforce-chunk-indexes', '-Enoinline_data'], ['-b512', '--chunksize=512'],
]
SEEDS = int(os.environ.get('SEEDS') or (4 if tools.SLOW else 30))
PEER_FSCK = os.path.join(tools.PEER, 'fsck.erofs') if tools.PEER else None
PAGE = os.sysconf('SC_PAGESIZE')


def block_size(words):
    return max([4096] + [int(w[2:]) for w in words if w.startswith('-b')]) \
        if any(w.startswith('-b') for w in words) else 4096


def shown_by_linux(picture, words):
    if block_size(words) > PAGE:
        raise Skip('Linux mounts no blocks larger than pages')
    with tools.Mount('-t', 'erofs', '-o', 'loop,ro', picture) as mount:
        return tree.read(mount, xattrs=tools.has_xattrs())


def demand(faults, what):
    if faults:
        raise Failure('%s:\n%s' % (what, '\n'.join(faults[:10])))


def make_image(source, words):
    """The image, made twice."""
    picture, again = tools.fresh('made'), tools.fresh('again')
    for path in (picture, again):
        tools.expect(tools.make(*FIXED, *words, path, source, timeout=300), 0, silent=True)
    if not filecmp.cmp(picture, again, shallow=False):
        raise Failure('made twice, the images differ')
    os.unlink(again)
    return picture


def check_ours(picture, wanted):
    tools.expect(tools.fsck('--workers=2', '--strict', picture), 0, silent=True)
    target = tools.fresh('out')
    xattrs = ['--xattrs'] if tools.has_xattrs() else []
    tools.expect(tools.fsck('--workers=2', '--extract=' + target, *xattrs, picture), 0)
    got = tree.read(target, xattrs=bool(xattrs))
    tree.remove(target)
    demand(tree.compare(wanted, got, probe=tools.scratch(), xattrs=bool(xattrs) and tools.ROOT,
                        owner=tools.ROOT, mode=tools.ROOT), 'extracted')


def check_peer(picture, words):
    if not PEER_FSCK:
        return
    if block_size(words) > 4096:
        return      # a released build takes blocks up to the page size of its builder
    done = subprocess.run([PEER_FSCK, '-d0', '--extract', picture], capture_output=True, timeout=300)
    if done.returncode:
        raise Failure('fsck.erofs of %s: %s' % (tools.PEER, done.stderr.decode()[-500:]))


def round_trip(source, words):
    wanted = tree.read(source, xattrs=tools.has_xattrs())
    picture = make_image(source, words)
    check_ours(picture, wanted)
    check_peer(picture, words)
    try:
        shown = shown_by_linux(picture, words)
    except Skip as why:
        os.unlink(picture)
        return 'not mounted: %s' % why
    os.unlink(picture)
    demand(tree.compare(wanted, shown, xattrs=tools.has_xattrs()), 'mounted')
    return ''


def report(tap, title, source, words):
    try:
        note = round_trip(source, words)
    except (Failure, OSError, subprocess.TimeoutExpired) as why:
        tap.line(False, title, why)
    else:
        tap.line(True, title + (' (%s)' % note if note else ''))


def main():
    tap = Tap()
    source = tools.fresh('source', make=True, mode=0o755)
    forest.make_source(source)
    for words in OPTIONS:
        report(tap, 'mkfs.erofs ' + ' '.join(words), source, words)
    for seed in range(SEEDS):
        source = tools.fresh('random')
        forest.grow(source, seed)
        words = random.Random(seed).choice(OPTIONS)
        report(tap, 'random tree %d, mkfs.erofs %s' % (seed, ' '.join(words)), source, words)
        tree.remove(source)
    tap.done()


main()
