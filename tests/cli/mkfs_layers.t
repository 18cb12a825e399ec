#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs: indexes of archives (--tar=i) and merged images (cli.md 7, 10: C20)."""
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import ROOT, dump, expect, fresh, fsck, make, save  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')

FIXED = ['-Uclear', '-T1700000000', '--mkfs-time', '--quiet']


def has_archives():
    if 'libarchive, which is not there' in make('--tar', fresh(), '/dev/null').text:
        raise Skip('built without libarchive')


def bytes_of(path):
    with open(path, 'rb') as file:
        return file.read()


def archive(top):
    """A tar file of a tree, made by Python."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as tar:
        tar.add(top, '.', recursive=True)
    return out.getvalue()


def to_tar(image, *words):
    return expect(dump('--to-tar', *words, image), 0).out


def members(image, *words):
    with tarfile.open(fileobj=io.BytesIO(to_tar(image, *words))) as tar:
        return {m.name: m for m in tar}


def content(image, name, *words):
    return expect(dump('--cat', '--path=' + name, *words, image), 0).out


def source(**files):
    top = fresh('src', make=True, mode=0o755)
    for name, data in files.items():
        forest.write(os.path.join(top, name), data)
    return top


def layer(top, *words):
    image = fresh('layer')
    expect(make(*FIXED, '-Enoinline_data', *words, image, top), 0, silent=True)
    return image


def merged(*words, status=0, patterns=()):
    image = fresh('merged')
    expect(make(*FIXED, *words[:-1], image, *words[-1]), status, *patterns, silent=not status)
    check(os.path.exists(image) == (not status))
    devices = ['--device=' + name for name in words[-1]]
    if not status:
        expect(fsck('--workers=2', '--strict', *devices, image), 0, silent=True)
    return image, devices


def loop(path):
    done = subprocess.run(['losetup', '-f', '--show', '-r', path], capture_output=True)
    if done.returncode:
        raise Skip('no loop device: ' + done.stderr.decode().strip())
    return done.stdout.decode().strip()


# ---- --tar=i ----

@test('C20: --tar=i: the index ends where the archive begins when it is appended; Linux reads the two as one')
def _():
    has_archives()
    top = fresh('src', make=True, mode=0o755)
    forest.make_source(top)
    data, image = archive(top), fresh('index')
    wanted = tree.read(top, xattrs=False)
    with open(save(data), 'rb') as file:
        expect(make('--tar=i', '--aufs', '--quiet', '-Enoinline_data', '-b4096', '-T0', '--mkfs-time', '--sort=none',
                    '-Uclear', image, stdin=file), 0, silent=True)
    check(len(bytes_of(image)) < len(data) / 4, 'no contents in the index')
    is_(os.path.getsize(image) % 512, 0)
    both = save(bytes_of(image) + data)
    expect(fsck('--workers=2', '--strict', both), 0, silent=True)
    for words in ([both], ['--device=' + save(data), image]):
        target = fresh('out')
        expect(fsck('--workers=2', '--extract=' + target, *words), 0)
        got = tree.read(target, xattrs=False)
        tree.remove(target)
        is_(tree.compare(wanted, got, xattrs=False, owner=ROOT, times=False), [], str(len(words)))
    tree.remove(top)
    with tools.Mount('-t', 'erofs', '-o', 'loop,ro', both) as mount:
        got = tree.read(mount, xattrs=False)
    is_(tree.compare(wanted, got, xattrs=False, times=False), [], 'mounted')


@test('--tar=i: from a pipe, compressed, from a file: the same index; no temporary file')
def _():
    has_archives()
    data = archive(source(a=b'a' * 5000, b=b'b', **{'d/c': b'c' * 100000}))
    wanted, nowhere = None, fresh('nowhere')
    for source_data in (data, subprocess.run(['gzip', '-c'], input=data, capture_output=True, check=True).stdout):
        path = save(source_data)
        pipe = subprocess.Popen(['cat', path], stdout=subprocess.PIPE)
        for operands, stdin in (([path], None), ([], pipe.stdout)):
            image = fresh('index')
            expect(make(*FIXED, '--tar=i', image, *operands, stdin=stdin, env={'TMPDIR': nowhere}), 0, silent=True)
            wanted = wanted or bytes_of(image)
            is_(bytes_of(image) == wanted, True, str(operands))
        is_(pipe.wait(), 0)


@test('--tar=i: sparse files keep their holes; pieces that are not in whole blocks are refused')
def _():
    has_archives()
    if not shutil.which('tar'):
        raise Skip('no tar')
    top = fresh('src', make=True)
    with open(os.path.join(top, 'sparse'), 'wb') as file:
        file.truncate(5000000)
        for place in (8192, 1000000 // 4096 * 4096, 4096 * 1000):
            file.seek(place)
            file.write(b'0123456789' * 500)
    with open(os.path.join(top, 'hole'), 'wb') as file:
        file.truncate(70000)
    for words in (['--format=gnu'], ['--format=posix']):
        data = subprocess.run(['tar', '-S', *words, '-C', top, '-cf', '-', '.'], capture_output=True, check=True).stdout
        image = fresh('index')
        expect(make(*FIXED, '--tar=i', image, save(data)), 0, silent=True)
        both = save(bytes_of(image) + data)
        for name in os.listdir(top):
            is_(content(both, '/' + name) == bytes_of(os.path.join(top, name)), True, name)
    info = tarfile.TarInfo('x')
    info.size = 4
    info.pax_headers = {'GNU.sparse.size': '2000', 'GNU.sparse.numblocks': '2', 'GNU.sparse.map': '0,2,1000,2'}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(b'abcd'))
    expect(make('--tar=i', fresh('index'), save(out.getvalue())), 1, 'x: .*whole blocks')


# ---- images ----

@test('C20: --aufs --ovlfs-strip=1 --quiet OUT A B: later layers cover earlier ones; contents stay where they are')
def _():
    one = source(**{'d/old': b'old', 'd/both': b'lower', 'big': os.urandom(9000), 'op/low': b'x', 'file': b'f', 'gone': b'g'})
    two = source(**{'d/both': b'upper!', 'd/new': b'n' * 5000, 'op/up': b'u', 'file/now': b'dir'})
    os.link(os.path.join(one, 'big'), os.path.join(one, 'd/link'))
    os.symlink('big', os.path.join(one, 'symlink'))
    tools.need_root()
    os.mknod(os.path.join(two, 'gone'), 0o20000, 0)
    os.setxattr(os.path.join(two, 'op'), 'trusted.overlay.opaque', b'y')
    os.chmod(os.path.join(two, 'd'), 0o700)
    layers = [layer(one), layer(two)]
    image, devices = merged('--aufs', '--ovlfs-strip=1', layers)
    found = members(image, *devices)
    is_(sorted(found), ['.', 'big', 'd', 'd/both', 'd/link', 'd/new', 'd/old', 'file', 'file/now', 'op', 'op/up', 'symlink'])
    is_((found['d'].mode, found['d/link'].linkname, found['symlink'].linkname), (0o700, 'big', 'big'))
    is_('SCHILY.xattr.trusted.overlay.opaque' in found['op'].pax_headers, False)
    for name, top in (('big', one), ('d/old', one), ('d/both', two), ('d/new', two), ('op/up', two)):
        is_(content(image, '/' + name, *devices) == bytes_of(os.path.join(top, name)), True, name)
    is_(os.path.getsize(image), 4096)
    kept, devices = merged('--aufs', layers)
    found = members(kept, *devices)
    is_((found['gone'].type, found['gone'].devmajor), (tarfile.CHRTYPE, 0))
    is_(found['op'].pax_headers['SCHILY.xattr.trusted.overlay.opaque'], 'y')
    check('op/low' not in found)


@test('merged images: Linux reads them with their layers as devices, and behind one another')
def _():
    one, two = source(a=b'1' * 9000, **{'d/x': b'x'}), source(b=b'2' * 100, **{'d/y': b'y' * 5000})
    layers = [layer(one), layer(two)]
    image, _ = merged(layers)
    tools.need_root()
    loops = [loop(path) for path in layers]
    try:
        with tools.Mount('-t', 'erofs', '-o', 'loop,ro,device=%s,device=%s' % tuple(loops), image) as mount:
            for name, top in (('a', one), ('b', two), ('d/x', one), ('d/y', two)):
                is_(bytes_of(os.path.join(mount, name)) == bytes_of(os.path.join(top, name)), True, name)
    finally:
        for device in loops:
            subprocess.run(['losetup', '-d', device], check=False)
    whole = save(bytes_of(image) + b''.join(map(bytes_of, layers)))
    expect(fsck('--strict', '--workers=2', whole), 0, silent=True)
    with tools.Mount('-t', 'erofs', '-o', 'loop,ro', whole) as mount:
        is_(bytes_of(os.path.join(mount, 'd/y')), b'y' * 5000)


@test('layers that are indexes with their archives behind them; three layers; one image alone')
def _():
    has_archives()
    tops = [source(a=b'1' * 3000, x=b'one'), source(b=b'2' * 9000, x=b'two'), source(c=b'3')]
    layers = []
    for top in tops:
        data, index = archive(top), fresh('index')
        expect(make(*FIXED, '--tar=i', index, save(data)), 0, silent=True)
        layers.append(save(bytes_of(index) + data))
    image, devices = merged(layers)
    for name, data in (('a', b'1' * 3000), ('b', b'2' * 9000), ('c', b'3'), ('x', b'two')):
        is_(content(image, '/' + name, *devices), data)
    alone, devices = merged(layers[:1])
    is_(content(alone, '/a', *devices), b'1' * 3000)


@test('what cannot stay where it is is copied: ends beside inodes, compressed files')
def _():
    top = fresh('src', make=True, mode=0o755)
    forest.make_source(top)
    inline = fresh('layer')
    expect(make(*FIXED, inline, top), 0, silent=True)
    layers = [inline]
    try:
        layers.append(tools.mkfs(top, '-zlz4', '-C65536', '-Efragments'))
    except Skip as why:
        print('# %s' % why)
    wanted = to_tar(inline)
    for path in layers:
        image, devices = merged([path])
        is_(to_tar(image, *devices) == wanted, True, path)
    tree.remove(top)


@test('--aufs for images: marks of aufs hide what lower layers have')
def _():
    one = source(**{'gone': b'1', 'd/low': b'2', 'keep/low': b'3', 'new/low': b'4'})
    two = source(**{'.wh.gone': b'', 'd/.wh..wh..opq': b'', 'd/up': b'5', '.wh.new': b'', 'new/up': b'6', '!first': b'7'})
    layers = [layer(one), layer(two)]
    image, devices = merged('--aufs', '--ovlfs-strip=1', layers)
    is_(sorted(members(image, *devices)), ['!first', '.', 'd', 'd/up', 'keep', 'keep/low', 'new', 'new/up'])
    image, devices = merged('--aufs', layers)
    is_(members(image, *devices)['gone'].type, tarfile.CHRTYPE)
    third = layer(source(gone=b'again'))
    image, devices = merged('--aufs', '--ovlfs-strip=1', layers + [third])
    is_(content(image, '/gone', *devices), b'again')


@test('layers with other block sizes, what is no image, and folders among them are refused')
def _():
    one, two = layer(source(a=b'1')), layer(source(b=b'2'), '-b1024')
    merged([one, two], status=1, patterns=['1024 bytes, which is not 4096'])
    merged('-b1024', [one], status=1, patterns=['4096 bytes, which is not 1024'])
    merged([one, save(b'x' * 5000)], status=1, patterns=['magic'])
    image = fresh('img')
    expect(make(image, one, source()), 1, 'unexpected argument')
    expect(make(image, source(), one), 1, 'unexpected argument')
    merged(['-b1024'][:0] + [one, fresh('nowhere')], status=1, patterns=['unexpected argument|No such file'])


@test('damaged layers: no crash, no hang; a sound image or none')
def _():
    dice = random.Random(4)
    good = bytes_of(layer(source(**{'d/x': b'x' * 3000, 'y': b'y' * 100, 'e/f/g': b'z'}), '-Enosbcrc'))
    ends = set()
    for number in range(15 if tools.SLOW else 80):
        data = bytearray(good)
        for _ in range(dice.randrange(1, 5)):
            place = dice.randrange(1152, 1152 + 500)
            data[place] ^= 1 << dice.randrange(8)
        path, image = save(bytes(data)), fresh('merged')
        result = make(*FIXED, image, path)
        check(not result.killed and result.status in (0, 1), number, result)
        if not result.status:
            expect(fsck('--workers=2', '--device=' + path, image), 0)
            os.unlink(image)
        ends.add(result.status)
    is_(ends, {0, 1}, 'some of both')


@test('a folder that is its own child, and one of two names, end the run')
def _():
    good = layer(source(**{'d/e/f': b'1'}), '-Enosbcrc')
    text = expect(dump('--ls', '--path=/d', good), 0).out.decode()
    nid = int(re.search(r'^ *(\d+) +2 +e$', text, re.M).group(1))
    root = int(re.search(r'root nid: *(\d+)', expect(dump('-s', good), 0).out.decode()).group(1))
    data = bytearray(bytes_of(good))
    place = data.index(nid.to_bytes(8, 'little'), 1152)
    data[place:place + 8] = root.to_bytes(8, 'little')
    merged([save(bytes(data))], status=1, patterns=['two names'])


main()
