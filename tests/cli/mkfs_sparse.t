#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs --android-sparse (cli.md 8): what it expands to is the image made without; R23, R26, E4."""
import glob
import os
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import schema  # noqa: E402
import sparse  # noqa: E402
import tools  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import dump, expect, fresh, fsck, make  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')
FIXED = ['-Uclear', '-T1700000000', '--mkfs-time', '--quiet']
OPTIONS = [[], ['-zlz4', '-Eztailpacking,fragments'], ['-b512'], ['-b1024', '-zlz4'], ['-b16384'],
           ['-b65536', '--zD', '-zlz4'], ['--chunksize=4096'], ['-zlz4', '-C65536', '-Ededupe'], ['--offset=8192'], ['--offset=1536', '-b512']]
_source = []


def source():
    if not _source:
        top = fresh('src', make=True, mode=0o755)
        for name, data in (('zeros', bytes(300000)), ('word', b'\1\2\3\4' * 70000), ('noise', os.urandom(100001)),
                           ('between', os.urandom(8192) + bytes(65536) + b'\xff' * 20000 + os.urandom(9)),
                           ('text', b'a line of text\n' * 9000), ('d/small', b'small')):
            forest.write(os.path.join(top, name), data)
        _source.append(top)
    return _source[0]


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def made(*words):
    image = fresh('img')
    expect(make(*FIXED, *words, image, source()), 0, silent=True)
    return image


def chunks(data):
    """Header, and (kind, blocks, body) of all chunks; every length in it is right."""
    head = struct.unpack_from('<IHHHHIIII', data)
    is_(head[:5] + head[8:], (sparse.MAGIC, 1, 0, 28, 12, 0), 'header')
    found, at = [], 28
    while at < len(data):
        kind, zero, blocks, total = struct.unpack_from('<HHII', data, at)
        found.append((kind, blocks, data[at + 12:at + total]))
        size = {sparse.RAW: blocks * head[5], sparse.FILL: 4, sparse.SKIP: 0}[kind]
        is_((zero, total, len(found[-1][2])), (0, 12 + size, size), found[-1][:2])
        at += total
    is_((head[6], head[7]), (sum(c[1] for c in found), len(found)), 'totals')
    return head[5], found


