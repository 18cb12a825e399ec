# SPDX-License-Identifier: GPL-2.0-or-later
"""Android sparse images, written byte by byte so that every field can be wrong."""
import random
import struct

MAGIC = 0xED26FF3A
RAW, FILL, SKIP, CRC = 0xCAC1, 0xCAC2, 0xCAC3, 0xCAC4


def chunk(kind, blocks, body=b'', header=12, total=None):
    total = header + len(body) if total is None else total
    return struct.pack('<HHII', kind, 0, blocks, total) + bytes(header - 12) + body


def head(block, blocks, chunks, size=28, chunk_header=12, version=(1, 0), magic=MAGIC, crc=0):
    return struct.pack('<IHHHHIIII', magic, *version, size, chunk_header, block, blocks, chunks,
                       crc) + bytes(max(0, size - 28))


def build(data, block=4096, longest=7, header=28, chunk_header=12, crc=True, seed=1):
    """The sparse image of data: zeros become don't-care, repeated words fill, the rest raw."""
    rng = random.Random(seed)
    data += bytes(-len(data) % block)
    blocks = [data[i:i + block] for i in range(0, len(data), block)]
    kinds = [(SKIP, b'') if not any(b) else (FILL, b[:4]) if b == b[:4] * (block // 4) else (RAW, b'')
             for b in blocks]
    chunks, at = [], 0
    while at < len(blocks):
        n, most = 1, rng.randint(1, longest)
        while n < most and at + n < len(blocks) and kinds[at + n] == kinds[at]:
            n += 1
        kind, value = kinds[at]
        body = b''.join(blocks[at:at + n]) if kind == RAW else value
        chunks.append(chunk(kind, n, body, chunk_header))
        at += n
        if crc and rng.random() < 0.3:
            chunks.append(chunk(CRC, 0, b'\1\2\3\4', chunk_header))
    return head(block, len(blocks), len(chunks), header, chunk_header) + b''.join(chunks)
