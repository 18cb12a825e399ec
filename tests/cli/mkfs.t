#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs: options, refusals, outputs, the file that becomes the image (cli.md 2, 3, 7, 10 to 13)."""
import errno
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

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

UUID = '01234567-89ab-cdef-0123-456789abcdef'
FIXED = ['-Uclear', '-T1700000000', '--quiet']


def source(**files):
    """A folder with these files."""
    top = fresh('src', make=True, mode=0o755)
    for name, data in (files or {'one': b'1' * 5000, 'two': b'2'}).items():
        forest.write(os.path.join(top, name), data)
    return top


def sound(image):
    expect(fsck('--workers=2', '--strict', image), 0, silent=True)
    return image


def made(top, *words, **more):
    image = fresh('img')
    expect(make(*FIXED, *words, image, top, **more), 0, silent=True)
    return sound(image)


def bytes_of(path):
    with open(path, 'rb') as file:
        return file.read()


def shown(image, label):
    text = expect(dump('-s', image), 0).out.decode()
    found = re.search(r'^%s: *(.*?) *$' % re.escape(label), text, re.M)
    return found.group(1) if found else None


def extracted(image, *words):
    target = fresh('out')
    expect(fsck('--extract=' + target, *words, image), 0)
    return target


def names(image):
    return {line[1:] for line in expect(dump('--ls', '--recursive', image), 0).out.decode().splitlines()}


# ---- what the command line promises ----

@test('R7, R8: --help and --version to stdout, status 0; first number is the release, line 2 compressors')
def _():
    text = expect(make('--help'), 0).out.decode()
    for word in ('-b#', '--tar=', '--xattr-prefix', 'workers', '--exclude-path=X'):
        check(word in text, word, text)
    lines = expect(make('-V'), 0).out.decode().splitlines()
    check(re.match(r'mkfs\.erofs \D*1\.9\.\d', lines[0]), lines[0])
    check(lines[1].startswith('available compressors: '), lines[1])


@test('R6: usage errors: one <E> line that quotes, the hint, status 1, nothing made')
def _():
    top = source()
    for words in (['--no-such'], ['-b', 'x'], ['-U', 'nonsense'], ['-U', UUID + '0'], ['-T', '-1'],
                  ['-L', 'sixteen-letters!'], ['--force-uid=4294967296'], ['-Efoo'], ['-E'],
                  ['-x', 'y'], ['-d10'], ['--uid-offset=']):
        image = fresh('img')
        result = expect(make(*words, image, top), 1, r'^<E> erofs: .', r"Try 'mkfs\.erofs --help'")
        is_(len(result.text.splitlines()), 2, str(words))
        check(not os.path.exists(image), words)
    expect(make(), 1, 'FILE')
    expect(make(fresh()), 1, 'SOURCE')
    expect(make(fresh(), top, top), 1, 'unexpected')


ABSENT = ['-m4096', '--MZ', '--clean=data', '--incremental=data', '--gzinfo',
          '--vmdk-desc=x', '--s3=x', '--oci', '--dsunit=1', '--fsalignblks=1', '--zfeature-bits=1',
          '--async-queue-limit=1',
          '--ungzip=x', '--unxz=x']


@test('options that are not there are refused with "not implemented", never ignored')
def _():
    top = source()
    for word in ABSENT:
        image = fresh('img')
        expect(make(word, image, top), 1, 'not implemented')
        check(not os.path.exists(image), word)


@test('R9, C24: each option stands in the executable as a string of its own')
def _():
    data = bytes_of(tools.binary(tools.MKFS))
    for name in ('mkfs-time', 'sort', 'tar', 'aufs', 'workers', 'quiet', 'exclude-regex', 'zD', 'MZ', 'oci'):
        check(re.search(rb'[^\x20-\x7e]' + name.encode() + rb'\0', data), name)


@test('R1, C23: options after the operands, and behind --')
def _():
    top, image = source(), fresh('img')
    expect(make(image, top, '--quiet', '--exclude-regex', '^one$'), 0, silent=True)
    is_(names(sound(image)), {'two'})
    image = fresh('img')
    expect(make('--quiet', '-U', UUID, '--', image, top), 0, silent=True)
    sound(image)


