#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs --manifest (cli.md 8): digests of what went into the image, whatever became of it there."""
import hashlib
import os
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import tools  # noqa: E402
import tree  # noqa: E402
from changes import settle, write  # noqa: E402
from tap import Skip, is_, main, test  # noqa: E402
from tools import dump, expect, fresh, fsck, make  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')

SEGMENT = 4 << 20
FIXED = ['--quiet', '-T1700000000', '-Uclear']


def noise(seed, size):
    return hashlib.shake_128(seed.encode()).digest(size)


def mixed(seed, size):
    """Every other KiB of it compressible."""
    count = size // 2048 + 1
    parts = [noise('%s %d' % (seed, i), 1024) + bytes([65 + i % 26]) * 1024 for i in range(count)]
    return b''.join(parts)[:size]


LARGE = mixed('large', 2 * SEGMENT + 1234)
FILES = {
    'large': LARGE, 'shifted': b'!' * 777 + LARGE, 'noise': noise('n', SEGMENT + 4097),
    'exact': mixed('exact', SEGMENT), 'above': mixed('above', SEGMENT + 1), 'none': b'', 'void': b'',
    'again/large': LARGE, 'again/page': b'page\n' * 2000, 'page': b'page\n' * 2000,
    **{'small/%d' % n: mixed('s%d' % n, n) for n in (1, 24, 25, 511, 4095, 4096, 4097, 70000, 1 << 20, (1 << 20) + 1)},
}
SPARSE = {'hole': (3 * SEGMENT + 5, []), 'sparse': (3 * SEGMENT, [(SEGMENT - 3, b'across'), (2 * SEGMENT + 9, b'x' * 9000)])}
LINKS = {'link/large': 'large', 'link/page': 'page', 'link/none': 'none'}


def build(files=None, links=True):
    """The tree, and the digest of each file by Python."""
    top, digests = fresh('tree', make=True, mode=0o755), {}
    for name, data in (FILES if files is None else files).items():
        os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
        write(os.path.join(top, name), data)
        digests[b'./' + name.encode()] = hashlib.sha256(data).hexdigest()
    if links:
        os.mkdir(os.path.join(top, 'link'))
        for name, (size, parts) in SPARSE.items():
            whole = bytearray(size)
            with open(os.path.join(top, name), 'wb') as file:
                file.truncate(size)
                for place, data in parts:
                    file.seek(place)
                    file.write(data)
                    whole[place:place + len(data)] = data
            digests[b'./' + name.encode()] = hashlib.sha256(whole).hexdigest()
        for name, old in LINKS.items():
            os.link(os.path.join(top, old), os.path.join(top, name))
            digests[b'./' + name.encode()] = digests[b'./' + old.encode()]
        os.symlink('large', os.path.join(top, 'link/sym'))
    settle(top)
    return top, digests


def digests_of(manifest):
    return {name: e.digest for name, e in tree.manifest(manifest).items() if e.kind == 'file'}


def compare(wanted, picture, manifest, *devices, what=''):
    with open(manifest, 'rb') as file:
        is_(file.read(), expect(dump('--to-mtree', *devices, picture), 0).out, what)
    is_(digests_of(manifest), wanted, what)


def methods():
    """Those that this mkfs.erofs has."""
    return [m for m in ('lz4', 'lz4hc', 'deflate', 'zstd') if m in make('--help').text]


OPTIONS = [
    [], ['-Enoinline_data', '-b512'], ['--chunksize=4096'], ['--chunksize=65536', '-Enoinline_data'], ['-zlz4'],
    ['-zlz4', '-Eall-fragments'], ['-zlz4', '-Efragments,ztailpacking', '-C65536'], ['-zlz4', '-Ededupe'],
    ['-zlz4', '-Eall-fragments,dedupe', '-C65536'], ['-zlz4', '-E48bit'], ['-zlz4', '-C1048576'],
    ['-zlz4', '--hard-dereference'], ['-zlz4', '-Elegacy-compress'], ['-zzstd', '-Efragments', '-C16384'],
]


@test('--manifest: the digests of the source, and what dump.erofs --to-mtree prints, whatever the options')
def _():
    top, wanted = build()
    for words in OPTIONS:
        if any(w.startswith('-z') and w[2:] not in methods() for w in words):
            continue
        seen = set()
        for workers in tools.WORKERS:
            picture, manifest = fresh('img'), fresh('mtree')
            expect(make(*FIXED, '--workers=' + workers, '--manifest=' + manifest, *words, picture, top), 0,
                   silent=True)
            with open(manifest, 'rb') as file:
                seen.add(file.read())
        is_(len(seen), 1, 'the same with %s workers: %s' % (tools.WORKERS, words))
        compare(wanted, picture, manifest, what=str(words))
        expect(fsck('--verify=mtree:' + manifest, picture), 0, silent=True)


@test('--manifest: contents in another device')
def _():
    top, wanted = build()
    picture, manifest, blob = fresh('img'), fresh('mtree'), tools.save(b'', 'blob')
    expect(make(*FIXED, '--chunksize=4096', '--blobdev=' + blob, '--manifest=' + manifest, picture, top), 0, silent=True)
    compare(wanted, picture, manifest, '--device=' + blob)


@test('--manifest of an archive: from a file, from a pipe, compressed')
def _():
    if 'libarchive, which is not there' in make('--tar', fresh(), '/dev/null').text:
        raise Skip('built without libarchive')
    top, wanted = build()
    for form in ('w', 'w:gz'):
        source = fresh('tar')
        with tarfile.open(source, form, format=tarfile.PAX_FORMAT) as tar:
            tar.add(top, '.')
        for words in ([], ['-zlz4', '-Efragments']):
            picture, manifest = fresh('img'), fresh('mtree')
            expect(make(*FIXED, '--tar=f', *words, '--manifest=' + manifest, picture, source), 0, silent=True)
            compare(wanted, picture, manifest, what='%s %s' % (form, words))
            with open(source, 'rb') as file:
                expect(make(*FIXED, '--tar=f', *words, '--manifest=' + manifest, picture, stdin=file), 0, silent=True)
            compare(wanted, picture, manifest, what='pipe %s %s' % (form, words))


@test('--manifest of merged images, whose contents stay where they are')
def _():
    lower, wanted = build()
    upper, more = build({'new': b'new' * 9000, 'page': b'another', 'big': LARGE[::-1]}, links=False)
    one, two, merged, manifest = fresh('one'), fresh('two'), fresh('merged'), fresh('mtree')
    expect(make(*FIXED, one, lower), 0, silent=True)
    expect(make(*FIXED, two, upper), 0, silent=True)
    expect(make(*FIXED, '--manifest=' + manifest, merged, one, two), 0, silent=True)
    compare({**wanted, **more}, merged, manifest, '--device=' + one, '--device=' + two)


main()
