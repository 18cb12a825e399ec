#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs --tar: what archives become, and the callers that stream them (cli.md 7, 10, 13)."""
import io
import os
import pty
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import ROOT, dump, expect, fresh, fsck, make, save  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')

UUID = '01234567-89ab-cdef-0123-456789abcdef'
FIXED = ['-Uclear', '-T1700000000', '--mkfs-time', '--quiet']
TYPES = {'f': tarfile.REGTYPE, 'd': tarfile.DIRTYPE, 'l': tarfile.SYMTYPE, 'h': tarfile.LNKTYPE,
         'c': tarfile.CHRTYPE, 'b': tarfile.BLKTYPE, 'p': tarfile.FIFOTYPE}

probe = make('--tar=f', fresh(), '/dev/null')
if 'libarchive, which is not there' in probe.text:
    from tap import skip_all
    skip_all('built without libarchive')


def archive(*entries, form=tarfile.PAX_FORMAT, end=True):
    """A tar file of (type, name, data or target, attributes of TarInfo)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=form) as tar:
        for entry in entries:
            kind, name, value, more = (*entry, *('', {})[len(entry) - 2:])
            info = tarfile.TarInfo(name)
            info.type, info.mtime, info.uid, info.gid = TYPES[kind], 1234567890, 5, 6
            info.mode = 0o755 if kind == 'd' else 0o640
            data = value if kind == 'f' and value else b''
            info.size = len(data)
            if kind in 'lh':
                info.linkname = value
            for key, word in more.items():
                setattr(info, key, word)
            tar.addfile(info, io.BytesIO(data))
        length = tar.offset
    return out.getvalue() if end else out.getvalue()[:length]


def sound(image):
    expect(fsck('--workers=2', '--strict', image), 0, silent=True)
    return image


def made(data, *words, status=0, patterns=(), **more):
    """The image of an archive that comes from a pipe."""
    image = fresh('img')
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        view = memoryview(data)
        while view:
            view = view[os.write(writer, view):]
        os._exit(0)
    os.close(writer)
    try:
        result = make(*FIXED, '--tar=f', *words, image, stdin=reader, **more)
    finally:
        os.close(reader)
        code = os.waitstatus_to_exitcode(os.wait()[1])
    expect(result, status, *patterns, silent=not status)
    if status:
        check(not os.path.exists(image), 'an image is left')
        return None
    is_(code, 0, 'who writes into the pipe')
    return sound(image)


def to_tar(image):
    return expect(dump('--to-tar', image), 0).out


def members(image):
    """Name -> TarInfo, by the way of --to-tar."""
    with tarfile.open(fileobj=io.BytesIO(to_tar(image))) as tar:
        return {m.name: m for m in tar}


def content(image, name):
    return expect(dump('--cat', '--path=' + name, image), 0).out


def bytes_of(path):
    with open(path, 'rb') as file:
        return file.read()


def xattrs(image, name):
    prefix = 'SCHILY.xattr.'
    return {k[len(prefix):]: v for k, v in members(image)[name].pax_headers.items() if k.startswith(prefix)}


# ---- callers ----

@test('C20: containerd: --tar=f --aufs --quiet -Enoinline_data -b4096 -T0 --mkfs-time --sort=none -U OUT <tar')
def _():
    data = archive(('d', 'etc'), ('f', 'etc/passwd', b'root'), ('f', 'etc/.wh.shadow'), ('f', 'var/.wh..wh..opq'))
    image, source = fresh('img'), save(data)
    for more in ([], ['-T0', '--mkfs-time', '--sort=none', '-U', UUID]):
        with open(source, 'rb') as file:
            expect(make('--tar=f', '--aufs', '--quiet', '-Enoinline_data', '-b4096', *more, image, stdin=file), 0,
                   silent=True)
        sound(image)
    found = members(image)
    is_(sorted(found), ['.', 'etc', 'etc/passwd', 'etc/shadow', 'var'])
    info = found['etc/shadow']
    is_((info.type, info.devmajor, info.devminor, info.uid, info.mtime), (tarfile.CHRTYPE, 0, 0, 5, 1234567890))
    is_(xattrs(image, 'var'), {'trusted.overlay.opaque': 'y'})
    check('--tar=' in expect(make('--help'), 0).out.decode())


@test('C26: NixOS: tar | mkfs.erofs --quiet --force-uid=0 --force-gid=0 -L nix-store -U UUID -T 0 --tar=f OUT')
def _():
    image = fresh('img')
    source = subprocess.Popen(['sh', '-c', 'printf %s "$1"; cat "$2"', '-', '', save(archive(
        ('d', 'nix'), ('f', 'nix/x', b'x' * 9999)))], stdout=subprocess.PIPE)
    expect(make('--quiet', '--force-uid=0', '--force-gid=0', '-L', 'nix-store', '-U', UUID, '-T', '0', '--tar=f',
                image, stdin=source.stdout), 0, silent=True)
    is_(source.wait(), 0)
    info = members(sound(image))['nix/x']
    is_((info.uid, info.gid, info.mtime, info.size), (0, 0, 0, 9999))
    is_(bytes_of(image)[1088:1097], b'nix-store')


@test('C29: what a stream holds goes to TMPDIR, which is left as it was; a plain file needs none')
def _():
    data, folder, nowhere = archive(('f', 'a', b'a' * 100000)), fresh('tmp', make=True), fresh('nowhere')
    made(data, env={'TMPDIR': folder})
    is_(os.listdir(folder), [])
    made(data, status=1, patterns=[re.escape('temporary file in ' + nowhere)], env={'TMPDIR': nowhere})
    image = fresh('img')
    expect(make(*FIXED, '--tar', image, save(data), env={'TMPDIR': nowhere}), 0, silent=True)
    is_(content(sound(image), '/a'), b'a' * 100000)
    with tools.tmpfs('64k') as small:
        made(data, status=1, patterns=['temporary file in ' + small], env={'TMPDIR': small})


# ---- how it is given ----

@test('--tar, --tar=f; no SOURCE, - and a file; compressed or not: the same image')
def _():
    data = archive(('f', 'x/y', b'hello' * 3000), ('f', 'z', b'') , ('h', 'w', 'x/y'), ('l', 's', 'x'))
    wanted = bytes_of(made(data))
    source = save(data)
    for words in (['--tar=f'], ['--tar']):
        image = fresh('img')
        expect(make(*FIXED, *words, image, source), 0, silent=True)
        is_(bytes_of(image) == wanted, True, str(words))
        with open(source, 'rb') as file:
            expect(make(*FIXED, *words, image, '-', stdin=file), 0, silent=True)
        is_(bytes_of(image) == wanted, True, str(words) + ' -')
    skipped = []
    for tool in ('gzip', 'bzip2', 'xz', 'zstd', 'lz4', 'lzip'):
        if not shutil.which(tool):
            skipped.append(tool)
            continue
        packed = subprocess.run([tool, '-c'], input=data, capture_output=True, check=True).stdout
        is_(bytes_of(made(packed)) == wanted, True, tool)
        image = fresh('img')
        expect(make(*FIXED, '--tar', image, save(packed)), 0, silent=True)
        is_(bytes_of(image) == wanted, True, tool + ' in a file')
    if skipped:
        print('# not there: ' + ' '.join(skipped))


@test('a plain file that is read from the middle of a descriptor')
def _():
    data = archive(('f', 'x', b'hello' * 3000))
    with open(save(b'#' * 777 + data), 'rb') as file:
        file.seek(777)
        os.lseek(file.fileno(), 777, os.SEEK_SET)
        image = fresh('img')
        expect(make(*FIXED, '--tar', image, stdin=file), 0, silent=True)
    is_(content(sound(image), '/x'), b'hello' * 3000)


@test('V11: --sort, --tar, --ovlfs-strip with other words are usage errors; two sources too')
def _():
    source = save(archive(('f', 'x')))
    for words in (['--sort=foo', '--tar'], ['--sort='], ['--tar=g'], ['--tar='], ['--ovlfs-strip=2', '--tar']):
        expect(make(*words, fresh('img'), source), 1, "Try 'mkfs")
    expect(make('--tar', fresh('img'), source, source), 1, 'unexpected argument')
    expect(make('--tar'), 1, 'missing argument: FILE')


@test('no archive comes from a terminal')
def _():
    keeper, terminal = pty.openpty()
    expect(make('--tar', fresh('img'), stdin=terminal), 1, 'terminal')
    os.close(keeper)
    os.close(terminal)


@test('R21: a signal while nothing comes through the pipe ends the run, and leaves nothing')
def _():
    reader, writer = os.pipe()
    os.write(writer, archive(('f', 'x', b'x' * 5000))[:3000])
    folder, tmp = fresh('place', make=True), fresh('tmp', make=True)

    def interrupt(process):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with open('/proc/%d/status' % process.pid) as file:
                waits = 'State:\tS' in file.read()
            with open('/proc/%d/syscall' % process.pid) as file:
                if waits and file.read().split()[:2] == ['0', '0x0']:
                    break
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGTERM)

    if not os.access('/proc/self/syscall', os.R_OK):
        raise Skip('no /proc/PID/syscall')
    result = make('--tar', os.path.join(folder, 'img'), stdin=reader, during=interrupt, env={'TMPDIR': tmp})
    is_(result.status, -signal.SIGTERM, str(result))
    is_((os.listdir(folder), os.listdir(tmp)), ([], []))
    os.close(reader)
    os.close(writer)


# ---- what comes out ----

@test('pax, GNU and ustar: all types, long names, owners, times, modes')
def _():
    long = 'd' * 200 + '/' + 'n' * 255
    entries = [('d', 'dir', '', {'mode': 0o1777}), ('f', 'dir/file', b'x', {'mode': 0o4755, 'uid': 70000}),
               ('l', 'link', 'dir/file'), ('h', 'other', 'dir/file'), ('p', 'fifo'),
               ('c', 'char', '', {'devmajor': 5, 'devminor': 1}), ('b', 'block', '', {'devmajor': 259, 'devminor': 300})]
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        more = [] if form == tarfile.USTAR_FORMAT else [('f', long, b'deep'), ('l', 't', 't' * 4000)]
        found = members(made(archive(*entries, *more, form=form)))
        is_(found['dir'].mode, 0o1777)
        info = found['dir/file']
        is_((info.mode, info.uid, info.gid, info.mtime, info.size), (0o4755, 70000, 6, 1234567890, 1))
        is_(found['link'].linkname, 'dir/file')
        is_((found['other'].type, found['other'].linkname), (tarfile.LNKTYPE, 'dir/file'))
        is_(found['fifo'].type, tarfile.FIFOTYPE)
        is_((found['char'].devmajor, found['char'].devminor), (5, 1))
        is_((found['block'].devmajor, found['block'].devminor), (259, 300))
        if more:
            is_(found[long].size, 4)
            is_(found['t'].linkname, 't' * 4000)


@test('pax: nanoseconds, times before 1970, numbers that octal does not hold, names in UTF-8 and in none')
def _():
    found = members(made(archive(
        ('f', 'n', b'', {'mtime': 0, 'pax_headers': {'mtime': '1234567890.123456789'}}),
        ('f', 'before', b'', {'pax_headers': {'mtime': '-1'}}),
        ('f', 'owner', b'', {'uid': 4294967294, 'gid': 3000000}),
        ('f', 'grün', b''), ('f', '\udcff\udc80', b''))))
    is_(found['n'].pax_headers['mtime'], '1234567890.123456789')
    is_(found['before'].mtime, -1)
    is_((found['owner'].uid, found['owner'].gid), (4294967294, 3000000))
    check('grün' in found and '\udcff\udc80' in found, list(found))


@test('round trip: the tree of an image as an archive, and that as an image, is the same archive')
def _():
    top = fresh('src', make=True, mode=0o755)
    forest.make_source(top)
    image = fresh('img')
    expect(make(*FIXED, image, top), 0, silent=True)
    wanted = to_tar(image)
    tree.remove(top)
    for words in ([], ['--sort=none'], ['-b512'], ['-Enoinline_data', '-Eforce-inode-extended']):
        is_(to_tar(made(wanted, *words)) == wanted, True, str(words))
    again = fresh('img')
    expect(make(*FIXED, '--tar', again, save(wanted)), 0, silent=True)
    is_(to_tar(sound(again)) == wanted, True, 'from a file')


@test('what GNU tar and bsdtar make of a tree, with attributes and ACLs, becomes the image of the tree')
def _():
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('no xattrs here')
    top = fresh('src', make=True, mode=0o755)
    forest.make_source(top)
    os.setxattr(os.path.join(top, 'data'), 'system.posix_acl_default', samples.ACL)
    image = fresh('img')
    expect(make(*FIXED, image, top), 0, silent=True)
    wanted = to_tar(image)
    for words in (['tar', '--acls', '--xattrs', '--xattrs-include=*', '--format=posix', '-S'],
                  ['tar', '--acls', '--xattrs', '--xattrs-include=*', '--format=posix', '--numeric-owner'],
                  ['bsdtar', '--format=pax', '--acls', '--xattrs', '--no-read-sparse'], ['bsdtar', '--format=pax']):
        if not shutil.which(words[0]):
            print('# not there: ' + words[0])
            continue
        done = subprocess.run([*words, '-C', top, '-cf', '-', '.'], capture_output=True, check=True)
        is_(to_tar(made(done.stdout)) == wanted, True, ' '.join(words))
    tree.remove(top)


@test('sparse files of every form: holes are zeros')
def _():
    if not shutil.which('tar'):
        raise Skip('no tar')
    top = fresh('src', make=True)
    wanted = bytearray(5000000)
    for name, places in (('begin', (0,)), ('middle', (70000, 3000000)), ('end', (4999990,)), ('none', ()),
                         ('many', range(0, 4000000, 40000))):
        data = bytearray(wanted)
        for place in places:
            data[place:place + 10] = b'0123456789'
        with open(os.path.join(top, name), 'wb') as file:
            file.truncate(len(data))
            for place in places:
                file.seek(place)
                file.write(b'0123456789')
    for words in (['--format=gnu'], ['--format=oldgnu'], ['--format=posix', '--sparse-version=0.0'],
                  ['--format=posix', '--sparse-version=0.1'], ['--format=posix', '--sparse-version=1.0']):
        done = subprocess.run(['tar', '-S', *words, '-C', top, '-cf', '-', '.'], capture_output=True, check=True)
        check(len(done.stdout) < 3000000, 'tar found holes')
        image = fresh('img')
        expect(make(*FIXED, '--tar', image, save(done.stdout)), 0, silent=True)
        for picture in (image, made(done.stdout)):
            for name in os.listdir(top):
                is_(content(picture, '/' + name) == bytes_of(os.path.join(top, name)), True, name)


@test('an archive whose only contents are a hole')
def _():
    top = fresh('src', make=True)
    with open(os.path.join(top, 'hole'), 'wb') as file:
        file.truncate(3000001)
    done = subprocess.run(['tar', '-S', '-C', top, '-cf', '-', 'hole'], capture_output=True)
    if done.returncode:
        raise Skip('no tar')
    for words in ([], ['-b512', '--verify']):
        image = fresh('img')
        expect(make(*FIXED, '--tar=f', *words, image, save(done.stdout)), 0, silent=True)
        is_(dump('--cat', '--path=/hole', image).out == bytes(3000001), True, 'zeros')


@test('missing parents and a missing root: root owns them, 0755, the build time')
def _():
    found = members(made(archive(('f', 'a/b/c', b'1'))))
    for name in ('.', 'a', 'a/b'):
        info = found[name]
        is_((info.type, info.mode, info.uid, info.gid, info.mtime),
            (tarfile.DIRTYPE, 0o755, 0, 0, 1700000000), name)
    found = members(made(archive(('f', 'a/b'), ('d', 'a', '', {'mode': 0o700}), ('d', './', '', {'mode': 0o711}))))
    is_((found['a'].mode, found['a'].uid, found['.'].mode, found['.'].uid), (0o700, 5, 0o711, 5))
    check('a/b' in found)


@test('later entries replace earlier ones; other names of what is replaced keep it')
def _():
    image = made(archive(
        ('f', 'a', b'one', {'pax_headers': {'SCHILY.xattr.user.x': 'old'}}), ('h', 'b', 'a'), ('h', 'c', 'b'),
        ('f', 'a', b'two!'), ('f', 'dir/in', b'x'), ('h', 'kept', 'dir/in'), ('f', 'dir', b'file'),
        ('l', 's', 'x'), ('d', 's'), ('f', 's/in', b'y'), ('f', 'twice', b'1'), ('f', './/twice', b'22'),
        ('h', 'b', 'b'), ('f', 'gone', b'1'), ('h', 'gone', 'c'), ('d', 'x'), ('f', 'x/1'), ('f', 'x'), ('d', 'x')))
    found = members(image)
    is_(sorted(found), ['.', 'a', 'b', 'c', 'dir', 'gone', 'kept', 's', 's/in', 'twice', 'x'])
    for name, data in (('a', b'two!'), ('b', b'one'), ('c', b'one'), ('gone', b'one'), ('dir', b'file'), ('kept', b'x'),
                       ('twice', b'22'), ('s/in', b'y')):
        is_(content(image, '/' + name), data, name)
    is_(xattrs(image, 'a'), {})
    is_(xattrs(image, 'b'), {'user.x': 'old'})
    is_((found['c'].linkname, found['gone'].linkname), ('b', 'b'))
    text = expect(dump('--path=/b', image), 0).out.decode()
    check(re.search(r'Links: *3\b', text), text)
    is_(found['x'].type, tarfile.DIRTYPE)


@test('--hard-dereference: links become copies, with all they have')
def _():
    image = made(archive(('f', 'a', b'one' * 5000, {'pax_headers': {'SCHILY.xattr.user.x': 'v'}}), ('h', 'b', 'a'),
                         ('l', 's', 'there'), ('h', 't', 's')), '--hard-dereference')
    found = members(image)
    is_((found['b'].type, found['t'].type, found['t'].linkname), (tarfile.REGTYPE, tarfile.SYMTYPE, 'there'))
    is_(content(image, '/b'), b'one' * 5000)
    is_(xattrs(image, 'b'), {'user.x': 'v'})


@test('what leads outside, or cannot be, is refused, and named')
def _():
    for wanted, *entries in (
            (r'a/\.\./\.\./x: .*\.\.', ('f', 'a/../../x')), (r"\.\./: .*'\.\.'", ('d', '..')),
            (r'h: .*|x: .*\.\.', ('h', 'h', '../x')), ('a/b: .*no folder', ('f', 'a'), ('f', 'a/b')),
            ('l/b: .*no folder', ('d', 'd'), ('l', 'l', 'd'), ('f', 'l/b')), ('link to nowhere', ('h', 'a', 'nowhere')),
            ('b: .*a folder', ('d', 'a'), ('h', 'b', 'a')), ('255', ('f', 'n' * 256)),
            ('the root', ('f', '.')), ('the root', ('f', 'a'), ('h', '.', 'a')), ('owner', ('f', 'a', b'', {'pax_headers': {'uid': '4294967296'}}))):
        made(archive(*entries), status=1, patterns=[wanted])
    image = made(archive(('f', '/abs/x', b'1'), ('f', './rel', b'2'), ('h', 'l', '/abs/x')))
    is_(sorted(members(image)), ['.', 'abs', 'abs/x', 'l', 'rel'])


@test('--exclude-path, --exclude-regex: also below parents that are not in the archive, and for other names')
def _():
    data = archive(('f', 'a/b/c'), ('f', 'a/d'), ('f', 'keep.tmp/x'), ('f', 'one', b'1'), ('h', 'two', 'one'), ('f', 'y.o'))
    is_(sorted(members(made(data, '--exclude-path=a/b', '--exclude-regex=\\.(o|tmp)$'))), ['.', 'a', 'a/d', 'one', 'two'])
    image = made(data, '--exclude-path=one')
    is_(content(image, '/two'), b'1')
    check('one' not in members(image))


@test('C28, -T, --all-root, --uid-offset, -x -1 hold for archives too')
def _():
    data = archive(('f', 'a', b'', {'pax_headers': {'SCHILY.xattr.user.x': 'v'}}))
    for words, env, wanted in ((['--all-time'], {}, (5, 6, 1700000000)), ([], {}, (5, 6, 1234567890)),
                               (['--all-root'], {}, (0, 0, 1234567890)),
                               (['--uid-offset=100'], {'SOURCE_DATE_EPOCH': '9'}, (105, 6, 9))):
        info = members(made(data, *words, env=env))['a']
        is_((info.uid, info.gid, info.mtime), wanted, str(words))
    is_(xattrs(made(data, '-x', '-1'), 'a'), {})
    is_(xattrs(made(data, '-x0'), 'a'), {'user.x': 'v'})


@test('--sort=none: contents in the order of the archive; path: in that of the tree')
def _():
    data = archive(('f', 'z', b'first' * 2000), ('f', 'a', b'second' * 2000), ('h', 'b', 'z'), ('f', 'm', b'third' * 2000))
    for words, order in ((['--sort=none'], (b'first', b'second', b'third')), ([], (b'second', b'first', b'third')),
                         (['--sort=path'], (b'second', b'first', b'third'))):
        raw = bytes_of(made(data, *words, '-Enoinline_data'))
        places = [raw.index(word * 2000) for word in order]
        is_(places, sorted(places), str(words))


# ---- layers ----

@test('--aufs: marks of aufs; without it names like others; what stands beside its mark is opaque')
def _():
    data = archive(('f', 'd/.wh.gone'), ('h', 'd/.wh.too', 'd/.wh.gone'), ('d', 'd/.wh..wh.plnk'), ('f', 'd/.wh..wh.plnk/1'),
                   ('f', 'd/.wh..wh.aufs'), ('d', 'both'), ('f', '.wh.both'), ('f', 'new', b'1'), ('f', '.wh.new'),
                   ('f', 'o/.wh..wh..opq'))
    image = made(data, '--aufs')
    found = members(image)
    is_(sorted(found), ['.', 'both', 'd', 'd/gone', 'd/too', 'new', 'o'])
    for name in ('d/gone', 'd/too'):
        is_((found[name].type, found[name].devmajor, found[name].devminor), (tarfile.CHRTYPE, 0, 0), name)
    is_(xattrs(image, 'both'), {'trusted.overlay.opaque': 'y'})
    is_(xattrs(image, 'o'), {'trusted.overlay.opaque': 'y'})
    is_(xattrs(image, 'd'), {'trusted.overlay.origin': ''})
    is_(xattrs(image, '.'), {})
    is_(content(image, '/new'), b'1')
    check('d/.wh.gone' in members(made(data)))


@test('C20: a folder with whiteouts has an origin, once and as it was; -x -1 leaves what layers need')
def _():
    mine = {'pax_headers': {'SCHILY.xattr.trusted.overlay.origin': 'mine', 'SCHILY.xattr.user.k': 'v'}}
    data = archive(('f', '.wh.top'), ('d', 'd', '', mine), ('f', 'd/.wh.x'), ('f', 'o/.wh..wh..opq'), ('f', 'o/.wh.y'))
    origin, opaque = {'trusted.overlay.origin': ''}, {'trusted.overlay.opaque': 'y'}
    for words, own in (([], mine['pax_headers']), (['-x', '-1'], {})):
        image = made(data, '--aufs', '--verify', *words)
        is_(xattrs(image, '.'), origin, str(words))
        is_(xattrs(image, 'o'), {**origin, **opaque}, str(words))
        is_(xattrs(image, 'd'), {k[13:]: v for k, v in own.items()} or origin, str(words))
    is_(xattrs(made(data), 'o'), {})


@test('C20: Linux stacks layers: no whiteout is seen, also where only one layer has the folder')
def _():
    tools.need_root()
    layers = [made(archive(*entries), '--aufs', '-Enoinline_data') for entries in (
        (('f', 'a/gone'), ('f', 'a/kept'), ('f', 'o/low')),
        (('f', 'a/.wh.gone'), ('f', 'b/.wh.never'), ('f', 'b/real'), ('f', 'o/.wh..wh..opq')))]
    with tools.Mount('-t', 'erofs', '-o', 'loop,ro', layers[0]) as low, \
            tools.Mount('-t', 'erofs', '-o', 'loop,ro', layers[1]) as high, \
            tools.Mount('-t', 'overlay', '-o', 'ro,lowerdir=%s:%s' % (high, low), 'overlay') as top:
        is_({name: sorted(os.listdir(os.path.join(top, name))) for name in os.listdir(top)},
            {'a': ['kept'], 'b': ['real'], 'o': []})


@test('--ovlfs-strip: no devices 0:0, no attributes of overlayfs; 0: as they are')
def _():
    opaque = {'pax_headers': {'SCHILY.xattr.trusted.overlay.opaque': 'y', 'SCHILY.xattr.user.k': 'v'}}
    data = archive(('d', 'd', '', opaque), ('c', 'd/w', '', {'devmajor': 0, 'devminor': 0}), ('h', 'd/v', 'd/w'),
                   ('c', 'null', '', {'devmajor': 1, 'devminor': 3}), ('f', '.wh.gone'), ('f', 'o/.wh..wh..opq'))
    for words in (['--ovlfs-strip'], ['--ovlfs-strip=1']):
        image = made(data, '--aufs', *words)
        is_(sorted(members(image)), ['.', 'd', 'null', 'o'], str(words))
        is_(xattrs(image, 'd'), {'user.k': 'v'})
        is_(xattrs(image, 'o'), {})
    image = made(data, '--ovlfs-strip=0')
    is_(xattrs(image, 'd'), {'user.k': 'v', 'trusted.overlay.opaque': 'y'})
    check('d/w' in members(image))


@test('--aufs, --ovlfs-strip for a folder as the source')
def _():
    top = fresh('src', make=True, mode=0o755)
    for name in ('.wh.gone', 'd/.wh..wh..opq', 'd/x'):
        forest.write(os.path.join(top, name), b'')
    os.link(os.path.join(top, '.wh.gone'), os.path.join(top, 'd', '.wh.too'))
    image = fresh('img')
    expect(make(*FIXED, '--aufs', image, top), 0, silent=True)
    is_(sorted(members(sound(image))), ['.', 'd', 'd/too', 'd/x', 'gone'])
    is_(xattrs(image, 'd'), {'trusted.overlay.opaque': 'y', 'trusted.overlay.origin': ''})
    expect(make(*FIXED, '--aufs', '--ovlfs-strip=1', image, top), 0, silent=True)
    is_(sorted(members(sound(image))), ['.', 'd', 'd/x'])
    is_(xattrs(image, 'd'), {})


@test('--tar=headerball: headers alone; all files are holes of their size')
def _():
    out = io.BytesIO()
    for name, kind, size, more in (('a', 'f', 700, {}), ('d', 'd', 0, {}), ('d/' + 'n' * 200, 'f', 3 << 30, {}), ('l', 'h', 0, {}),
                                   ('x', 'f', 10000, {'SCHILY.xattr.trusted.overlay.metacopy': 'm'}), ('empty', 'f', 0, {})):
        info = tarfile.TarInfo(name)
        info.type, info.size, info.pax_headers, info.linkname = TYPES[kind], size, more, 'a' if kind == 'h' else ''
        out.write(info.tobuf(tarfile.PAX_FORMAT))
    data = out.getvalue() + bytes(1024)
    images = [fresh('img'), fresh('img')]
    expect(make(*FIXED, '--tar=headerball', images[0], save(data)), 0, silent=True)
    with open(save(data), 'rb') as file:
        reader = subprocess.Popen(['dd', 'bs=100', 'status=none'], stdin=file, stdout=subprocess.PIPE)
        expect(make(*FIXED, '--tar=headerball', images[1], stdin=reader.stdout), 0, silent=True)
        is_(reader.wait(), 0)
    is_(bytes_of(images[0]) == bytes_of(images[1]), True)
    image = sound(images[0])
    text = expect(dump('--ls', '--recursive', '--long', image), 0).out.decode()
    is_({line.split('/')[-1]: line.split()[2] for line in text.splitlines()},
        {'a': '700', 'd': '239', 'n' * 200: str(3 << 30), 'l': '700', 'x': '10000', 'empty': '0'}, text)
    is_(content(image, '/x'), bytes(10000))
    check(os.path.getsize(image) <= 8192)


@test('--ungzip, --unxz: said or not, compressed archives are read')
def _():
    data = archive(('f', 'x', b'y'))
    packed = subprocess.run(['gzip', '-c'], input=data, capture_output=True, check=True).stdout
    for words in (['--ungzip'], ['--unxz'], []):
        is_(content(made(packed, *words), '/x'), b'y')


# ---- damage ----

@test('no archive, an empty stream, one cut anywhere but between entries: status 1, no image')
def _():
    for data in (b'', b'x' * 5000, b'\x1f\x8b' + b'x' * 100):
        made(data, status=1, patterns=['no tar archive'])
    data = archive(('f', 'one', b'1' * 700), ('f', 'two', b'2' * 3000), end=False)
    borders = {512 + 1024, len(data)}
    for cut in range(100, len(data), 300):
        if cut not in borders:
            made(data[:cut], status=1, patterns=['^<E>'])
            image = fresh('img')
            expect(make(*FIXED, '--tar', image, save(data[:cut])), 1, '^<E>')
            check(not os.path.exists(image), cut)


@test('an archive that ends without its mark: a warning')
def _():
    data = archive(('f', 'one', b'1' * 700), end=False)
    for source in (data, data + bytes(512), archive(('f', 'one', b'1' * 700)) + b'what follows'):
        image = fresh('img')
        result = expect(make('-T0', '--tar', image, save(source)), 0)
        is_('without the mark' in result.text, source == data, result.text)
        sound(image)


@test('damaged archives: no crash, no hang, no image that is not sound')
def _():
    dice = random.Random(6)
    good = archive(('d', 'd'), ('f', 'd/x', b'x' * 3000, {'pax_headers': {'SCHILY.xattr.user.x': 'v' * 300}}),
                   ('h', 'h', 'd/x'), ('l', 'l', 'd'), ('f', 'n' * 200, b'y' * 100))
    for number in range(20 if tools.SLOW else 120):
        data = bytearray(good)
        for _ in range(dice.randrange(1, 6)):
            place = dice.randrange(len(good) - 9000)
            data[place] = dice.choice((0, 255, 0x37, dice.randrange(256)))
        image = fresh('img')
        result = make(*FIXED, '--tar', image, save(bytes(data)))
        check(not result.killed and result.status in (0, 1), number, result)
        if not result.status:
            sound(image)
            os.unlink(image)


main()
