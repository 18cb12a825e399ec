#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Images made here and now by a released mkfs.erofs: extracted and compared with what Linux shows.

Where the kernel may not be asked (no root, no erofs, blocks larger than pages) the tree that
went in is what is compared with.
"""
import os
import random
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import samples  # noqa: E402
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


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(data)


def pattern(dice, size):
    """Bytes that are partly text, partly noise, partly repeated from far away."""
    out = bytearray()
    while len(out) < size:
        kind = dice.randrange(5)
        if kind == 0:
            out += dice.randbytes(dice.randrange(1, 6000))
        elif kind == 1:
            out += bytes(dice.randrange(1, 20000))
        elif kind == 2 and len(out) > 40000:
            start = len(out) - dice.randrange(30000, 40000)
            out += out[start:start + dice.randrange(100, 9000)]
        else:
            word = b'%d lines and %x\n' % (dice.randrange(9999), dice.getrandbits(40))
            out += word * dice.randrange(1, 300)
    return bytes(out[:size])


def make_source(top):
    """A tree of a few hundred names and some megabytes; with attributes where allowed."""
    dice = random.Random(42)
    for n in range(12):
        write(os.path.join(top, 'data', 'f%02d' % n), pattern(dice, dice.randrange(1, 400000)))
    for size in (0, 1, 511, 512, 513, 4095, 4096, 4097, 8191, 8192, 12288, 65535, 65536, 131073):
        write(os.path.join(top, 'edge', '%06d' % size), pattern(dice, size))
        write(os.path.join(top, 'noise', '%06d' % size), dice.randbytes(size))
    for n in range(150):
        write(os.path.join(top, 'small', 'd%d' % (n % 5), 's%03d' % n), pattern(dice, n * 13))
    whole = pattern(dice, 300000)
    write(os.path.join(top, 'same', 'one'), whole)
    write(os.path.join(top, 'same', 'two'), whole)
    write(os.path.join(top, 'same', 'shifted'), b'xyz' + whole)
    write(os.path.join(top, 'same', 'part'), whole[100000:200000])
    write(os.path.join(top, 'zeros'), bytes(3000000))
    with open(os.path.join(top, 'sparse'), 'wb') as file:
        file.truncate(1000000)
        file.seek(500000)
        file.write(b'in the middle')
    os.makedirs(os.path.join(top, 'empty', 'folder'))
    os.link(os.path.join(top, 'zeros'), os.path.join(top, 'small', 'link-of-zeros'))
    os.symlink('data/f00', os.path.join(top, 'symlink'))
    os.symlink('t' * 4000, os.path.join(top, 'long-symlink'))
    os.mkfifo(os.path.join(top, 'fifo'))
    os.chmod(os.path.join(top, 'data', 'f01'), 0o600)
    os.utime(os.path.join(top, 'data', 'f02'), ns=(0, 1234567890123456789))
    if tools.has_xattrs():
        for n in range(40):
            os.setxattr(os.path.join(top, 'small', 'd0', 's%03d' % (n // 8 * 5)),
                        'user.shared%d' % (n % 8), b'the same value')
        os.setxattr(os.path.join(top, 'data', 'f03'), 'user.big', dice.randbytes(2500))
    if tools.ROOT:
        os.chown(os.path.join(top, 'data', 'f04'), 70000, 80000)
        os.mknod(os.path.join(top, 'device'), stat.S_IFCHR | 0o640, os.makedev(5, 1))
        os.chmod(os.path.join(top, 'data', 'f05'), 0o6755)
        if tools.has_xattrs():
            os.setxattr(os.path.join(top, 'data', 'f06'), 'security.capability',
                        samples.CAPABILITY)
            os.setxattr(os.path.join(top, 'data', 'f06'), 'trusted.note', b'\0')
            os.setxattr(os.path.join(top, 'data', 'f07'), 'system.posix_acl_access', samples.ACL)


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
    make_source(source)
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
