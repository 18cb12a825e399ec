#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs --verify and --manifest (cli.md 8): an image that is not what was put in is named, and gets no name.

--manifest to a pipe holds mkfs.erofs between the end of the image and the comparison, until somebody reads: there
the source changes, or what was written.
"""
import fcntl
import glob
import gzip
import hashlib
import os
import re
import struct
import subprocess
import sys
import tarfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import tools  # noqa: E402
from changes import BIG, CHANGES, build, write  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import dump, expect, fresh, fsck, make  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')

OLD = b'what was there before'
LINE = re.compile(r'<E> erofs: (/.*?): (\S+) \((.*), (.*)\)')


def contents(path):
    with open(path, 'rb') as file:
        return file.read()


def is_complete(picture):
    with open(picture, 'rb') as file:
        file.seek(1024)
        return file.read(4) == b'\xe2\xe1\xf5\xe0'


def state(process):
    """R running, S waiting, Z ended; whoever asks by poll() takes the status from the one who wants it."""
    with open('/proc/%d/stat' % process.pid) as file:
        return file.read().rsplit(')', 1)[1].split()[0]


def wait_for(process, picture, temporary):
    """The image's name once it is complete and mkfs.erofs waits for who reads the pipe; None: it ended."""
    calm = 0
    while state(process) != 'Z':
        found = glob.glob(glob.escape(picture) + '.*') if temporary else [picture]
        calm = calm + 1 if found and is_complete(found[0]) and state(process) == 'S' else 0
        if calm == 3:
            return found[0]
        time.sleep(0.003)
    return None


def bytes_read(process):
    with open('/proc/%d/io' % process.pid) as file:
        return int(re.search(r'^rchar: (\d+)$', file.read(), re.M).group(1))


def held(act, *words, picture=None, verify=True, **more):
    """Run mkfs.erofs --verify, and act(image) while it waits between the image and the comparison. What it then
    writes as the manifest goes to more['manifest'], a bytearray; how much it has read to more['read'], a list."""
    if not os.path.exists('/proc/self/stat'):
        raise Skip('no /proc')
    pipe, temporary = fresh('pipe'), picture is None
    manifest, read = more.pop('manifest', bytearray()), more.pop('read', None)
    picture = picture or tools.save(OLD)
    os.mkfifo(pipe)

    # opened here, so that its opening does not wait; and full, so that the first line does
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    filler = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    os.write(filler, bytes(fcntl.fcntl(filler, fcntl.F_GETPIPE_SZ)))
    os.close(filler)
    os.set_blocking(reader, True)

    def during(process):
        name = wait_for(process, os.path.realpath(picture), temporary)
        if name:
            act(name)
            if read is not None:
                read.append(bytes_read(process))
            while data := os.read(reader, 65536):
                manifest.extend(data)
            del manifest[:manifest.index(b'#mtree')]
        os.close(reader)
    return make('--quiet', *['--verify'] * verify, '--workers=1', '--manifest=' + pipe, *words[:-1], picture,
                words[-1], during=during, **more), picture


def nothing(_):
    pass


def differences(result):
    return sorted(m.groups() for m in map(LINE.fullmatch, result.text.splitlines()) if m)


def refused(result, picture, wanted):
    expect(result, 1, r'^<E> erofs: %d differences? from ' % len(wanted), 'Could not format the device')
    is_(differences(result), wanted)
    is_(contents(picture), OLD, 'the image of before')
    is_(glob.glob(glob.escape(picture) + '.*'), [], 'no temporary file')


OPTIONS = [
    [], ['-zlz4'], ['-zlz4hc', '-C65536', '-Eall-fragments,dedupe'], ['-zlz4', '-Eztailpacking,fragments'],
    ['-Eforce-inode-compact', '-T1', '--all-root'], ['-b512', '-Enoinline_data'], ['-Eforce-inode-extended', '-x0'],
    ['--force-uid=7', '--gid-offset=9', '-T5'], ['-x', '-1'], ['--exclude-path=etc/small', '--exclude-regex=deep'],
    ['--ignore-mtime', '-T3'], ['-T3', '--mkfs-time'], ['--hard-dereference'], ['-zlz4', '-E48bit'],
    ['--chunksize=4096'], ['--chunksize=65536', '--xattr-prefix=user.'], ['--xattr-inode-digest=user.sum', '-T1'],
]


