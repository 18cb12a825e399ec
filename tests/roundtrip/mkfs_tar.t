#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Random trees (SEEDS, a number) as archives and back: what Linux shows of an image that was made of an
archive is the tree, an index with its archive shows the same, and the archive of either is the archive."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Failure, Skip, Tap, skip_all  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')
if 'libarchive, which is not there' in tools.make('--tar', tools.fresh(), '/dev/null').text:
    skip_all('built without libarchive')

FIXED = ['-T1700000000', '--mkfs-time', '-Uclear', '--quiet']
SEEDS = int(os.environ.get('SEEDS') or (4 if tools.SLOW else 30))


def made(*words):
    picture = tools.fresh('made')
    tools.expect(tools.make(*FIXED, *words[:-1], picture, words[-1], timeout=300), 0, silent=True)
    return picture


def archive(picture):
    tools.expect(tools.fsck('--workers=2', '--strict', picture), 0, silent=True)
    return tools.expect(tools.dump('--to-tar', picture), 0).out


def demand(faults, what):
    if faults:
        raise Failure('%s:\n%s' % (what, '\n'.join(faults[:10])))


def mounted(picture):
    with tools.Mount('-t', 'erofs', '-o', 'loop,ro', picture) as mount:
        return tree.read(mount, xattrs=tools.has_xattrs())


def round_trip(source):
    wanted = tree.read(source, xattrs=tools.has_xattrs())
    whole = archive(made(source))
    path = tools.save(whole)
    image, index = made('--tar=f', path), made('--tar=i', path)
    with open(index, 'ab') as file:
        file.write(whole)
    if archive(image) != whole:
        raise Failure('the archive of the image of the archive is another one')
    if archive(index) != whole:
        raise Failure('the archive of the index of the archive is another one')
    demand(tree.compare(wanted, mounted(image), xattrs=tools.has_xattrs()), 'mounted')
    demand(tree.compare(wanted, mounted(index), xattrs=tools.has_xattrs()), 'index, mounted')


def main():
    tap = Tap()
    for seed in range(SEEDS):
        source, title = tools.fresh('random'), 'random tree %d' % seed
        forest.grow(source, seed)
        try:
            round_trip(source)
        except Skip as why:
            tap.line(True, '%s (not mounted: %s)' % (title, why))
        except Failure as why:
            tap.line(False, title, why)
        else:
            tap.line(True, title)
        tree.remove(source)
    tap.done()


main()
