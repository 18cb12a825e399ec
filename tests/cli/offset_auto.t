#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md 8, --offset=auto: images in zip files and dumps; field report 18: other formats are named."""
import io
import os
import struct
import sys
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import samples  # noqa: E402
import sparse  # noqa: E402
import tools  # noqa: E402
from tap import check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, dump, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')
tools.need(DUMP, 'dump.erofs')


def plain():
    with open(samples.plain()[0], 'rb') as file:
        return file.read()


def archive(*entries, comment=b'', zip64=False):
    """entries: (name, data, method)"""
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as z:
        for name, data, method in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with z.open(info, 'w', force_zip64=zip64) as file:
                file.write(data)
        z.comment = comment
    return out.getvalue()


def to_zip64(data):
    """The same archive with a zip64 end record and all ones in the fields of the old one."""
    at = data.rindex(b'PK\5\6')
    count, size, pos = struct.unpack('<HII', data[at + 10:at + 20])
    record = struct.pack('<IQHHIIQQQQ', 0x06064b50, 44, 45, 45, 0, 0, count, count, size, pos)
    locator = struct.pack('<IIQI', 0x07064b50, 0, at, 1)
    return data[:at] + record + locator + struct.pack('<IHHHHIIH', 0x06054b50, 0, 0, 0xffff, 0xffff,
                                                      0xffffffff, 0xffffffff, 0)


STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED


def found(data, *patterns):
    path = save(data, 'box')
    target = fresh()
    expect(fsck('-v', '--offset=auto', path), 0, *patterns)
    expect(fsck('--offset=auto', '--extract=' + target, path), 0, silent=True)
    samples.same(samples.plain()[1], target)
    is_(dump('-s', '--offset=auto', path).out, dump('-s', samples.plain()[0]).out, 'dump')
    return path


def missing(data, *patterns):
    path = save(data, 'box')
    expect(fsck('--offset=auto', path), 8, *patterns)
    expect(dump('--offset=auto', path), 2, *patterns)


@test('a stored entry of a zip file, an APEX, with comment, with zip64')
def _():
    text = ('AndroidManifest.xml', b'text ' * 999, DEFLATED)
    entry = ('apex_payload.img', plain(), STORED)
    for data in (archive(entry), archive(text, entry, text), archive(text, entry, comment=b'c' * 40000),
                 archive(entry, zip64=True), to_zip64(archive(text, entry))):
        path = found(data, r'apex_payload\.img')
        offset = data.index(plain())
        result = expect(fsck(path), 8, r'--offset=%d\b' % offset, r'apex_payload\.img')
        check(b'auto' in result.err, result)
        expect(fsck('--offset=%d' % offset, path), 0)


@test('a compressed entry is named; a zip file without an image')
def _():
    data = archive(('apex_payload.img', plain(), DEFLATED))
    missing(data, r'apex_payload\.img.*compressed')
    expect(fsck(save(data)), 8, r'apex_payload\.img.*compressed')
    missing(archive(('a.txt', b'x' * 9000, STORED)), r'no EROFS image')


@test('an image cut by the end of its entry is damage')
def _():
    data = archive(('a.img', plain()[:-4096], STORED), ('b', bytes(9000), STORED))
    expect(fsck('--offset=auto', save(data)), 4, r'(?i)ends early')


@test('a dump with an image at any multiple of 512 bytes, also sparse')
def _():
    for at in (0, 512, 1536, (1 << 20) - 512, (1 << 20) - 1024, (1 << 20) + 512, 3 << 20):
        data = b'\xa5' * at + plain()
        found(data + b'\xff' * 5000, r'@ 0x%x' % at if at else r'EROFS image')
    found(sparse.build(bytes(5 << 20) + plain(), longest=99), r'@ 0x500000')
    missing(b'\xa5' * 511 + plain(), r'no EROFS image')
    missing(b'', r'no EROFS image')
    missing(bytes(3000000), r'no EROFS image')


@test('several images are named and none is taken; what lies in an image is part of it')
def _():
    one = plain() + bytes(-len(plain()) % 512)
    path = save(bytes(1024) + one + bytes(512) + one)
    second = 1536 + len(one)
    words = [r'--offset=1024\b', r'--offset=%d\b' % second, r'(?i)2 EROFS images']
    expect(fsck('--offset=auto', path), 16, *words)
    expect(dump('--offset=auto', path), 2, *words)
    expect(fsck('--offset=%d' % second, path), 0)
    path = save(archive(('a', plain(), STORED), ('b', plain(), STORED)))
    expect(fsck('--offset=auto', path), 16, r'entry a\b', r'entry b\b')


@test('a zip file with a broken directory is refused, whatever byte is wrong')
def _():
    data = archive(('a.txt', b'text', DEFLATED), ('a.img', plain(), STORED), comment=b'xyz')
    start = data.index(b'PK\1\2')
    for at in range(start, len(data)):
        for value in (0, 0xff):
            bad = bytearray(data)
            bad[at] = value
            expect(fsck('--offset=auto', save(bytes(bad), 'bad')), {0, 4, 8})
    for cut in range(start, len(data)):
        expect(fsck('--offset=auto', save(data[:cut], 'bad')), 8, r'zip')


@test('field report 18: other formats are named')
def _():
    for at, magic, name in ((0, b'\x1f\x8b', 'gzip'), (0, b'\xfd7zXZ\0', 'xz'), (0, b'hsqs', 'squashfs'),
                            (0, b'\x28\xb5\x2f\xfd', 'zstd'), (257, b'ustar', 'tar'),
                            (1080, b'\x53\xef', 'ext4'), (1024, b'\x10\x20\xf5\xf2', 'F2FS'),
                            (4096, b'gDla', 'super partition')):
        path = save(bytes(at) + magic + bytes(9000))
        expect(fsck(path), 8, r'no EROFS image.*this is .*' + name)
        expect(dump(path), 2, name)


main()