@test('--verify: whatever the options say of owners, times, names and layout is no difference')
def _():
    top = build(socket=True)
    for words in OPTIONS:
        for workers in tools.WORKERS:
            picture = fresh('img')
            expect(make('--quiet', '--verify', '--workers=' + workers, *words, picture, top), 0, silent=True)
        expect(fsck('--workers=2', picture), 0, silent=True)


@test('--verify: layers: marks of aufs and overlayfs, archives from a file, compressed and through a pipe')
def _():
    top = build(socket=True)
    write(os.path.join(top, 'bin/.wh.gone'), b'')
    for words in (['--aufs'], ['--aufs', '--ovlfs-strip']):
        expect(make('--quiet', '--verify', *words, fresh('img'), top), 0, silent=True)
    archive = fresh('tar')
    done = subprocess.run(['tar', '--format=pax', '--xattrs', '--xattrs-include=*', '-S', '-cf', archive, '-C',
                           build(), '.'], capture_output=True)
    if done.returncode:
        raise Skip('tar failed: %r' % done.stderr[:200])
    result = make('--quiet', '--verify', '--tar=f', fresh('img'), archive)
    if 'libarchive, which is not there' in result.text:
        raise Skip('built without libarchive')
    expect(result, 0, silent=True)
    packed = tools.save(gzip.compress(contents(archive)))
    for words in ([], ['-zlz4', '-Efragments'], ['--sort=none', '--all-root']):
        expect(make('--quiet', '--verify', '--tar=f', *words, fresh('img'), packed), 0, silent=True)
        with open(packed, 'rb') as pipe:
            expect(make('--quiet', '--verify', '--tar=f', *words, fresh('img'), stdin=pipe), 0, silent=True)
    expect(make('--quiet', '--verify', '--tar=i', fresh('img'), archive), 0, silent=True)


@test('--verify: merged images')
def _():
    one, two = fresh('img'), fresh('img')
    expect(make('--quiet', '-T1', one, build()), 0, silent=True)
    expect(make('--quiet', '-T1', '--aufs', two, build()), 0, silent=True)
    expect(make('--quiet', '--verify', fresh('img'), one, two), 0, silent=True)


@test('--verify -v: says what was compared')
def _():
    top = build()
    expect(make('-v', '--verify', fresh('img'), top), 0, r'^<I> erofs: The same as %s: \d+ names, \d{7} bytes$'
           % re.escape(top))


@test('--verify: an image held up and not changed gets its name')
def _():
    result, picture = held(nothing, '-T1', build())
    expect(result, 0, silent=True)
    expect(fsck('--workers=2', picture), 0, silent=True)


@test('--verify: each kind of change to what was written is named, and nothing else; the old image stays')
def _():
    words = ['-Eforce-inode-extended']
    top = build()
    for name, function, wanted in CHANGES:
        other = fresh('img')
        expect(make('--quiet', *words, other, build(function)), 0)
        result, picture = held(lambda temp: write(temp, contents(other)), *words, top)
        found = differences(result)
        is_([d[:2] for d in found], sorted((w[0], turn(w[1])) for w in wanted), '%s: %s' % (name, result))
        if len(wanted[0]) > 2 and wanted[0][1] not in ('data', 'missing', 'extra'):
            is_(found, sorted((w[0], w[1], w[3], w[2]) for w in wanted), name)
        refused(result, picture, found)


def turn(key):
    """The image has what the source had, and the other way round."""
    return {'missing': 'extra', 'extra': 'missing'}.get(key, key)


@test('--verify: a source that changes after it was read: the file is named')
def _():
    for words in ([], ['-zlz4'], ['-zlz4hc', '-Eall-fragments']):
        top = build()
        path = os.path.join(top, 'big')
        result, picture = held(lambda _: write(path, BIG[:2000000] + b'!' + BIG[2000001:]), *words, top)
        refused(result, picture, [('/big', 'data', '0x%02x at byte 2000000' % BIG[2000000], '0x21')])
        result, picture = held(lambda _: write(path, BIG + b'!'), *words, top)
        is_(len(differences(result)), 1)
        refused(result, picture, [('/big', 'size', str(len(BIG)), str(len(BIG) + 1))])