@test('C20: the output of a success is empty; -Enoinline_data -b4096')
def _():
    top = source()
    image = made(top, '-Enoinline_data', '-b4096')
    is_(shown(image, 'Filesystem blocksize'), '4096')


@test('R14: --quiet drops banner and summary and wins over -d9')
def _():
    top = source()
    expect(make('-d9', '--quiet', fresh('img'), top), 0, silent=True)
    expect(make('--quiet', '-d9', fresh('img'), top), 0, silent=True)


@test('V12: stdout has banner and summary, no name of a file')
def _():
    image = fresh('img')
    result = expect(make('-U', UUID, image, source()), 0)
    is_(result.err, b'', 'stderr')
    lines = result.out.decode().splitlines()
    check(re.fullmatch(r'mkfs\.erofs \d+\.\d+\.\d+', lines[0]), lines[0])
    blocks = os.path.getsize(image) // 4096
    is_(lines[1:5], ['Build completed.', '------', 'Filesystem UUID: ' + UUID,
                     'Filesystem total blocks: %d (of 4096-byte blocks)' % blocks])
    is_(lines[5], 'Filesystem total inodes: 3')
    check(re.fullmatch(r'Filesystem total metadata blocks: [12]', lines[6]), lines[6])
    is_(lines[7:], ['Filesystem total deduplicated bytes (of source files): 0'])


@test('R11: a full stdout is a failure')
def _():
    if not os.path.exists('/dev/full'):
        raise Skip('no /dev/full')
    with open('/dev/full', 'w') as full:
        expect(make(fresh('img'), source(), stdout=full), 1, 'standard output')


@test('failure: the cause, then "Could not format the device"')
def _():
    expect(make(fresh('img'), fresh('missing')), 1, 'cannot open the folder',
           r'<E> erofs: \tCould not format the device : \[Error %d\] ' % errno.ENOENT)


# ---- what comes out ----

@test('-U, -L, -T, -b: the superblock says so; C30: blkid recognises it')
def _():
    image = fresh('img')
    expect(make('-U', UUID.upper(), '-L', 'fifteen-letters', '-T', '0x10', '-b', '4K', '--quiet', image,
                source()), 0, silent=True)
    is_(shown(image, 'Filesystem UUID'), UUID)
    is_(shown(image, 'Filesystem blocksize'), '4096')
    raw = bytes_of(image)
    is_(raw[1024 + 64:1024 + 80], b'fifteen-letters\0')
    is_(int.from_bytes(raw[1024 + 24:1024 + 32], 'little'), 16)
    sound(image)
    if not shutil.which('blkid'):
        raise Skip('no blkid')
    words = subprocess.run(['blkid', '-p', '-o', 'export', image], capture_output=True).stdout.decode()
    for line in ('TYPE=erofs', 'UUID=' + UUID, 'LABEL=fifteen-letters'):
        check(line in words.splitlines(), line, words)


@test('-U clear, random: all zero; a version 4 UUID, another each time')
def _():
    top, seen = source(), set()
    is_(shown(made(top), 'Filesystem UUID'), '0' * 8 + '-0000' * 3 + '-' + '0' * 12)
    for words in ([], ['-Urandom'], ['-Uclear', '-Urandom']):
        image = fresh('img')
        expect(make('--quiet', *words, image, top), 0)
        uuid = shown(image, 'Filesystem UUID')
        check(re.fullmatch('[0-9a-f-]{14}4[0-9a-f]{3}-[89ab].*', uuid), uuid)
        seen.add(uuid)
    is_(len(seen), 3)


def times(image):
    target = extracted(image)
    found = {name: os.stat(os.path.join(target, name)).st_mtime_ns for name in ('.', 'one')}
    return found, int.from_bytes(bytes_of(image)[1048:1056], 'little')


