#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs --zD (cli.md 7, format.md 9.10): directories in the packed file, compressed. Linux shows the source,
checkers accept it, and the bytes are the same whoever makes them."""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import roundtrip  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import check, is_, main, test  # noqa: E402
from tools import dump, expect, fresh, make  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')

EACH = (('--workers=1',), ('--workers=2',), ('--workers=7',), ('--workers=2',))
FIXED = roundtrip.FIXED
KNOWN = make('--version').out.decode().split('\n')[1].replace(',', ' ').split()
_source = []


def source():
    """Directories of no, one, many blocks; nested ones; names of all lengths; links."""
    if not _source:
        top = fresh('src', make=True, mode=0o755)
        for i in range(2500 if tools.SLOW else 5000):
            forest.write(os.path.join(top, 'many', 'a-name-that-many-files-begin-with-%d' % i), b'')
        for i in range(150):
            forest.write(os.path.join(top, 'long', '%03d' % i + 'n' * (i + 100)), b'%d' % i)
        for i in range(300):
            forest.write(os.path.join(top, 'small', '%d' % i, 'x', 'file'), b'contents %d\n' % i * (i % 9))
        os.mkdir(os.path.join(top, 'empty'))
        os.link(os.path.join(top, 'small', '1', 'x', 'file'), os.path.join(top, 'link'))
        os.symlink('long', os.path.join(top, 'symlink'))
        _source.append(top)
    return _source[0]


def layout(image, path):
    text = expect(dump('--path=' + path, image), 0).out.decode()
    return int(re.search(r'Layout: (\d)', text)[1])


def built(*words, top=None):
    image = fresh('img')
    expect(make(*FIXED, *words, image, top or source()), 0, silent=True)
    return image


for words in ('-zlz4', '-zlz4hc,9 -C65536 -Efragments', '-zlz4 -Eztailpacking,fragments,dedupe', '-zlz4 -b512',
              '-zlz4 -b1024 -Elegacy-compress', '-zzstd -C65536 -Eall-fragments', '-zlzma,1 -C32768 -Edot-omitted',
              '-zdeflate -E48bit', '-zlz4 -b16384 -Efragments=65536', '-zlz4 -x0 --xattr-prefix=user.',
              '-zzstd -C65536 -Eforce-inode-extended --chunksize=4096', '-zlz4 -b65536'):
    words = words.split()
    codec = words[0][2:].split(',')[0]

    if codec not in KNOWN:
        continue

    @test('--zD %s: Linux, our tools and a released fsck.erofs show the source' % ' '.join(words))
    def _(words=words):
        roundtrip.run(source(), ['--zD', *words], EACH)


@test('--zD: random trees')
def _():
    for seed in range(2 if tools.SLOW else 12):
        top = fresh('random')
        forest.grow(top, seed)
        roundtrip.run(top, ['--zD', '-zlz4', '-Efragments'][:2 + seed % 2], EACH[:3])
        tree.remove(top)


@test('--zD: directories are fragments, and the image is smaller for it; --zD=0 and without: they are not')
def _():
    plain, packed, off = built('-zlz4'), built('--zD', '-zlz4'), built('--zD=1', '-zlz4', '--zD=0')
    for path in ('/', '/many', '/long', '/small', '/empty'):
        is_(layout(packed, path), 1, path)
        check(layout(plain, path) in (0, 2), path)
    check(b'fragments' in dump('-s', packed).out, 'the feature is announced')
    check(b'fragments' not in dump('-s', plain).out, 'the feature is not announced')
    check(os.path.getsize(packed) < os.path.getsize(plain) * 3 // 4, 'smaller',
          (os.path.getsize(packed), os.path.getsize(plain)))
    with open(plain, 'rb') as one, open(off, 'rb') as two:
        is_(one.read() == two.read(), True, '--zD=0 changes nothing')


@test('--zD: fsck --verify=dir and mkfs --verify, --manifest see all directories')
def _():
    note = fresh('mtree')
    image = built('--zD', '-zlz4', '--verify', '--manifest=' + note)
    expect(tools.fsck('--verify=mtree:' + note, image), 0)
    expect(tools.fsck('--verify=dir:' + source(), image), 0)


@test('--zD: of an archive, and of one that is indexed')
def _():
    archive = fresh('tar')
    subprocess.run(['tar', '--format=posix', '-C', source(), '-cf', archive, '.'], check=True)
    for words in (['--tar=f'], ['--tar=i']):
        image = built(*words, '--zD', '-zlz4', top=archive)
        is_(layout(image, '/many'), 1, words)
        device = ['--device=' + archive] if words == ['--tar=i'] else []
        expect(tools.fsck('--strict', '--verify=dir:' + source(), *device, image), 0)


@test('--zD without -z, or with a word that is no switch, is a usage error, and no image is made (R6)')
def _():
    for words, text in ((['--zD'], '--zD.* needs -z'), (['--zD=1'], 'needs -z'),
                        (['--zD=2', '-zlz4'], '0 or 1'), (['--zD=', '-zlz4'], '0 or 1')):
        image = fresh('img')
        expect(make(*words, image, source()), 1, text)
        check(not os.path.lexists(image), 'an image was made', words)


main()
