#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md R26, field report 18: Android sparse images are read as what they expand to."""
import os
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import sparse  # noqa: E402
import tools  # noqa: E402
from sparse import CRC, FILL, RAW, SKIP, chunk, head  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, dump, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')
tools.need(DUMP, 'dump.erofs')


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def plain():
    return content(samples.plain()[0])


def refused(data, status, *patterns):
    """By all reading tools, and nothing is made."""
    path = save(data, 'bad')
    target = fresh()
    expect(fsck(path), status, *patterns)
    expect(fsck('--extract=' + target, path), status, *patterns)
    check(not os.path.lexists(target), 'the target was made')
    expect(dump(path), 2, *patterns)


def same(image):
    """Check, extraction and dump of a sparse image are those of the plain one."""
    for workers in tools.WORKERS:
        target = fresh()
        expect(fsck('--extract', '--workers=' + workers, image), 0, silent=True)
        expect(fsck('--extract=' + target, '--workers=' + workers, image), 0, silent=True)
        samples.same(samples.plain()[1], target)
        target = fresh()
        expect(dump('--extract=' + target, '--workers=' + workers, image), 0, silent=True)
        samples.same(samples.plain()[1], target)
    for words in (['-s'], ['-S'], ['--ls', '--path=/']):
        is_(dump(*words, image).out, dump(*words, samples.plain()[0]).out, ' '.join(words))


@test('R26: raw, fill, don\'t-care and CRC chunks')
def _():
    for block in (4096, 4, 12, 1000, 65536):
        same(save(sparse.build(plain(), block, longest=3000 // block + 3), 'sparse'))


@test('R26: header sizes are taken from the file')
def _():
    for sizes in ((28, 13), (29, 12), (100, 40), (65535, 65535)):
        same(save(sparse.build(plain(), 4096, 50, *sizes), 'sparse'))


@test('R26: a later minor version is read, another major version is refused with 8')
def _():
    data = bytearray(sparse.build(plain()))
    data[6:8] = struct.pack('<H', 3)
    same(save(bytes(data), 'minor'))
    data[4:6] = struct.pack('<H', 2)
    refused(bytes(data), {8, 12}, r'version 2')


@test('R26: fill chunks are data: a file of one word repeated')
def _():
    for word in (b'\0\0\0\0', b'abcd', b'\xff\xff\xff\xff', b'\0\0\0\1'):
        root = mkimg.Dir({'a': mkimg.File(word * 5000 + b'end'), 'b': mkimg.File(b'b')})
        image = save(sparse.build(mkimg.build(root), 12, 100), 'fill')
        is_(dump('--cat', '--path=/a', image).out, word * 5000 + b'end', word)


@test('R26: --offset counts in the expanded image')
def _():
    image = save(sparse.build(b'\xa5' * 8192 + bytes(4096) + plain(), 512), 'offset')
    target = fresh()
    expect(fsck('--offset=12288', '--extract=' + target, image), 0, silent=True)
    samples.same(samples.plain()[1], target)
    expect(fsck(image), 8)


@test('R26, R27: an extra device may be sparse; bytes behind either do no harm')
def _():
    picture, parts, _ = samples.devices()
    words = ['--device=' + save(sparse.build(content(p)) + b'tail' * 99, 'part') for p in parts]
    target, wanted = fresh(), fresh()
    expect(fsck('--extract=' + wanted, *['--device=' + p for p in parts], picture), 0)
    image = save(sparse.build(content(picture)) + b'x' * 5000, 'main')
    expect(fsck('--extract=' + target, *words, image), 0, silent=True)
    is_(subprocess.run(['diff', '-r', wanted, target]).returncode, 0, 'diff')


@test('R27: the size that counts is the expanded one')
def _():
    data = plain()
    expect(fsck(save(sparse.build(data[:-4096]), 'short')), 4, r'(?i)ends early')
    same(save(sparse.build(data + bytes(1 << 20)), 'long'))


@test('R26: what img2simg makes is read, and simg2img agrees with us about ours')
def _():
    if not shutil.which('img2simg') or not shutil.which('simg2img'):
        raise Skip('no img2simg or simg2img')
    theirs, back = fresh('theirs'), fresh('back')
    subprocess.run(['img2simg', samples.plain()[0], theirs], check=True, timeout=60)
    same(theirs)
    ours = save(sparse.build(plain(), crc=False), 'ours')
    subprocess.run(['simg2img', ours, back], check=True, timeout=60)
    same(back)


@test('R26: a file cut anywhere is damage; cut in the first chunk headers at each byte')
def _():
    data = sparse.build(plain())
    for cut in [*range(4, 45), len(data) // 2, len(data) - 1]:
        expect(fsck(save(data[:cut], 'cut')), 4, r'(?i)sparse')


@test('R26: wrong headers')
def _():
    body = chunk(SKIP, 4)
    for block in (0, 2, 4097):
        refused(head(block, 4, 1) + body, 4, r'(?i)sparse header.*block')
    refused(head(4096, 4, 1, size=28, chunk_header=11) + body, 4, r'(?i)sparse header')
    short = bytearray(head(4096, 4, 1))
    short[8:10] = b'\x1b\0'
    refused(bytes(short) + body, 4, r'(?i)sparse header')
    refused(head(0xfffffffc, 0xffffffff, 1) + body, 4, r'2\^63')
    refused(head(4096, 5, 1) + body, 4, r'5 blocks, the chunks have 4')
    refused(head(4096, 3, 1) + body, 4, r'chunk 0.*4 blocks')
    refused(head(4096, 4, 2) + body, 4, r'chunk 1.*ends')
    refused(head(4096, 4, 0xffffffff) + body, {8, 12}, r'4294967295 chunks')
    refused(head(4096, 0, 0), 8)


@test('R26: wrong chunks are named with number and offset')
def _():
    start = head(4096, 8, 2) + chunk(SKIP, 4)
    for bad in (chunk(0xCAC5, 4), chunk(0, 0), chunk(SKIP, 4, total=16), chunk(SKIP, 4, total=0),
                chunk(FILL, 4, b''), chunk(FILL, 4, b'abcdefgh'), chunk(RAW, 4, b'x' * 100),
                chunk(RAW, 0xffffffff, b''), chunk(RAW, 4, b'x' * 100, total=12 + 16384),
                chunk(SKIP, 5), chunk(SKIP, 0xffffffff), chunk(CRC, 4, b'abcd'),
                chunk(CRC, 0, b''), chunk(RAW, 1 << 20, b'', total=12)):
        refused(start + bad, 4, r'@ 0x28: sparse chunk 1:')


main()