@test('--manifest: what dump.erofs --to-mtree prints, and fsck.erofs --verify=mtree: takes')
def _():
    top = build(socket=True)
    for words in OPTIONS:
        for workers in tools.WORKERS:
            picture, manifest = fresh('img'), fresh('mtree')
            expect(make('--quiet', '--workers=' + workers, '--manifest=' + manifest, *words, picture, top), 0,
                   silent=True)
            is_(contents(manifest), expect(dump('--to-mtree', picture), 0).out, str(words))
            check(b' sha256digest=' in contents(manifest))
            expect(fsck('--verify=mtree:' + manifest, picture), 0, silent=True)
    out = expect(make('--quiet', '--manifest=-', fresh('img'), top), 0).out
    is_(out[:7], b'#mtree\n')
    one, two, manifest = fresh('img'), fresh('img'), fresh('mtree')
    expect(make('--quiet', '-T1', one, top), 0)
    expect(make('--quiet', '--manifest=' + manifest, two, one, one), 0, silent=True)
    is_(contents(manifest), expect(dump('--to-mtree', '--device=' + one, '--device=' + one, two), 0).out)


def damage(image, at):
    with open(image, 'r+b') as file:
        file.seek(at)
        data = bytes(b ^ 0x55 for b in file.read(512))
        file.seek(at)
        file.write(data)


@test('--manifest: its digests are of what was put in, in the same pass, and not of what is read back')
def _():
    top = build()
    for words in (['-T1', '-Enoinline_data'], ['-T1', '-zlz4'], ['-T1', '--chunksize=4096']):
        picture, found = fresh('img'), bytearray()
        good = expect(make('--quiet', '--manifest=-', *words, picture, top), 0).out
        place = contents(picture).index(BIG[32768 + 1024:32768 + 1536])
        result, picture = held(lambda image: damage(image, place), *words, top, verify=False, manifest=found)
        expect(result, 0, silent=True)
        is_(bytes(found), good, str(words))
        expect(fsck('--verify=mtree:' + tools.save(good), picture), 4, '/big: ')
        # and what comes of the source afterwards is not in it either
        other, found = build(), bytearray()
        result, picture = held(lambda _: write(os.path.join(other, 'big'), b'!'), *words, other, verify=False,
                               manifest=found)
        expect(result, 0, silent=True)
        is_(bytes(found), good, str(words))


MIB = 1 << 20
LARGE = (BIG * 5)[:9 * MIB + 4321]
LAYOUTS = [
    [], ['-b512', '-Enoinline_data'], ['-zlz4'], ['-zlz4', '-C1048576'], ['-zlz4', '-Eztailpacking,fragments'],
    ['-zlz4', '-Efragments,dedupe', '-C32768'], ['-zlz4', '-Eall-fragments'], ['-zlz4', '-Ededupe'],
    ['-zlz4', '-E48bit'], ['-zlz4', '-Elegacy-compress'], ['--chunksize=4096'], ['--chunksize=8388608'],
    ['--hard-dereference'], ['--xattr-inode-digest=user.sum'],
]


def build_large():
    """Files of several segments: of 4 MiB, up to 8 MiB, or all of a chunk."""
    top = fresh('tree', make=True)
    for name, data in (('large', LARGE), ('twin', LARGE), ('tail', b'tail' + LARGE), ('even', LARGE[:8 * MIB]),
                       ('one', LARGE[:4 * MIB]), ('more', LARGE[:4 * MIB + 1]), ('less', LARGE[:4 * MIB - 1]),
                       ('small', b'text\n' * 99), ('same', b'text\n' * 99), ('tiny', b't'), ('none', b'')):
        write(os.path.join(top, name), data)
    for name, size, place in (('hole', 17 * MIB, 0), ('first', 13 * MIB, 0), ('mid', 21 * MIB, 12 * MIB + 77)):
        with open(os.path.join(top, name), 'wb') as file:
            file.truncate(size)
            file.seek(place)
            file.write(b'' if name == 'hole' else LARGE[:70000])
    os.link(os.path.join(top, 'large'), os.path.join(top, 'a link'))
    os.link(os.path.join(top, 'small'), os.path.join(top, 'z link'))
    return top