def expand(data):
    block, found = chunks(data)
    return b''.join(body if kind == sparse.RAW else body * (blocks * block // 4) if kind == sparse.FILL else
                    bytes(blocks * block) for kind, blocks, body in found)


@test('what it expands to is the image made without it, whatever the options')
def _():
    for words in OPTIONS:
        plain, packed = content(made(*words)), content(made('--android-sparse', *words))
        check(expand(packed) == plain, words)
        if not words or words[0].startswith('--offset'):
            check(len(packed) < len(plain) * 2 // 3, 'smaller', (words, len(packed), len(plain)))


@test('simg2img expands it to the same')
def _():
    tool = shutil.which('simg2img')
    if not tool:
        raise Skip('no simg2img (Debian: android-sdk-libsparse-utils)')
    for words in OPTIONS:
        plain, packed, out = made(*words), made('--android-sparse', *words), fresh('out')
        subprocess.run([tool, packed, out], check=True, timeout=60, capture_output=True)
        check(content(out) == content(plain), words)


@test('R26: fsck.erofs and dump.erofs read it as it is')
def _():
    for words in OPTIONS:
        image = made('--android-sparse', *words)
        offset = [w for w in words if w.startswith('--offset')]
        expect(fsck('--strict', '--verify=dir:' + source(), *offset, image), 0, silent=True)
        is_(dump('--cat', '--path=/d/small', *offset, image).out, b'small', words)


@test('zeros of the image are data; "don\'t care" is in front of it; neighbours are one chunk')
def _():
    block, found = chunks(content(made('--android-sparse', '--offset=8192')))
    is_((block, found[0]), (4096, (sparse.SKIP, 2, b'')), 'in front')
    check((sparse.FILL, b'\0\0\0\0') in [c[::2] for c in found], 'zeros')
    check((sparse.FILL, b'\1\2\3\4') in [c[::2] for c in found], 'a word')
    is_([c for c in found[1:] if c[0] == sparse.SKIP], [], 'none behind')
    for one, two in zip(found, found[1:]):
        check(one[0] != two[0] or one[2] != two[2], 'two chunks that are one', (one[:2], two[:2]))
        check(one[0] != sparse.RAW or two[0] != sparse.RAW, 'two raw chunks')
    is_([chunks(content(made('--android-sparse', w)))[0] for w in ('-b512', '-b4096', '-b65536')][1:],
        [4096, 4096], 'blocks of readers')


@test('E4: the same bytes for every number of workers, and twice')
def _():
    seen = {content(made('--android-sparse', '-zlz4', '--workers=' + n)) for n in ('1', '2', '7', '2')}
    is_(len(seen), 1, 'images')


@test('--verify, --manifest, --block-list-file, --print-digest and --json')
def _():
    words = ['-zlz4', '-Efragments']
    plain, packed = fresh('img'), fresh('img')
    notes, lists, values = [], [], []
    for image, more in ((plain, []), (packed, ['--android-sparse'])):
        notes.append(fresh('mtree'))
        lists.append(fresh('list'))
        words_of_it = [*words, *more, '--verify', '--json', '--manifest=' + notes[-1],
                       '--block-list-file=' + lists[-1]]
        values.append(schema.report(expect(make(*FIXED, *words_of_it, image, source()), 0).out))
    is_(content(notes[0]) == content(notes[1]), True, 'manifest')
    is_(content(lists[0]) == content(lists[1]), True, 'block list')
    is_(values[1]['superblock'], values[0]['superblock'], 'superblock')
    is_(values[1]['build']['image_bytes'], os.path.getsize(packed), 'bytes')
    is_(values[1]['verify'], values[0]['verify'], 'verify')
    out = expect(make(*FIXED, *words, '--android-sparse', '--print-digest', packed, source()), 0).out
    is_(dump('--print-digest', packed).out, out, 'digest')


@test('R23: a failed run leaves the old file, and nothing in TMPDIR or beside it')
def _():
    folder, temp = fresh('dir', make=True), fresh('tmp', make=True)
    image = os.path.join(folder, 'image')
    forest.write(image, b'old')
    env = dict(os.environ, TMPDIR=temp)
    expect(make(*FIXED, '--android-sparse', '-zlz4', '--exclude-regex=(', image, source(), env=env), 1)
    is_(content(image), b'old', 'an option')
    expect(make(*FIXED, '--android-sparse', image, source(), env=dict(env, TMPDIR=temp + '/none')), 1, 'temporary')
    is_((content(image), glob.glob(image + '.*'), os.listdir(temp)), (b'old', [], []), 'TMPDIR')
    expect(make(*FIXED, '--android-sparse', image, source(), env=env), 0, silent=True)
    check(expand(content(image)) == content(made()), 'the new one')
    is_((os.listdir(folder), os.listdir(temp)), (['image'], []), 'left over')


@test('R23: the output is a descriptor: written in place')
def _():
    image = fresh('img')
    with open(image, 'w+b') as file:
        expect(make(*FIXED, '--android-sparse', '--verify', '/dev/fd/%d' % file.fileno(), source(),
                    pass_fds=[file.fileno()]), 0, silent=True)
    check(expand(content(image)) == content(made()), 'the image')


@test('R6: an offset that is no multiple of 512')
def _():
    image = fresh('img')
    expect(make('--android-sparse', '--offset=100', image, source()), 1, 'multiple of 512')
    check(not os.path.lexists(image), 'an image')


@test('a device is refused before anything is written to it')
def _():
    tools.need_root()
    disk = fresh('disk')
    forest.write(disk, b'old' * 4096)
    loop = subprocess.run(['losetup', '-f', '--show', disk], capture_output=True)
    if loop.returncode:
        raise Skip('no loop device')
    device = loop.stdout.decode().strip()
    try:
        expect(make('--android-sparse', device, source()), 1, 'is a device')
    finally:
        subprocess.run(['losetup', '-d', device], check=True)
    is_(content(disk) == b'old' * 4096, True, 'the device')


main()