@test('-T, --all-time, --mkfs-time, --ignore-mtime, --preserve-mtime: build time and times of files')
def _():
    top = source()
    mine = {'.': 1234567890123456789, 'one': 987654321000000001}
    for name, value in mine.items():
        os.utime(os.path.join(top, name), ns=(0, value))
    fixed = {'.': 5 * 10 ** 9, 'one': 5 * 10 ** 9}
    for words, wanted in ((['-T5'], fixed), (['-T5', '--all-time'], fixed), (['-T5', '--mkfs-time'], mine),
                          (['-T5', '--preserve-mtime'], fixed), (['-T5', '--mkfs-time', '--preserve-mtime'], mine),
                          (['-T5', '--mkfs-time', '--ignore-mtime', '--preserve-mtime'], mine),
                          (['-T5', '--mkfs-time', '--ignore-mtime'], fixed)):
        image = fresh('img')
        expect(make('--quiet', *words, image, top), 0, silent=True)
        is_(times(image), (wanted, 5), str(words))
    image = fresh('img')
    before = int(time.time())
    expect(make('--quiet', image, top), 0)
    found, built = times(image)
    is_(found, mine)
    check(before <= built <= time.time(), built)


@test('-z: an empty word compresses nothing; a name or a level that there is not is said, with what there is')
def _():
    is_(bytes_of(made(source(), '-z', '')) == bytes_of(made(source())), True)
    is_(bytes_of(made(source(), '-zlz4', '-z', '')) == bytes_of(made(source())), True)
    old = save(b'old')
    for words, text in ((['-z', 'nosuch'], "no compressor of this build: 'nosuch'"),
                        (['-zlz4hc,13'], "(no level of lz4hc .0 to 12.: '13'|no compressor)"),
                        (['-zlzma,10'], "(no level of lzma .0 to 9 or 100 to 109.: '10'|no compressor)")):
        expect(make(*words, old, source()), 1, text)
        is_(bytes_of(old), b'old')


@test('R5: sizes with small letters; mistakes in what counts with -z alone are told without it too')
def _():
    top = source()
    for one, other in ((['-b', '4k'], ['-b4096']), (['-C8k'], ['-C', '8192']), (['--chunksize=16k'], ['--chunksize=16KiB'])):
        is_(bytes_of(made(top, *one)) == bytes_of(made(top, *other)), True, str(one))
    image = fresh('img')
    for word in ('-C100', '--compress-hints=/nowhere/hints'):
        expect(make(word, image, top), 1, 'multiple of the block|/nowhere/hints: No such file')
        check(not os.path.exists(image))


@test('a source that is neither a folder nor an image is named')
def _():
    for data in (b'x' * 5000, b'', b'x' * 257 + b'ustar\x0000' + b'x' * 5000):
        path = save(data, 'sourcefile')
        expect(make(fresh('img'), path), 1, re.escape(path) + ': no folder')


@test('C28: SOURCE_DATE_EPOCH overrides all time options, with a warning; empty: unset; nonsense: error')
def _():
    top = source()
    for words in ([], ['-T5'], ['-T5', '--mkfs-time'], ['--preserve-mtime'], ['-T5', '--preserve-mtime']):
        image = fresh('img')
        result = expect(make(*words, image, top, env={'SOURCE_DATE_EPOCH': '77'}), 0)
        is_(times(image), ({'.': 77 * 10 ** 9, 'one': 77 * 10 ** 9}, 77), str(words))
        is_('SOURCE_DATE_EPOCH overrides' in result.text, '-T5' in words, str(words))
    expect(make('--quiet', '-T5', fresh('img'), top, env={'SOURCE_DATE_EPOCH': '77'}), 0, silent=True)
    image = fresh('img')
    expect(make('--quiet', '-T5', image, top, env={'SOURCE_DATE_EPOCH': ''}), 0, silent=True)
    is_(times(image)[1], 5)
    expect(make('--quiet', fresh('img'), top, env={'SOURCE_DATE_EPOCH': 'soon'}), 1, 'SOURCE_DATE_EPOCH')


@test('--all-root, --force-uid/gid, --uid/gid-offset')
def _():
    tools.need_root()
    top = source()
    os.chown(os.path.join(top, 'one'), 1000, 2000)
    for words, wanted in ((['--all-root'], (0, 0)), (['--force-uid=7'], (7, 2000)),
                          (['--force-gid=70000'], (1000, 70000)), (['--uid-offset=100000'], (101000, 2000)),
                          (['--gid-offset=5', '--force-uid=9', '--uid-offset=3'], (9, 2005))):
        info = os.stat(os.path.join(extracted(made(top, *words)), 'one'))
        is_((info.st_uid, info.st_gid), wanted, str(words))