def digests(manifest):
    """Words of the lines that have a digest."""
    lines = (line.split() for line in manifest.splitlines())
    return {words[0].replace(b'\\040', b' ').decode()[2:]: words[-1].partition(b'=')[2].decode() for words in lines
            if b'sha256digest=' in words[-1]}


def sums(top):
    return {name: hashlib.sha256(contents(os.path.join(top, name))).hexdigest() for name in os.listdir(top)}


@test('--manifest: large files, in segments, holes, fragments, shared data and links: the digests of the source')
def _():
    top = build_large()
    wanted = sums(top)
    for words in LAYOUTS:
        for workers in ('1', '3'):
            picture, manifest = fresh('img'), fresh('mtree')
            expect(make('--quiet', '-T1', '--workers=' + workers, '--manifest=' + manifest, *words, picture, top), 0,
                   silent=True)
            is_(digests(contents(manifest)), wanted, str(words))
            is_(contents(manifest), expect(dump('--to-mtree', picture), 0).out, str(words))


@test('--xattr-inode-digest, --manifest: files of different sizes are read once')
def _():
    if tools.INSTRUMENT or not os.path.exists('/proc/self/io'):
        raise Skip('instrumented, or no /proc/PID/io')
    top = fresh('tree', make=True)
    for n in range(7):
        write(os.path.join(top, 'f%d' % n), LARGE[:4 * MIB + n])
    size = sum(4 * MIB + n for n in range(7))
    for words in ([], ['-zlz4'], ['-x', '-1']):
        counts = []
        for more in ([], ['--xattr-inode-digest=user.sum']):
            result, picture = held(nothing, '-T1', *words, *more, top, verify=False, read=counts)
            expect(result, 0, silent=True)
        check(all(size <= n < size + 2 * MIB for n in counts), '%s: %s of %d' % (words, counts, size))
        expect(fsck('--xattr-inode-digest', '--extract', picture), 0, silent=True)


