#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Seven workers at once on everything that mkfs.erofs does in parallel: small enough for ThreadSanitizer.

Each image is read back by --verify, and its --manifest, the source and an archive of it are compared with it.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import roundtrip  # noqa: E402
import tools  # noqa: E402
from tap import Failure, Tap  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')

WORKERS = '--workers=7'
TIMEOUT = 600
OPTIONS = (
    [], ['--chunksize=4096'], ['-zlz4', '-C65536', '-Eall-fragments,dedupe'],
    ['-zlz4hc,9', '-C16384', '-Eztailpacking,legacy-compress'], ['-zzstd,1', '-C65536', '-Efragments,dedupe,48bit'],
    ['-zdeflate,1', '-C4096', '-Efragments'], ['-zlzma,1:lz4', '-C16384', '-Ededupe'],
)
HAS_TAR = 'libarchive, which is not there' not in tools.make('--tar=f', tools.fresh(), '/dev/null').text
CODECS = tools.make('--version').out.decode().replace(',', ' ').split()


def codecs_of(words):
    return [c.split(',')[0] for w in words if w.startswith('-z') for c in w[2:].split(':')]


def verified(picture, *sources):
    for source in sources:
        tools.expect(tools.fsck(WORKERS, '--verify=' + source, picture, timeout=TIMEOUT), 0, silent=True)


def round_trip(source, words):
    picture, again, manifest = tools.fresh('made'), tools.fresh('again'), tools.fresh('manifest')
    make = [*roundtrip.FIXED, '--verify', WORKERS, *words]
    tools.expect(tools.make(*make, '--manifest=' + manifest, picture, source, timeout=TIMEOUT), 0, silent=True)
    verified(picture, 'dir:' + source, 'mtree:' + manifest)
    if HAS_TAR:
        archive = tools.save(tools.expect(tools.dump(WORKERS, '--to-tar', picture, timeout=TIMEOUT), 0).out)
        tools.expect(tools.make(*make, '--tar=f', again, archive, timeout=TIMEOUT), 0, silent=True)
        verified(again, 'tar:' + archive, 'mtree:' + manifest)


def main():
    tap = Tap()
    source = tools.fresh('source', make=True, mode=0o755)
    forest.make_borders(source)
    forest.grow(os.path.join(source, 'random'), 3)
    for words in OPTIONS:
        title = 'mkfs.erofs %s %s' % (WORKERS, ' '.join(words))
        missing = [c for c in codecs_of(words) if c not in CODECS]
        if missing:
            tap.skip(title, 'built without ' + ', '.join(missing))
            continue
        try:
            round_trip(source, words)
        except Failure as why:
            tap.line(False, title, why)
        else:
            tap.line(True, title)
    tap.done()


main()