@test('-x -1: no attributes; --hard-dereference: no links')
def _():
    if not tools.has_xattrs():
        raise Skip('no xattrs here')
    top = source()
    os.setxattr(os.path.join(top, 'one'), 'user.x', b'y')
    os.link(os.path.join(top, 'one'), os.path.join(top, 'three'))
    is_(os.listxattr(os.path.join(extracted(made(top), '--xattrs'), 'one')), ['user.x'])
    is_(os.listxattr(os.path.join(extracted(made(top, '-x', '-1'), '--xattrs'), 'one')), [])
    is_(os.stat(os.path.join(extracted(made(top)), 'three')).st_nlink, 2)
    is_(os.stat(os.path.join(extracted(made(top, '--hard-dereference')), 'three')).st_nlink, 1)


@test('-Eforce-inode-compact: an owner that does not fit is an error that names the file')
def _():
    tools.need_root()
    top = source()
    made(top, '-Eforce-inode-compact')
    os.chown(os.path.join(top, 'one'), 65536, 0)
    image = fresh('img')
    expect(make('--quiet', '-Eforce-inode-compact', image, top), 1, 'one: .*compact')
    check(not os.path.exists(image))


@test('--exclude-path, --exclude-regex: what is named goes, with all below; both add up')
def _():
    top = source(**{'a/b/c': b'', 'a/d': b'', 'x.tmp': b'', 'y': b'', 'z.d/w.tmp': b''})
    is_(names(made(top)), {'a', 'a/b', 'a/b/c', 'a/d', 'x.tmp', 'y', 'z.d', 'z.d/w.tmp'})
    is_(names(made(top, '--exclude-path=a/b', '--exclude-path', 'y')),
        {'a', 'a/d', 'x.tmp', 'z.d', 'z.d/w.tmp'})
    is_(names(made(top, '--exclude-path=/a/b/')), {'a', 'a/d', 'x.tmp', 'y', 'z.d', 'z.d/w.tmp'})
    is_(names(made(top, r'--exclude-regex=\.tmp$', '--exclude-regex=^a/(b|d)$', '--exclude-path=y')),
        {'a', 'z.d'})


@test('V10: an expression that does not compile is an error, and nothing is packed')
def _():
    image = fresh('img')
    expect(make('--exclude-regex=[', image, source()), 1, r"'\['")
    check(not os.path.exists(image))


@test('V11: a block size that is no power of two from 512 to 65536 is an error')
def _():
    top = source()
    for size in ('1000', '256', '131072', '0', ''):
        expect(make('-b', size, fresh('img'), top), 1, 'power of two')
    is_(shown(made(top, '-b16K'), 'Filesystem blocksize'), '16384')


@test('C31: -T0 -E noinline_data: no inline data of files')
def _():
    image = made(source(), '-Enoinline_data')
    text = expect(dump('-e', '--path=/two', image), 0).out.decode()
    check('1 extents' in text or re.search(r'^ *0: *0\.\.', text, re.M), text)
    check(b'2' + bytes(4095) in bytes_of(image), 'the byte begins a block of its own')


@test('reproducible: order on disk, inode numbers, umask, locale, time zone, folder do not matter')
def _():
    files = {'f%03d' % n: b'%d' % n * n for n in range(60)}
    one, two = source(), source()
    for top, order in ((one, sorted(files)), (two, sorted(files, reverse=True))):
        for name in order:
            forest.write(os.path.join(top, name), files[name])
        os.link(os.path.join(top, order[0]), os.path.join(top, 'link-%s' % order[0]))
        other = os.path.join(top, 'link-%s' % order[-1])
        if not os.path.exists(other):
            os.link(os.path.join(top, order[-1]), other)
    first = bytes_of(made(one))
    is_(bytes_of(made(two, umask=0o077, env={'TZ': 'Asia/Tokyo', 'LC_ALL': 'tr_TR.UTF-8'})) == first, True)
    is_(bytes_of(made('.', cwd=two)) == first, True)


# ---- the file that becomes the image ----