@test('--manifest: of archives, of headers without contents, and of images laid over each other')
def _():
    top, archive, one, two, three = build_large(), fresh('tar'), fresh('img'), fresh('img'), fresh('img')
    plain = fresh('img')
    expect(make('--quiet', '-T1', plain, top), 0)
    expect(dump('--to-tar=' + archive, plain), 0)
    result = make('--quiet', '--tar=f', fresh('img'), archive)
    if 'libarchive, which is not there' in result.text:
        raise Skip('built without libarchive')
    expect(result, 0, silent=True)
    for words in ([], ['-zlz4', '-Efragments'], ['--chunksize=4096'], ['--sort=none']):
        manifest = expect(make('--quiet', '-T1', '--tar=f', '--manifest=-', *words, one, archive), 0).out
        is_(digests(manifest), sums(top), str(words))
        is_(manifest, expect(dump('--to-mtree', one), 0).out, str(words))
    write(os.path.join(top, 'small'), LARGE[:123456])
    expect(make('--quiet', '-T1', two, top), 0)
    for below in (plain, one):
        manifest = expect(make('--quiet', '--manifest=-', three, below, two), 0).out
        is_(digests(manifest)['small'], hashlib.sha256(LARGE[:123456]).hexdigest())
        is_(manifest, expect(dump('--to-mtree', '--device=' + below, '--device=' + two, three), 0).out)
    info = tarfile.TarInfo('hole')
    info.size = 9 * MIB + 5
    heads = tools.save(info.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    manifest = expect(make('--quiet', '--tar=headerball', '--manifest=-', one, heads), 0).out
    is_(digests(manifest), {'hole': hashlib.sha256(bytes(info.size)).hexdigest()})


@test('--manifest: a run that fails leaves the old one; one that cannot write it leaves the old image')
def _():
    manifest, picture = tools.save(b'old'), tools.save(OLD)
    expect(make('--quiet', '--manifest=' + manifest, picture, fresh('nowhere')), 1)
    is_(contents(manifest), b'old')
    expect(make('--quiet', '--manifest=/no/such/place', picture, build()), 1, '/no/such/place')
    is_(contents(picture), OLD)
    if os.path.exists('/dev/full'):
        expect(make('--quiet', '--manifest=/dev/full', picture, build()), 1, 'No space')
        is_(contents(picture), OLD)
    expect(make('--manifest=', picture, build()), 1, 'needs the name')
    expect(make('--tar=i', '--manifest=x', picture, 'x'), 1, 'not implemented')


def fsverity(data):
    level = [data[i:i + 4096].ljust(4096, b'\0') for i in range(0, len(data), 4096)]
    while True:
        hashes = b''.join(hashlib.sha256(b).digest() for b in level)
        if len(hashes) == 32:
            break
        level = [hashes[i:i + 4096].ljust(4096, b'\0') for i in range(0, len(hashes), 4096)]
    head = struct.pack('<BBBBIQ', 1, 1, 12, 0, 0, len(data)) + hashes.ljust(64, b'\0')
    return hashlib.sha256(head.ljust(256, b'\0')).hexdigest().encode()


@test('--print-digest: fs-verity of the image file, by mkfs.erofs and dump.erofs, whatever the workers')
def _():
    top = build()
    for words in ([], ['-zlz4'], ['-b512']):
        for workers in tools.WORKERS:
            picture = fresh('img')
            made = expect(make('--quiet', '--print-digest', '--workers=' + workers, *words, picture, top), 0)
            is_(made.out, fsverity(contents(picture)) + b'\n')
            is_(expect(dump('--print-digest', '--workers=' + workers, picture), 0).out, made.out)
    is_(expect(make('--print-digest', '-Uclear', picture, top), 0).out.splitlines()[-1], fsverity(contents(picture)))
    with open(picture, 'ab') as file:
        file.write(b'more')
    is_(expect(dump('--print-digest', picture), 0).out, fsverity(contents(picture)) + b'\n', 'all of the file counts')
    for words in (['--cat', '--path=/big'], ['--to-tar'], ['--json']):
        expect(dump('--print-digest', *words, picture), 2)


@test('--verify: damage to what was written is named, status 1')
def _():
    top = build()

    def spoil(temp):
        with open(temp, 'r+b') as file:
            file.seek(1024 + 40)
            file.write(b'\xff' * 4)
    result, picture = held(spoil, top)
    expect(result, 1, 'superblock')
    is_(contents(picture), OLD)


@test('--verify reads the device of chunks, --blobdev: what is wrong there is named, and neither gets its name')
def _():
    top, blob = build(), tools.save(OLD)

    def spoil(_):
        temp, = glob.glob(glob.escape(blob) + '.*')
        data = bytearray(contents(temp))
        at = data.index(BIG[1 << 20:(1 << 20) + 4096])
        data[at + 7] ^= 0x55
        with open(temp, 'r+b') as file:
            file.write(data)
    for words in (['--chunksize=4096'], ['--chunksize=65536', '-Enoinline_data']):
        result, picture = held(spoil, *words, '--blobdev=' + blob, top)
        wanted = BIG[(1 << 20) + 7]
        refused(result, picture, [('/big', 'data', '0x%02x at byte %d' % (wanted ^ 0x55, (1 << 20) + 7),
                                   '0x%02x' % wanted)])
        is_(contents(blob), OLD, 'the device of before')
        is_(glob.glob(glob.escape(blob) + '.*'), [], 'no temporary file of it')
        result, picture = held(nothing, *words, '--blobdev=' + fresh('blob'), top)
        expect(result, 0, silent=True)


@test('--verify: what is written in place looks like no image when it is not the same')
def _():
    if not os.path.isdir('/dev/fd'):
        raise Skip('no /dev/fd')
    top, path = build(), tools.save(b'')
    with open(path, 'r+b') as file:
        result, _ = held(lambda _: write(os.path.join(top, 'big'), b''), top, picture='/dev/fd/%d' % file.fileno(),
                         pass_fds=(file.fileno(),))
        expect(result, 1, '/big: size')
    check(not is_complete(path), 'no superblock')


main()
