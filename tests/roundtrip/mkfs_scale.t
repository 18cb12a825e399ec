#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Images of what there is much of, made by our mkfs.erofs: files, attributes, bytes of one file, bytes of a
symbolic link. Linux shows the source, fsck.erofs --verify=dir finds it in the image, one worker and seven make
the same bytes, and memory is bounded.

FULL=1: a million files, 100,000 attributes, a file of 6 GiB in every layout; minutes, and 13 GiB of scratch space,
which is memory unless TMPDIR names a disk.
"""
import os
import stat
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import roundtrip  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Failure, Skip, check, is_, main, test  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')

MIB, GIB = 1 << 20, 1 << 30
FULL = bool(os.environ.get('FULL'))
EACH = (1, 7)            # workers
TIMEOUT = 3000 if FULL else 300
FILES = 1000000 if FULL else 10000
XATTRS = 100000 if FULL else 1000
SPARSE = 6 * GIB if FULL else 5 * GIB
IN_DIR = 500            # files
ON_FILE = 10            # attributes
# mkfs.erofs may have so much resident with two workers, and for each name and each worker more; this program
# has less, or its own would be measured
BASE, A_NAME, A_WORKER = 40 * MIB, 220, 12 * MIB


def room(size, names=0):
    info = os.statvfs(tools.scratch())
    if info.f_bavail * info.f_frsize < size or (info.f_files and info.f_favail < names):
        raise Skip('%d MiB and %d inodes of scratch space are not there' % (size >> 20, names))


def image_of(source, words, names=0):
    """Made by one worker and by seven, within the bound of memory; the same bytes."""
    pictures = []
    for workers in EACH:
        picture = tools.fresh('made')
        done = tools.make(*roundtrip.FIXED, *words, '--workers=%d' % workers, picture, source, timeout=TIMEOUT)
        tools.expect(done, 0, silent=True)
        bound = BASE + A_NAME * names + A_WORKER * max(workers - 2, 0)
        text = '%d workers: %.1f MiB resident, allowed are %.1f' % (workers, done.rss / MIB, bound / MIB)
        check(tools.SLOW or done.rss <= bound, text)
        if os.environ.get('TIMES'):
            print('# %s; %.1f s' % (text, done.seconds))
        pictures.append(picture)
    if not same_bytes(*pictures):
        raise Failure('the images of one worker and of seven differ')
    os.unlink(pictures[1])
    return pictures[0]


def same_bytes(one, two):
    if os.path.getsize(one) != os.path.getsize(two):
        return False
    with open(one, 'rb') as first, open(two, 'rb') as second:
        while True:
            part = first.read(MIB)
            if part != second.read(MIB):
                return False
            if not part:
                return True


def round_trip(source, look, words=(), names=0):
    """look is called with the place where Linux shows the image."""
    picture = image_of(source, list(words), names)
    try:
        tools.expect(tools.fsck('--strict', '--verify=dir:' + source, picture, timeout=TIMEOUT), 0)
        with tools.Mount('-t', 'erofs', '-o', 'loop,ro', picture) as mount:
            look(mount)
    finally:
        os.unlink(picture)


def contents(n):
    if n % 1000 == 0:
        return b'%d' % n * 1000
    return b'number %d\n' % n * (n % 4)


def place(n):
    return 'd%04d/file%07d' % (n // IN_DIR, n)


@test('a great many small files')
def many_files():
    tools.need_root()
    room(FILES * 10000, FILES + FILES // IN_DIR)
    source = tools.fresh('files', make=True, mode=0o755)
    for n in range(FILES):
        path = os.path.join(source, place(n))
        if n % IN_DIR == 0:
            os.mkdir(os.path.dirname(path), 0o755)
        with open(path, 'wb') as file:
            file.write(contents(n))
        os.chmod(path, 0o600 | n % 64)

    def look(mount):
        folders = (FILES + IN_DIR - 1) // IN_DIR
        is_(sorted(os.listdir(mount)), ['d%04d' % n for n in range(folders)], 'folders')
        for folder in range(folders):
            numbers = range(folder * IN_DIR, min((folder + 1) * IN_DIR, FILES))
            top = os.path.join(mount, 'd%04d' % folder)
            is_(sorted(os.listdir(top)), [os.path.basename(place(n)) for n in numbers], top)
            for n in numbers:
                info = os.stat(os.path.join(mount, place(n)))
                is_((info.st_size, info.st_mode), (len(contents(n)), stat.S_IFREG | 0o600 | n % 64), place(n))
                if n % 7 == 0:
                    with open(os.path.join(mount, place(n)), 'rb') as file:
                        is_(file.read(), contents(n), place(n))

    round_trip(source, look, names=FILES)
    tree.remove(source)


def attribute(n):
    """One in four is on many files, with this value."""
    if n % 4 == 0:
        return 'user.kind%d' % (n // 4 % 100), b'shared %d' % (n // 4 % 100)
    return 'user.number%07d' % n, b'value %d' % n * (1 + n % 3)


@test('a great many extended attributes')
def many_xattrs():
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('the scratch space takes no attributes')
    count = XATTRS // ON_FILE
    room(count * 20000, 2 * count)
    source = tools.fresh('xattrs', make=True, mode=0o755)
    for n in range(count):
        path = os.path.join(source, 'f%06d' % n)
        with open(path, 'wb') as file:
            file.write(b'%d' % n)
        for k in range(n * ON_FILE, (n + 1) * ON_FILE):
            os.setxattr(path, *attribute(k))

    def look(mount):
        total = 0
        for n in range(count):
            path = os.path.join(mount, 'f%06d' % n)
            wanted = dict(attribute(k) for k in range(n * ON_FILE, (n + 1) * ON_FILE))
            got = {k: os.getxattr(path, k) for k in os.listxattr(path) if k.startswith('user.')}
            is_(got, wanted, path)
            total += len(got)
        is_(total, XATTRS, 'attributes')

    # each value of its own is a name too, until it is known whether others have it
    round_trip(source, look, names=count + XATTRS)
    tree.remove(source)


DATA = ((0, b'begins'), (GIB - 3, b'crosses'), (4 * GIB - 4096 - 5, b'below 4 GiB' * 1000), (4 * GIB + 77777, b'above'),
        (SPARSE - 1, b'!'))


def sparse_file(words):
    tools.need_root()
    room(2 * SPARSE + GIB if FULL else GIB)
    source = tools.fresh('sparse', make=True, mode=0o755)
    with open(os.path.join(source, 'sparse'), 'wb') as file:
        for at, data in DATA:
            os.pwrite(file.fileno(), data, at)

    def look(mount):
        fd = os.open(os.path.join(mount, 'sparse'), os.O_RDONLY)
        try:
            is_(os.fstat(fd).st_size, SPARSE, 'size')
            wanted = {}
            for at, data in DATA:
                for n in range(at // MIB, (at + len(data) - 1) // MIB + 1):
                    part = wanted.setdefault(n, bytearray(min(MIB, SPARSE - n * MIB)))
                    start, skip = max(at - n * MIB, 0), max(n * MIB - at, 0)
                    piece = data[skip:skip + len(part) - start]
                    part[start:start + len(piece)] = piece
            zeros = bytes(MIB)
            for n in range(SPARSE // MIB):
                if FULL or n in wanted or n % 64 == 0:
                    check(os.pread(fd, MIB, n * MIB) == wanted.get(n, zeros), 'contents differ in MiB', n)
        finally:
            os.close(fd)

    try:
        round_trip(source, look, words)
    finally:
        tree.remove(source)


@test('a sparse file of more than 4 GiB in chunks')
def sparse_chunks():
    sparse_file(['--chunksize=1M'])


@test('a sparse file of more than 4 GiB as it is')
def sparse_plain():
    if not FULL:
        raise Skip('FULL=1 does that')
    sparse_file([])


@test('a sparse file of more than 4 GiB compressed')
def sparse_coded():
    if not FULL:
        raise Skip('FULL=1 does that')
    sparse_file(['-zlz4', '-C1048576'])


@test('symbolic links of 300 bytes, and of as many as there may be')
def long_links():
    tools.need_root()
    source = tools.fresh('links', make=True, mode=0o755)
    lengths = (1, 59, 60, 300, 3999, 4032, 4095)
    for n in lengths:
        os.symlink(('0123456789/' * 400)[:n], os.path.join(source, 'link%d' % n))

    def look(mount):
        for n in lengths:
            path = os.path.join(mount, 'link%d' % n)
            is_(os.readlink(path), ('0123456789/' * 400)[:n], 'link%d' % n)
            is_(os.lstat(path).st_size, n, 'size of link%d' % n)

    for words in ([], ['-Enoinline_data'], ['-zlz4'], ['-b512']):
        round_trip(source, look, words)
    tree.remove(source)


main()