@test('R23: mode is 0666 less the umask; an existing file keeps its mode; a symlink is written through')
def _():
    top, image = source(), fresh('img')
    expect(make('--quiet', image, top, umask=0o027), 0)
    is_(stat.S_IMODE(os.stat(image).st_mode), 0o640)
    os.chmod(image, 0o606)
    link = fresh('link')
    os.symlink(os.path.basename(image), link)
    expect(make('--quiet', link, top, umask=0o077), 0)
    is_(stat.S_IMODE(os.stat(image).st_mode), 0o606)
    check(os.path.islink(link))
    sound(image)
    nowhere = fresh('link')
    os.symlink(os.path.basename(nowhere) + '-target', nowhere)
    expect(make('--quiet', nowhere, top), 0)
    check(os.path.islink(nowhere))
    sound(nowhere + '-target')


def holds(folder, *wanted):
    is_(sorted(os.listdir(folder)), sorted(wanted), 'left in the folder')


@test('R23, V17: a run that fails leaves the old image and no temporary file')
def _():
    folder = fresh('place', make=True)
    image = os.path.join(folder, 'img')
    forest.write(image, b'old')
    top = source(big=b'x' * 3000000)
    result = make('--quiet', image, top, limits=[(resource.RLIMIT_FSIZE, 1000000)])
    expect(result, 1, 'cannot write')
    is_(bytes_of(image), b'old')
    holds(folder, 'img')
    expect(make('--quiet', '--exclude-regex=(', image, top), 1)
    is_(bytes_of(image), b'old')


@test('R23: a full disk: status 1, no file')
def _():
    with tools.tmpfs('1m') as folder:
        expect(make('--quiet', os.path.join(folder, 'img'), source(big=b'x' * 3000000)), 1, 'cannot write')
        holds(folder)


@test('R21, R23, V17: SIGTERM and SIGINT: the old image stays, and the signal is what ends it')
def _():
    folder = fresh('place', make=True)
    image = os.path.join(folder, 'img')
    forest.write(image, b'old')
    top = source()
    with open(os.path.join(top, 'huge'), 'wb') as file:
        file.truncate(30 << 30)
    for number in (signal.SIGTERM, signal.SIGINT):
        def interrupt(process, number=number):
            deadline = time.monotonic() + 15
            while len(os.listdir(folder)) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            os.kill(process.pid, number)

        result = make('--quiet', image, top, during=interrupt, watch=folder)
        is_(result.status, -number, str(result))
        is_(bytes_of(image), b'old')
        holds(folder, 'img')


@test('R23: a block device is written in place, whatever was on it; C21')
def _():
    tools.need_root()
    if not shutil.which('losetup'):
        raise Skip('no losetup')
    backing = fresh('disk')
    forest.write(backing, b'\xff' * (8 << 20))
    done = subprocess.run(['losetup', '-f', '--show', backing], capture_output=True)
    if done.returncode:
        raise Skip('no loop device: ' + done.stderr.decode().strip())
    device = done.stdout.decode().strip()
    try:
        top = source()
        expect(make('-T7', '-U', UUID, '--quiet', device, top), 0, silent=True)
        sound(device)
        is_(shown(device, 'Filesystem UUID'), UUID)
        check(stat.S_ISBLK(os.stat(device).st_mode))
    finally:
        subprocess.run(['losetup', '-d', device], check=False)
    plain = bytes_of(made(top, '-T7', '-U', UUID))
    is_(bytes_of(backing)[:len(plain)] == plain, True, 'the same bytes as in a file')


@test('R23: a folder that may not be written: the file is, in place')
def _():
    user = tools.as_user()
    tools.nobody_runs(tools.MKFS)
    folder = fresh('place', make=True, mode=0o755)
    image = os.path.join(folder, 'img')
    forest.write(image, b'x' * 1000000)
    os.chmod(image, 0o666)
    os.chmod(folder, 0o555)
    top = source()
    expect(make(*FIXED, image, top, **user), 0, silent=True)
    os.chmod(folder, 0o755)
    is_(os.path.getsize(sound(image)), os.path.getsize(made(top)))
    holds(folder, 'img')


