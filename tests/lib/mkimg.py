# SPDX-License-Identifier: GPL-2.0-or-later
"""Small EROFS images for tests: Builder writes one from objects, Image patches one.

Builder makes extended inodes, plain and inline data, chunks, LZ4 runs with full indexes,
inline xattrs. What a test wants broken it breaks with Image, whose seal() repairs the
superblock's checksum.
"""
import os
import stat
import struct

SB = 1024
MAGIC = 0xE0F5E1E2
PLAIN, FULL, INLINE, COMPACT, CHUNK = range(5)
FILE_TYPES = {stat.S_IFREG: 1, stat.S_IFDIR: 2, stat.S_IFCHR: 3, stat.S_IFBLK: 4,
              stat.S_IFIFO: 5, stat.S_IFSOCK: 6, stat.S_IFLNK: 7}
PREFIXES = ((b'user.', 1), (b'system.posix_acl_access', 2), (b'system.posix_acl_default', 3),
            (b'trusted.', 4), (b'security.', 6))
HOLE = None


def up(value, to):
    return -(-value // to) * to


def _table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


_TABLE = tuple(_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc


def lz4_run(byte, size):
    """An LZ4 block of size equal bytes (size > 20)."""
    rest = size - 1 - 5 - 4
    out = bytearray([0x1F, byte, 1, 0])
    rest -= 15
    while rest >= 255:
        out.append(255)
        rest -= 255
    out.append(rest)
    return bytes(out) + bytes([0x50]) + bytes([byte]) * 5


class Node:
    """A file of any type; put the same object under two names for a hard link."""

    def __init__(self, mode, data=b'', **more):
        self.mode, self.data = mode, data
        self.entries = {}
        self.uid = self.gid = 0
        self.time = 1700000000 * 10 ** 9
        self.rdev = 0
        self.xattrs = {}
        self.nlink = None
        self.size = None
        self.inline = True
        self.chunks = self.chunk_bits = self.runs = None
        self.algorithm = 0
        self.nid = None
        self.__dict__.update(more)


def File(data=b'', mode=0o644, **more):
    return Node(stat.S_IFREG | mode, data, **more)


def Dir(entries=(), mode=0o755, **more):
    node = Node(stat.S_IFDIR | mode, **more)
    node.entries = dict(entries)
    return node


def Link(target, **more):
    return Node(stat.S_IFLNK | 0o777, os.fsencode(target), **more)


def Special(kind, major=0, minor=0, mode=0o644, **more):
    rdev = minor & 0xFF | major << 8 | (minor & ~0xFF) << 12
    return Node(kind | mode, rdev=rdev, **more)


def Chunked(pieces, bits, size=None, mode=0o644, **more):
    """A file of chunks of block << bits bytes: pieces are bytes, or HOLE; equal ones are shared."""
    return Node(stat.S_IFREG | mode, chunks=list(pieces), chunk_bits=bits, size=size, **more)


def Runs(runs, mode=0o644, **more):
    """An LZ4 file: runs are (byte, lclusters), each one pcluster of a block."""
    return Node(stat.S_IFREG | mode, runs=list(runs), **more)


def Packed(parts, algorithm, size, mode=0o644, **more):
    """A compressed file: parts are (compressed bytes of one block at most, lclusters)."""
    return Node(stat.S_IFREG | mode, runs=list(parts), algorithm=algorithm, size=size, **more)


def zstd_frame(byte, size, said=None):
    """A zstd frame of size equal bytes whose header says that it holds said (None: nothing)."""
    head = struct.pack('<I', 0xFD2FB528)
    if said is None:
        head += bytes([0x00, 0x30])         # no size; window of 64 KiB
    else:
        head += bytes([0xA0]) + struct.pack('<I', said)
    return head + struct.pack('<I', 1 | 1 << 1 | size << 3)[:3] + bytes([byte])


LZ4, LZMA, DEFLATE, ZSTD = range(4)
RECORDS = {LZ4: struct.pack('<HH10x', 0, 1), LZMA: struct.pack('<IH8x', 65536, 0),
           DEFLATE: struct.pack('<B5x', 15), ZSTD: struct.pack('<BB4x', 0, 6)}


class Builder:
    def __init__(self, root, bits=12, checksum=True, uuid=b'small test image', label=b'',
                 incompat=0, devices=()):
        self.root, self.bits, self.block = root, bits, 1 << bits
        self.checksum, self.uuid, self.label = checksum, uuid, label
        self.incompat = incompat
        self.order = []
        self.algorithms = set()

    # Where everything goes ---------------------------------------------------------

    def _collect(self, node, seen):
        pending = [node]
        while pending:
            node = pending.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            self.order.append(node)
            pending.extend(child for _, child in sorted(self._entries(node), reverse=True))

    @staticmethod
    def _entries(node):
        return [(os.fsencode(n), c) for n, c in node.entries.items()] \
            if stat.S_ISDIR(node.mode) else []

    def _body(self, node):
        """Bytes behind the core that are not tail data: xattrs and maps (zeroed)."""
        size = 64 + len(self._xattrs(node))
        if node.chunks is not None:
            return up(size, 4) + 4 * len(node.chunks)
        if node.runs is not None:
            return up(size, 8) + 16 + 8 * sum(n for _, n in node.runs)
        return size

    def _xattrs(self, node):
        if not node.xattrs:
            return b''
        out = bytearray(12)
        for name, value in sorted((os.fsencode(k), v) for k, v in node.xattrs.items()):
            prefix, index = next(p for p in PREFIXES if name.startswith(p[0]))
            rest = name[len(prefix):]
            out += struct.pack('<BBH', len(rest), index, len(value)) + rest + value
            out += bytes(-len(out) % 4)
        return bytes(out)

    def _dir_data(self, node, parent):
        listed = [(b'.', node), (b'..', parent)] + self._entries(node)
        listed.sort(key=lambda e: e[0])
        out, block = bytearray(), []

        def flush():
            place = 12 * len(block)
            names = b''
            heads = b''
            for name, child in block:
                heads += struct.pack('<QHBB', child.nid or 0, place,
                                     FILE_TYPES[stat.S_IFMT(child.mode)], 0)
                names += name
                place += len(name)
            out.extend(bytes(-len(out) % self.block) + heads + names)

        used = 0
        for name, child in listed:
            if used + 12 + len(name) > self.block:
                flush()
                block, used = [], 0
            block.append((name, child))
            used += 12 + len(name)
        flush()
        return bytes(out)

    def _parents(self):
        parents = {id(self.root): self.root}
        for node in self.order:
            for _, child in self._entries(node):
                parents.setdefault(id(child), node)
        return parents

    def _place(self, parents):
        """Give each node its nid, and decide whether its tail is inline."""
        at = 32
        links = {}
        for node in self.order:
            for _, child in self._entries(node):
                links[id(child)] = links.get(id(child), 0) + 1
        for node in self.order:
            if stat.S_ISDIR(node.mode):
                node.data = self._dir_data(node, parents[id(node)])
                subdirs = sum(stat.S_ISDIR(c.mode) for _, c in self._entries(node))
                node.links = 2 + subdirs
            else:
                node.links = links[id(node)]
            body = self._body(node)
            tail = len(node.data) % self.block
            node.layout = PLAIN
            if node.chunks is not None:
                node.layout, tail = CHUNK, 0
            elif node.runs is not None:
                node.layout, tail = FULL, 0
            elif node.inline and 0 < tail <= self.block // 2:
                node.layout = INLINE
            else:
                tail = 0
            if tail:
                end = (at + body) % self.block
                if end == 0 or end + tail > self.block:
                    at = up(at + body, self.block) - body
                    at = up(at, 32)
                    while (at + body) % self.block + tail > self.block:
                        at += 32
            node.nid = at // 32
            node.at = at
            at = up(at + body + tail, 32)
        return up(at, self.block)

    # Writing -----------------------------------------------------------------------

    def build(self):
        """The image as bytes."""
        self._collect(self.root, set())
        parents = self._parents()
        size = self._place(parents)
        start = max(1, -(-(SB + 512) // self.block))
        self.meta = start
        image = bytearray(start * self.block + size)
        shared = {}
        for node in self.order:
            data = node.data
            if stat.S_ISDIR(node.mode):
                data = self._dir_data(node, parents[id(node)])
            self._write(image, node, data, shared)
        self._super(image, shared)
        return bytes(image)

    def _append(self, image, data):
        block = len(image) // self.block
        image += data + bytes(-len(data) % self.block)
        return block

    def _write(self, image, node, data, shared):
        at = self.meta * self.block + node.at
        xattrs = self._xattrs(node)
        end = at + 64 + len(xattrs)
        u, size = 0, len(data)
        if node.layout == CHUNK:
            size = self._chunks(image, node, end, shared)
            u = node.chunk_bits
        elif node.layout == FULL:
            size, u = self._runs(image, node, end)
        elif node.rdev:
            u = node.rdev
        elif size:
            whole = data if node.layout == PLAIN else data[:size - size % self.block]
            u = self._append(image, whole) if whole else 0xFFFFFFFF
            image[end:end + size - len(whole)] = data[len(whole):]
        count = (len(xattrs) - 12) // 4 + 1 if xattrs else 0
        seconds, nanoseconds = divmod(node.time, 10 ** 9)
        struct.pack_into('<HHHHQIIIIqII', image, at, node.layout << 1 | 1, count, node.mode, 0,
                         size if node.size is None else node.size, u, node.nid, node.uid, node.gid,
                         seconds, nanoseconds, node.links if node.nlink is None else node.nlink)
        image[at + 64:at + 64 + len(xattrs)] = xattrs

    def _chunks(self, image, node, end, shared):
        at = up(end, 4)
        chunk = self.block << node.chunk_bits
        for piece in node.chunks:
            block = 0xFFFFFFFF
            if piece is not HOLE:
                if piece not in shared:
                    shared[piece] = self._append(image, piece)
                block = shared[piece]
            struct.pack_into('<I', image, at, block)
            at += 4
        shared[HOLE] = True
        return chunk * len(node.chunks)

    def _runs(self, image, node, end):
        """Compressed with full indexes: one block a pcluster, zeros in front of the data."""
        at = up(end, 8)
        struct.pack_into('<IHBB', image, at, 0, 0, node.algorithm, 0)
        at += 16
        node.pclusters = []
        self.algorithms.add(node.algorithm)
        for raw, count in node.runs:
            if isinstance(raw, int):
                raw = lz4_run(raw, count * self.block)
            block = self._append(image, bytes(self.block - len(raw)) + raw)
            node.pclusters.append(block * self.block)
            for n in range(count):
                if n == 0:
                    struct.pack_into('<HHI', image, at, 1, 0, block)
                else:
                    struct.pack_into('<HHHH', image, at, 2, 0, n, count - n)
                at += 8
        self.incompat |= 1
        return sum(n for _, n in node.runs) * self.block, len(node.runs)

    def _super(self, image, shared):
        if HOLE in shared:
            self.incompat |= 4
        blocks = len(image) // self.block
        struct.pack_into('<IIIBBHQqIIII16s16sI', image, SB, MAGIC, 0, 3 if self.checksum else 2,
                         self.bits, 0, self.root.nid, len(self.order), 1700000000, 0, blocks,
                         self.meta, 0, self.uuid, self.label, self.incompat)
        patched = Image(image)
        if self.algorithms - {LZ4}:
            at = SB + 128
            for algorithm in sorted(self.algorithms):
                record = RECORDS[algorithm]
                patched.data[at:at + 2 + len(record)] = struct.pack('<H', len(record)) + record
                at = up(at + 2 + len(record), 4)
            patched.put(SB + 84, 'H', sum(1 << a for a in self.algorithms))
            patched.put(SB + 80, 'I', self.incompat | 2)
        patched.seal()
        image[:] = patched.data


def build(root, **more):
    return Builder(root, **more).build()


class Image:
    """An image in memory whose inodes can be found and whose bytes can be changed."""

    def __init__(self, data):
        self.data = bytearray(data)

    @classmethod
    def load(cls, path):
        with open(path, 'rb') as file:
            return cls(file.read())

    def get(self, at, code):
        return struct.unpack_from('<' + code, self.data, at)[0]

    def put(self, at, code, value):
        struct.pack_into('<' + code, self.data, at, value)
        return self

    @property
    def bits(self):
        return self.data[SB + 12]

    @property
    def block(self):
        return 1 << self.bits

    def seal(self):
        if self.get(SB + 8, 'I') & 1:
            end = SB + self.block if self.block <= SB else self.block
            self.put(SB + 4, 'I', 0)
            self.put(SB + 4, 'I', crc32c(self.data[SB:end]))
        return self

    @property
    def root(self):
        wide = self.get(SB + 80, 'I') & 0x80 and self.get(SB + 112, 'Q')
        return Inode(self, wide or self.get(SB + 14, 'H'))

    def find(self, path):
        inode = self.root
        for name in os.fsencode(path).split(b'/'):
            if name:
                inode = Inode(self, inode.entries()[name][0])
        return inode


class Inode:
    """One inode of an Image (uncompressed metadata on the primary device only)."""

    def __init__(self, image, nid):
        self.image, self.nid = image, nid
        self.at = image.get(SB + 40, 'I') * image.block + nid * 32
        get = image.get
        self.format = get(self.at, 'H')
        self.extended = self.format & 1
        self.layout = self.format >> 1 & 7
        self.mode = get(self.at + 4, 'H')
        self.size = get(self.at + 8, 'Q' if self.extended else 'I')
        self.u = get(self.at + 16, 'I')
        count = get(self.at + 2, 'H')
        self.core = self.at + (64 if self.extended else 32)
        self.end = self.core + (12 + 4 * (count - 1) if count else 0)

    def set_size(self, size):
        self.image.put(self.at + 8, 'Q' if self.extended else 'I', size)

    def block_at(self, number):
        """Where the block of a plain or inline inode begins in the image."""
        last = -(-self.size // self.image.block) - 1
        if self.layout == INLINE and number == last:
            return self.end
        return (self.u + number) * self.image.block

    def entries(self):
        """Name -> (nid, file type, position of the entry, position of the name)."""
        out = {}
        block = self.image.block
        for number in range(-(-self.size // block)):
            start = self.block_at(number)
            valid = min(block, self.size - number * block)
            count = self.image.get(start + 8, 'H') // 12
            for n in range(count):
                at = start + 12 * n
                first = self.image.get(at + 8, 'H')
                last = self.image.get(at + 20, 'H') if n + 1 < count else valid
                name = bytes(self.image.data[start + first:start + last]).rstrip(b'\0')
                out[name] = (self.image.get(at, 'Q'), self.image.data[at + 10], at, start + first)
        return out

    def chunks(self):
        """(bytes a chunk, block addresses with HOLE for holes) of a chunk-based inode."""
        form = self.u & 0xFFFF
        chunk = self.image.block << (form & 31)
        count = -(-self.size // chunk)
        if form & 0x20:
            at = up(self.end, 8)
            found = [self.image.get(at + 8 * n + 4, 'I') for n in range(count)]
        else:
            at = up(self.end, 4)
            found = [self.image.get(at + 4 * n, 'I') for n in range(count)]
        return chunk, [HOLE if block == 0xFFFFFFFF else block for block in found]

    def index(self, lcn):
        """Position of a full index."""
        return up(self.end, 8) + 16 + 8 * lcn
