#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Images made here and now by a released mkfs.erofs: extracted and compared with what Linux shows.

Where the kernel may not be asked (no root, no erofs, blocks larger than pages) the tree that
went in is what is compared with.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Failure, Skip, Tap, skip_all  # noqa: E402

tools.need(tools.FSCK, 'fsck.erofs')

OPTIONS = [
    [], ['-Enoinline_data', '-b512'], ['--chunksize=4096'],
    ['-zlz4'], ['-zlz4hc,9', '-C65536', '-Eztailpacking'], ['-zlz4', '-Elegacy-compress'],
    ['-zlz4', '-C65536', '-Eall-fragments,dedupe'], ['-zlz4hc', '-C16384', '-Efragments,dedupe'],
    ['-zlzma', '-C131072'], ['-zlzma,6', '-Efragments'], ['-zdeflate,9', '-C16384'],
    ['-zlibdeflate,9', '-Eztailpacking'], ['-zzstd', '-C65536'],
    ['-zzstd,15', '-E48bit', '-C65536', '--max-extent-bytes=65536'],
    ['-zzstd', '-Eall-fragments,dedupe,fragdedupe=full', '-C1048576'],
    ['-zlz4', '-C16384', '--MZ', '-m4096:lz4'], ['-zlz4', '-b1024', '-C8192'],
]


def what_linux_shows(picture, source):
    """(tree, where it comes from)."""
    if tools.ROOT:
        try:
            with tools.Mount('-t', 'erofs', '-o', 'loop,ro', picture) as mount:
                return tree.read(mount, xattrs=tools.has_xattrs()), 'Linux'
        except (Skip, OSError):
            pass
    return tree.read(source, xattrs=tools.has_xattrs()), 'the source'


def compare(picture, wanted, where, workers):
    xattrs = ['--xattrs'] if tools.has_xattrs() else []
    target = tools.fresh()
    tools.expect(tools.fsck('--workers=' + workers, picture), 0, silent=True)
    tools.expect(tools.fsck('--workers=' + workers, '--extract=' + target, *xattrs, picture), 0)
    got = tree.read(target, xattrs=bool(xattrs))
    tree.remove(target)
    exact = where == 'Linux'
    faults = tree.compare(wanted, got, probe=tools.scratch(), xattrs=exact and bool(xattrs),
                          times=exact, owner=exact or tools.ROOT, mode=tools.ROOT)
    if faults:
        raise Failure('\n'.join(faults[:10]))


def main():
    try:
        tools.mkfs_tool()
    except Skip as why:
        skip_all(str(why))
    source = tools.fresh('source', make=True, mode=0o755)
    forest.make_source(source)
    tap = Tap()
    for words in OPTIONS:
        name = 'mkfs.erofs ' + ' '.join(words)
        picture = tools.fresh('made')
        done = subprocess.run([tools.mkfs_tool(), '--quiet', '--preserve-mtime', *words, picture,
                               source], capture_output=True, timeout=300)
        if done.returncode:
            tap.skip(name, 'not made: ' + done.stderr.decode().strip()[-100:].replace('\n', ' '))
            continue
        wanted, where = what_linux_shows(picture, source)
        if not tools.ROOT:
            wanted = tree.for_user(wanted, os.getuid(), os.getgid(), 0o022)
        for workers in tools.WORKERS:
            title = '%s, workers=%s: as %s shows it' % (name, workers, where)
            try:
                compare(picture, wanted, where, workers)
            except Failure as why:
                tap.line(False, title, why)
            else:
                tap.line(True, title)
        os.unlink(picture)
    tap.done()


main()
