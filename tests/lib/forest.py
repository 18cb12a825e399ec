# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees on disk for makers of images: one with a bit of everything, and random ones of a seed."""
import os
import random
import stat

import samples
import tools


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


SIZES = (0, 1, 27, 511, 512, 513, 1000, 4000, 4032, 4064, 4095, 4096, 4097, 4160, 8191, 8192, 8193, 12287,
         16384, 16385, 65535, 65536, 65537, 131072, 131073)


def filling(dice, size):
    """Contents of one kind, or a mixture."""
    kind = dice.randrange(6)
    if kind == 0:
        return bytes(size)
    if kind == 1:
        return dice.randbytes(size)
    if kind == 2:
        word = dice.randbytes(dice.randrange(1, 300))
        return (word * (size // len(word) + 1))[:size]
    if kind == 3:
        # noise that begins to repeat, so that pclusters end in the middle of both
        half = dice.randbytes(size // 2 + 1)
        return (half + half)[:size]
    return pattern(dice, size)


def name(dice):
    """Any bytes but those that names cannot have; often short, now and then as long as they may be."""
    size = dice.choice((1, 2, 5, 8, 12, 40, 255))
    good = bytes(c for c in range(1, 256) if c != 0x2f)
    text = bytes(dice.choice(good) for _ in range(size)) if dice.randrange(3) == 0 else \
        b'%0*d' % (size, dice.randrange(10 ** min(size, 6)))
    return b'x' if text in (b'.', b'..') else text


def attributes(dice, path):
    for _ in range(dice.randrange(4)):
        value = dice.choice((b'', b'common', b'again', dice.randbytes(dice.choice((1, 20, 900)))))
        os.setxattr(path, 'user.' + dice.choice(('a', 'b', 'long.name.of.it', 'c' * 200)), value)


def grow(top, seed):
    """A random tree: sizes at the borders of blocks, all types, odd names, attributes, links."""
    dice = random.Random(seed)
    folders, files = [os.fsencode(top)], []
    os.makedirs(top, exist_ok=True)
    for _ in range(dice.randrange(5, 90)):
        path = os.path.join(dice.choice(folders), name(dice))
        if os.path.lexists(path):
            continue
        kind = dice.randrange(20)
        if kind < 3:
            os.mkdir(path)
            folders.append(path)
        elif kind < 5:
            os.symlink(b's' * dice.choice((1, 10, 300, 4000, 4095)), path)
        elif kind < 7 and files:
            os.link(dice.choice(files), path)
        elif kind == 7:
            os.mkfifo(path)
        elif kind == 8 and tools.ROOT:
            os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(dice.randrange(300), dice.randrange(9999)))
        else:
            size = dice.choice(SIZES) + dice.choice((0, 0, 0, dice.randrange(5000)))
            write(path, filling(dice, size))
            files.append(path)
    for path in folders + files:
        if tools.has_xattrs():
            attributes(dice, path)
        if tools.ROOT and dice.randrange(3) == 0:
            os.chown(path, dice.choice((0, 1000, 65535, 65536, 4294967294)), dice.choice((0, 100, 70000)))
        os.chmod(path, dice.choice((0o644, 0o600, 0o755, 0o4755, 0o1777)) | (0o700 if path in folders else 0))
    for path in files + folders[::-1]:
        os.utime(path, ns=(0, dice.choice((0, 1700000000 * 10 ** 9, 1234567890123456789, -10 ** 9))))


KINDS = 5


def of_kind(dice, kind, size):
    """Zeros, noise, one word again and again, noise that comes twice, a mixture."""
    if kind == 0:
        return bytes(size)
    if kind == 1:
        return dice.randbytes(size)
    if kind == 2:
        return (b'the same words again and again, %d\n' % dice.randrange(99) * (size // 30 + 1))[:size]
    if kind == 3:
        half = dice.randbytes(size // 2 + 1)
        return (half + half)[:size]
    return pattern(dice, size)


def make_borders(top, seed=7):
    """Some 2 MiB of files whose sizes are those of blocks and pclusters, one more and one less."""
    dice = random.Random(seed)
    for size in (512, 1024, 4096, 8192, 16384, 65536):
        for kind in range(KINDS):
            for more in (-1, 0, 1) if size < 16384 else (dice.choice((-1, 0, 1)),):
                write(os.path.join(top, 'k%d' % kind, '%06d' % (size + more)), of_kind(dice, kind, size + more))
    for n in range(60):
        write(os.path.join(top, 'small', 's%03d' % n), of_kind(dice, n % KINDS, n * 67))
    whole = pattern(dice, 150000)
    for name, data in (('one', whole), ('two', whole), ('shifted', b'xyz' + whole), ('part', whole[70000:120001]),
                       ('noisy', dice.randbytes(3000) + whole[:80000] + dice.randbytes(5000) + whole[60000:])):
        write(os.path.join(top, 'same', name), data)
    write(os.path.join(top, 'large'), pattern(dice, 1 << 20) + dice.randbytes(70000) + bytes(65537))