@test('R23: a descriptor is written in place')
def _():
    image = fresh('img')
    with open(image, 'w+b') as file:
        expect(make(*FIXED, '/dev/fd/%d' % file.fileno(), source(), pass_fds=[file.fileno()]), 0, silent=True)
    sound(image)


@test('what cannot become an image is refused: a folder, a character device, a file that may not be written')
def _():
    top = source()
    expect(make(fresh('dir', make=True), top), 1, 'cannot write')
    expect(make('/dev/null', top), 1, 'cannot write')
    expect(make(os.path.join(fresh('nowhere'), 'img'), top), 1, 'cannot write')


@test('V16, C22: the output in the source is left out, with a warning; as its excluded folder silently')
def _():
    top = source()
    image = os.path.join(top, 'img')
    forest.write(image, b'an older image')
    expect(make('-d2', '-Uclear', '-T0', image, top), 0, r'<W> erofs: .*img.*output')
    is_(names(sound(image)), {'one', 'two'})
    os.makedirs(os.path.join(top, 'tmp', 'work'))
    inner = os.path.join(top, 'tmp', 'work', 'erofs.img')
    expect(make('--exclude-path=tmp/work', '--exclude-path=img', '-x', '-1', '-U', '0' * 8 + '-0000' * 3 + '-' +
                '0' * 12, '-T', '0', '--quiet', inner, top), 0, silent=True)
    is_(names(sound(inner)), {'one', 'two', 'tmp'})


@test('a file that cannot be read ends the run, and is named')
def _():
    user = tools.as_user()
    tools.nobody_runs(tools.MKFS)
    top = source()
    os.chmod(os.path.join(top, 'one'), 0)
    folder = fresh('place', make=True)
    expect(make('--quiet', os.path.join(folder, 'img'), top, **user), 1, 'one')
    holds(folder)


# ---- odd trees ----

@test('an empty folder; names of all bytes; depth 3000; targets of 4095 bytes')
def _():
    made(fresh('empty', make=True))
    top = source()
    for byte in range(1, 256):
        if byte not in (0x2e, 0x2f):
            forest.write(os.path.join(os.fsencode(top), bytes([byte])), bytes([byte]))
    forest.write(os.path.join(top, 'n' * 255), b'')
    os.symlink('t' * 4095, os.path.join(top, 'link'))
    at = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir('deep', dir_fd=at)
        down = os.open('deep', os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = down
    os.close(at)
    target = fresh('out')
    image = made(top)
    expect(fsck('--extract=' + target, image), 0)
    is_(tree.compare(tree.read(top, xattrs=False), tree.read(target, xattrs=False), xattrs=False, owner=ROOT,
                     times=False), [])
    tree.remove(top)
    tree.remove(target)


@test('70000 folders in one, 70000 links of one file: compact counts do not hold them')
def _():
    top = source()
    os.mkdir(os.path.join(top, 'many'))
    count = 70000
    for n in range(count):
        os.mkdir(os.path.join(top, 'many', '%x' % n))
    try:
        os.mkdir(os.path.join(top, 'links'))
        for n in range(count):
            os.link(os.path.join(top, 'one'), os.path.join(top, 'links', '%x' % n))
    except OSError as why:
        print('# links end at %d: %s' % (n, why))
    image = made(top, timeout=120)
    text = expect(dump('--path=/one', image), 0).out.decode()
    check(re.search(r'Links: *%d\b' % os.stat(os.path.join(top, 'one')).st_nlink, text), text)


@test('attributes: 300 shared ones on each of 5 files, one of 60000 bytes, names of 250')
def _():
    if not tools.has_xattrs():
        raise Skip('no xattrs here')
    top = source(one=b'', **{'f%d' % n: b'' for n in range(5)})
    try:
        for n in range(5):
            for k in range(300):
                os.setxattr(os.path.join(top, 'f%d' % n), 'user.%d' % k, b'v%d' % k)
        os.setxattr(os.path.join(top, 'one'), 'user.' + 'n' * 250, b'x' * 60000)
    except OSError as why:
        raise Skip('this file system takes fewer: %s' % why)
    out = extracted(made(top), '--xattrs')
    faults = tree.compare(tree.read(top), tree.read(out), times=False, owner=ROOT)
    is_(faults, [])


main()
