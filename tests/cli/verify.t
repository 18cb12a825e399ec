#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md sections 3, 5, 8, 9: fsck.erofs --verify: what was put in is there, and each kind of change is named."""
import hashlib
import os
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import schema  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from changes import BIG, CHANGES, big, build, flip, settle, write  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import expect, fresh, fsck  # noqa: E402

tools.need(tools.FSCK, 'fsck.erofs')

# Images ----------------------------------------------------------------------------------

OURS = {'ours': [], 'lz4': ['-zlz4', '-C16384'], 'fragments': ['-zlz4hc', '-C65536', '-Eall-fragments,ztailpacking']}
_images = {}


def image(maker='ours', socket=False):
    """An image of the unchanged tree."""
    key = maker, socket
    if key not in _images:
        top = build(socket=socket)
        picture = fresh('image')
        if maker == 'peer':
            words = [tools.mkfs_tool(), '--quiet', '-zlz4', '-C16384', '-Eforce-inode-extended']
        else:
            if not tools.MKFS:
                raise Skip('no mkfs.erofs of ours')
            words = [tools.MKFS, '--quiet', '-Eforce-inode-extended', *OURS[maker]]
        expect(tools.run([*words, picture, top], timeout=300), 0)
        _images[key] = picture
    return _images[key]


LINE = re.compile(r'<E> erofs: \S+: (/.*?): (missing|extra|type|mode|uid|gid|size|data|time|link|hardlink|device|'
                  r'xattr\.\S+) \((.*), (.*)\)')


def differences_of(result):
    return [m.groups() for m in map(LINE.fullmatch, result.text.splitlines()) if m]


def differences(result):
    found = []
    for line in result.text.splitlines():
        match = LINE.fullmatch(line)
        if match:
            found.append(match.groups())
        elif not re.fullmatch(r'<E> erofs: \d+ differences? from .*', line):
            raise AssertionError('unexpected line: %s\n%s' % (line, result))
    return found


def same(picture, what, *words):
    for workers in tools.WORKERS:
        expect(fsck('--verify=' + what, '--workers=' + workers, *words, picture), 0, silent=True)


def names_only(picture, what, name, wanted):
    """Exactly the wanted differences, whatever the workers."""
    results = [expect(fsck('--verify=' + what, '--workers=' + w, picture), 4) for w in tools.WORKERS]
    for result in results:
        is_(result.text, results[0].text, name + ': the same for every worker setting')
    found = sorted(differences(results[0]))
    short = [f[:len(w)] for f, w in zip(found, wanted)]
    if len(found) != len(wanted) or short != [tuple(w) for w in wanted]:
        raise AssertionError('%s\nwanted %s\nfound %s' % (name, wanted, found))


# A folder --------------------------------------------------------------------------------

@test('--verify=dir: an image of ours, and one of the released mkfs.erofs, are what was put in')
def _():
    top = build(socket=True)
    for maker in (*OURS, 'peer'):
        same(image(maker, True), 'dir:' + top)


@test('--verify=dir: each change is named, and nothing else')
def _():
    for name, function, wanted in CHANGES:
        names_only(image('peer'), 'dir:' + build(function), name, wanted)


@test('--verify=dir: the same for images of ours: plain, compressed, with fragments')
def _():
    for name, function, wanted in CHANGES:
        top = build(function)
        for maker in OURS:
            names_only(image(maker), 'dir:' + top, name + ', ' + maker, wanted)


# A manifest ------------------------------------------------------------------------------

def octal(name, keep=b''):
    return b''.join(b'%c' % c if 0x20 < c < 0x7f and c not in b'\\#=*?[' or c in keep else b'\\%03o' % c
                    for c in name)


def fsverity(data):
    level = [data[i:i + 4096].ljust(4096, b'\0') for i in range(0, len(data), 4096)]
    root = b'\0' * 32
    while level:
        hashes = b''.join(hashlib.sha256(b).digest() for b in level)
        if len(hashes) == 32:
            root = hashes
            break
        level = [hashes[i:i + 4096].ljust(4096, b'\0') for i in range(0, len(hashes), 4096)]
    head = struct.pack('<BBBBIQ', 1, 1, 12, 0, 0, len(data)) + root.ljust(64, b'\0')
    return hashlib.sha256(head.ljust(256, b'\0')).hexdigest().encode()


def entries(top):
    whole = tree.read(top)
    return [(p, whole[p]) for p in sorted(whole, key=lambda p: p.split(b'/'))]


def contents(top, path):
    with open(os.path.join(os.fsencode(top), path), 'rb') as file:
        return file.read()


def words_of(e, digest):
    words = [b'type=' + e.kind.encode(), b'mode=%04o' % e.mode, b'uid=%d' % e.uid, b'gid=%d' % e.gid,
             b'nlink=%d' % e.nlink, b'inode=%d' % e.inode,
             b'time=%d.%09d' % (e.time // 10 ** 9, e.time % 10 ** 9)]
    if e.kind == 'file':
        words += [b'size=%d' % e.size] + ([b'sha256digest=' + e.digest.encode()] if digest else [])
    if e.kind == 'link':
        words.append(b'link=' + octal(e.link))
    if e.kind in ('char', 'block'):
        words.append(b'device=native,' + e.device.encode().split(b',', 1)[-1])
    return words


def full(top, digest=True, verity=True):
    """Full paths, attributes and fs-verity in comments: what dump.erofs --to-mtree --mtree-xattrs writes."""
    lines = [b'#mtree']
    for path, e in entries(top):
        name = b'./' + octal(path[2:]) if path != b'.' else b'.'
        lines.append(b' '.join([name] + words_of(e, digest)))
        for key, value in sorted(e.xattrs.items()):
            if key != tree.HOST_LABEL or value:
                lines.append(b'#erofs: %s xattr.%s=%s' % (name, octal(key), value.hex().encode()))
        if verity and e.kind == 'file':
            lines.append(b'#erofs: %s fsverity=%s' % (name, fsverity(contents(top, path))))
    return tools.save(b'\n'.join(lines) + b'\n')


def nested(top):
    """As FreeBSD writes it: names without paths, "..", /set, lines joined with backslashes."""
    lines = [b'#\t   user: root', b'', b'# .', b'/set type=file uid=0 gid=0 mode=0644 nlink=1']
    stack = []
    for path, e in entries(top):
        while stack and not (path + b'/').startswith(stack[-1] + b'/'):
            stack.pop()
            lines.append(b'..')
        words = [w for w in words_of(e, True) if w not in (b'type=file', b'uid=0', b'gid=0', b'mode=0644', b'nlink=1')]
        words = [w.replace(b'sha256digest', b'sha256').replace(b'device=native,', b'device=') for w in words]
        name = octal(path.rsplit(b'/', 1)[-1])
        lines.append(b'    %-15s ' % name + b' \\\n        '.join([b' '.join(words[:3]), b' '.join(words[3:])]))
        if e.kind == 'dir':
            stack.append(path)
    lines += [b'..'] * len(stack)
    return tools.save(b'\n'.join(lines) + b'\n')


def bsdtar():
    if not shutil.which('bsdtar'):
        raise Skip('no bsdtar')
    return 'bsdtar'


def libarchive(top):
    path = fresh('mtree')
    done = subprocess.run([bsdtar(), '--no-acls', '-cf', path, '--format=mtree', '--options=!all,type,mode,uid,gid,size,time,link,'
                           'device,nlink,sha256,inode', '-C', top, '.'], capture_output=True, timeout=100)
    is_(done.returncode, 0, 'bsdtar: %r' % done.stderr)
    return path


@test('--verify=mtree: both forms, by hand, by libarchive, with digests or fs-verity: the same')
def _():
    top = build(socket=True)
    for maker in (*OURS, 'peer'):
        for manifest in (full(top), full(top, verity=False), full(top, digest=False), nested(top), libarchive(build())):
            picture = image(maker, b'sock' in open(manifest, 'rb').read())
            same(picture, 'mtree:' + manifest)


@test('--verify=mtree: the corpus images are what their manifests say')
def _():
    folder = tools.corpus('good')
    for name in sorted(os.listdir(folder))[::tools.SAMPLE]:
        picture = os.path.join(folder, name[:-6] + '.erofs')
        if not name.endswith('.mtree') or name.startswith('merged') or not os.path.exists(picture):
            continue
        blob = picture[:-6] + '.blob'
        words = ['--device=' + blob] if os.path.exists(blob) else []
        words += ['--offset=12288'] if 'kinds-offset' in name else []
        expect(fsck('--verify=mtree:' + os.path.join(folder, name), *words, picture), 0, silent=True)


@test('--verify=mtree: each change is named, and nothing else')
def _():
    for name, function, wanted in CHANGES:
        top = build(function)
        wanted = [w[:2] if w[1] == 'data' else w for w in wanted]
        names_only(image('peer'), 'mtree:' + full(top), name + ', full paths',
                   doubled(wanted))
        names_only(image('peer'), 'mtree:' + full(top, digest=False), name + ', fs-verity', wanted)
        wanted = [w for w in wanted if not w[1].startswith('xattr')]
        if wanted:
            names_only(image(), 'mtree:' + nested(top), name + ', nested', wanted)


def doubled(wanted):
    """Two digests of a file are two differences."""
    return sorted(w for w in wanted for _ in range(2 if w[1] == 'data' else 1))


def manifest(*lines):
    return tools.save(b'#mtree\n' + b'\n'.join(lines) + b'\n')


@test('--verify=mtree: a bad line is an error with file and line number: 8')
def _():
    for line, text in ((b'./a typo=file', 'typo=file is no keyword'), (b'./a type=dirr', 'type=dirr has a wrong value'),
                       (b'./a mode=9', 'mode=9 has a wrong'), (b'./a mode=17777', 'mode=17777 has a wrong'),
                       (b'./a uid=4294967296', 'uid=4294967296 has'), (b'./a size=-1', 'size=-1 has'),
                       (b'./a size', 'size needs a value'), (b'./a optional=1', 'optional=1 takes no value'),
                       (b'./a time=1.1000000000', 'has a wrong'), (b'./a device=native,1', 'has a wrong'),
                       (b'./a device=plan9,1,2', 'has a wrong'), (b'./a sha256=00', 'has a wrong'),
                       (b'./a/../b type=file', 'is no path below the top'), (b'..\n..', 'leaves no folder'),
                       (b'./\\q type=file', 'escape'), (b'/set colour=red', 'colour=red is no keyword'),
                       (b'/unset colour', 'colour is no keyword'), (b'#erofs: ./a', 'is not "#erofs: PATH'),
                       (b'#erofs: ./a xattr.user.a', 'cannot be understood'), (b'#erofs: ./a colour=1', 'is no key'),
                       (b'#erofs: ./a fsverity=12', 'has a wrong value'),
                       (b'#erofs: ./a xattr.user.a=123', 'has a wrong value'),
                       (b'#erofs: ./zz xattr.user.a=12\n. type=dir', 'stands beside no line'),
                       (b'./a type=file\0', 'contains NUL')):
        result = fsck('--verify=mtree:' + manifest(b'. type=dir', b'', line), image())
        number = 5 if line == b'..\n..' else 4
        wanted = ':%d: .*%s' % (number, re.escape(text))
        check(re.search(wanted, result.text) and result.status & 8, '%s\nwanted %s' % (result, wanted))
    cut = tools.save(b'#mtree\n./a type=file\0 mode=0777')
    expect(fsck('--verify=mtree:' + cut, image()), 8, ':2: contains NUL')
    expect(fsck('--verify=mtree:/nonexistent', image()), 8, 'cannot open /nonexistent')


@test('--verify=mtree: only what is recorded is compared; optional and ignore; folders that are implied')
def _():
    def lines(*more):
        return 'mtree:' + manifest(*more)
    rest = [b'./bin ignore', b'./dev type=dir ignore', b'./empty', b'./zlink', b'./etc ignore']
    same(image(), lines(b'./big', *rest))
    same(image(), lines(b'./big type=file mode=644 md5=00 uname=nobody', b'./not/there type=file optional', *rest))
    same(image(), lines(b'./big', *(r for r in rest if b'bin' not in r),
                        *(b'./bin/' + n for n in (b'deep/x', b'tool', b'tool2', b'we\\sird\\n\\#\\\\name\\=*'))))
    names_only(image(), lines(*rest), 'extra', [('/big', 'extra')])
    names_only(image(), lines(b'./big type=file size=7', b'./gone', *rest), 'two',
               [('/big', 'size', str(len(BIG)), '7'), ('/gone', 'missing', 'none', 'unknown')])
    for device in (b'native,8,300', b'8,300', b'linux,8,300', b'0x10082c', b'1050668'):
        same(image(), lines(b'./dev/disk device=' + device, b'./dev/fifo', b'./dev/null', b'./big',
                            *(r for r in rest if b'dev' not in r)))


# An archive ------------------------------------------------------------------------------

def need_libarchive():
    if 'no libarchive' in fsck('--verify=tar:/dev/null', image()).text:
        raise Skip('built or run without libarchive')


def archive(top, *words, program='tar'):
    need_libarchive()
    if program == 'bsdtar':
        bsdtar()
    path = fresh('tar')
    if program == 'tar':
        words = ('--format=pax', '--xattrs', '--xattrs-include=*', '--acls', '--sort=name', '--numeric-owner') + words
    done = subprocess.run([program, '-cf', path, *words, '-C', top, '.'], capture_output=True, timeout=100)
    is_(done.returncode, 0, '%s: %r' % (program, done.stderr))
    return path


@test('--verify=tar: of GNU tar, of bsdtar, compressed, from standard input, of dump.erofs: the same')
def _():
    top = build()
    for maker in ('ours', 'peer'):
        picture = image(maker)
        same(picture, 'tar:' + archive(top))
        same(picture, 'tar:' + archive(top, '--xattrs', '--acls', '--numeric-owner', '--format=pax', program='bsdtar'))
        for words in (['-z'], ['-J'], ['--zstd'], ['-S']):
            same(picture, 'tar:' + archive(top, *words))
        with open(archive(top, '-z'), 'rb') as file:
            expect(fsck('--verify=tar:-', picture, stdin=file), 0, silent=True)
        writer = subprocess.Popen(['cat', archive(top)], stdout=subprocess.PIPE)
        expect(fsck('--verify=tar:-', picture, stdin=writer.stdout), 0, silent=True)
        writer.stdout.close()
        is_(writer.wait(), 0, 'the writer was not killed')
        if tools.DUMP:
            path = fresh('tar')
            expect(tools.dump('--to-tar=' + path, picture), 0)
            same(picture, 'tar:' + path)
    expect(fsck('--verify=tar:-', '-'), 16, 'the image is read from there')


@test('--verify=tar: each change is named, and nothing else')
def _():
    for name, function, wanted in CHANGES:
        # a hard link of an archive has no facts of its own
        names_only(image('peer'), 'tar:' + archive(build(function)), name, [w for w in wanted if w[0] != '/etc/other'])


@test('--verify=tar: holes of the archive, holes of the image, and bytes where the other has a hole')
def _():
    size = 20 << 20
    top = fresh('holes', make=True)
    with open(os.path.join(top, 'data'), 'wb') as file:
        file.truncate(size)
        for place in (5000, 3 << 20, (12 << 20) + 77):
            file.seek(place)
            file.write(b'some bytes' * 50)
    picture = fresh('image')
    expect(tools.run([tools.mkfs_tool(), '--quiet', '-Eforce-inode-extended', picture, top], timeout=100), 0)
    for words in ((), ('-S',)):
        same(picture, 'tar:' + archive(top, *words))
    when = os.stat(os.path.join(top, 'data')).st_mtime_ns
    flip(os.path.join(top, 'data'), 9 << 20)
    os.utime(os.path.join(top, 'data'), ns=(when, when))
    for what in ('tar:' + archive(top), 'tar:' + archive(top, '-S'), 'dir:' + top):
        names_only(picture, what, 'a byte in a hole', [('/data', 'data', '0x00 at byte %d' % (9 << 20), '0x01')])
    os.truncate(os.path.join(top, 'data'), 0)
    os.truncate(os.path.join(top, 'data'), size)
    os.utime(os.path.join(top, 'data'), ns=(when, when))
    for what in ('tar:' + archive(top), 'tar:' + archive(top, '-S'), 'dir:' + top):
        names_only(picture, what, 'bytes in place of a hole', [('/data', 'data', '0x73 at byte 5000', '0x00')])


@test('--verify=tar: folders that are implied are expected; whole seconds; what is no archive is 8')
def _():
    top = build()
    path = fresh('tar')
    is_(subprocess.run(['tar', '-cf', path, '--format=pax', '--xattrs', '--xattrs-include=*', '--acls', '-C', top,
                        'bin/tool', 'bin/tool2', 'zlink', 'bin/deep/x', 'big']).returncode, 0, 'tar')
    result = fsck('--verify=tar:' + path, image())
    names = {d[0] for d in differences(expect(result, 4))}
    check(not names & {'/', '/bin', '/bin/deep', '/bin/tool', '/big', '/bin/deep/x', '/zlink'}, names)
    same(image(), 'tar:' + archive(top, '--format=gnu', '--no-acls', '--no-xattrs'),
         '--verify-only=type,mode,owner,size,time,data,names,link,hardlink,device')
    expect(fsck('--verify=tar:' + tools.save(b'no archive at all' * 1000), image()), (8, 12), 'erofs: ')
    expect(fsck('--verify=tar:/nonexistent', image()), 8, 'cannot open /nonexistent')
    whole = open(archive(top), 'rb').read()
    expect(fsck('--verify=tar:' + tools.save(whole[:len(whole) // 2]), image()), (8, 12), 'Truncated|truncated')


@test('--verify-only: compares what it names')
def _():
    def everything(top):
        for _, function, _ in CHANGES:
            if not getattr(function, 'sets_time', False):
                function(top)
    top = build(everything)
    for words, keys in (('mode', {'mode'}), ('owner', {'uid', 'gid'}), ('uid', {'uid'}), ('size', {'size'}),
                        ('data', {'data'}), ('names', {'missing', 'extra'}), ('type', {'type'}),
                        ('link', {'link'}), ('hardlink', {'hardlink'}), ('device', {'device'}),
                        ('label', {'xattr.security.selinux'}), ('caps', {'xattr.security.capability'}),
                        ('acl', {'xattr.system.posix_acl_access'}),
                        ('mode,size', {'mode', 'size'}), ('type,mode,size,data', {'type', 'mode', 'size', 'data'})):
        result = fsck('--verify=dir:' + top, '--verify-only=' + words, image())
        found = {d[1] for d in differences(expect(result, (0, 4)))}
        check(found <= keys, '%s: %s' % (words, found))
        if words != 'caps' and 'data' not in words:
            is_(found, keys, words)


@test('--verify-only=data: a file of another size has other contents, also a large one')
def _():
    for name in ('etc/small', 'big'):
        top = build(lambda top, name=name: open(os.path.join(top, name), 'ab').write(b'more'))
        other = fresh('other')
        expect(tools.run([tools.MKFS, '--quiet', other, top]), 0)
        manifest = fresh('mtree')
        expect(tools.dump('--to-mtree=' + manifest, '--mtree-xattrs', other), 0)
        for what in ('dir:' + top, 'tar:' + archive(top), 'mtree:' + manifest):
            for workers in tools.WORKERS:
                result = expect(fsck('--verify=' + what, '--verify-only=data', '--workers=' + workers, image()), 4)
                is_([d[:2] for d in differences(result)], [('/' + name, 'data')], what)


@test('--verify=dir: with --path the tree below it')
def _():
    top = build()
    same(image(), 'dir:' + os.path.join(top, 'bin'), '--path=/bin')
    result = expect(fsck('--verify=dir:' + os.path.join(top, 'bin'), '--path=/etc', image()), 4)
    check('/small: extra (regular, none)' in result.text, result)


@test('C9: --json has each difference as an object, and the schema allows it')
def _():
    top = build(lambda top: (os.chmod(os.path.join(top, 'etc/small'), 0), os.unlink(os.path.join(top, 'big')),
                             write(os.fsencode(top) + b'/bad\xff', b'')))
    result = expect(fsck('--verify=dir:' + top, '--json', image()), 4)
    report = schema.report(result.out)
    is_([(d['path'], d['key'], d['found'], d['wanted']) for d in report['differences']],
        [('/bad\ufffd', 'missing', 'none', 'regular'), ('/etc/small', 'mode', '0644', '0000'),
         ('/big', 'extra', 'regular', 'none')], 'differences')
    is_(report['verify']['differences'], 3, 'their number')
    is_((report['result'], report['exit'], report['findings']), ('damaged', 4, []), 'result')
    clean = schema.report(expect(fsck('--verify=dir:' + build(), '--json', image()), 0).out)
    is_((clean['differences'], clean['verify']['complete'], clean['data_checked']), ([], True, True), 'clean')


@test('--verify=dir: a folder that is not there, and a file that cannot be read, are 8')
def _():
    result = expect(fsck('--verify=dir:/nonexistent/folder', image()), 8, 'cannot open the folder /nonexistent')
    check(not differences_of(result), result)
    top = build()
    os.chmod(os.path.join(top, 'etc/one'), 0)
    os.chmod(os.path.join(top, 'etc'), 0o755)
    user = tools.as_user()
    result = fsck('--verify=dir:' + top, '--verify-only=data', image(), **user)
    expect(result, 8, '/etc/one: cannot open it: Permission denied')


@test('V16: the image itself, which lies in the folder, is not missing')
def _():
    top = build()
    inside = os.path.join(top, 'bin', 'image')
    shutil.copy(image(), inside)
    settle(top)
    expect(fsck('--verify=dir:' + top, inside), 0, silent=True)
    names_only(image(), 'dir:' + top, 'another image', [('/bin/image', 'missing')])


@test('damage is told as damage: 4, and sound files are compared')
def _():
    picture = image('peer')
    data = bytearray(open(picture, 'rb').read())
    at = data.find(hashlib.sha256(b'3 0').digest())
    check(at > 0, 'no plain data in the image')
    data[at] ^= 1
    broken = tools.save(bytes(data))
    result = expect(fsck('--verify=dir:' + build(), '--no-sbcrc', broken), 4)
    found = differences_of(result)
    check(len(found) <= 1 and all(f[:2] == ('/big', 'data') for f in found), result)


@test('--verify=dir: symlinks of the source are not followed, devices and pipes not opened')
def _():
    top = build()
    outside = fresh('outside', make=True)
    write(os.path.join(outside, 'x'), b'x' * 5000)
    shutil.rmtree(os.path.join(top, 'bin/deep'))
    os.symlink(outside, os.path.join(top, 'bin/deep'))
    settle(top)
    result = expect(fsck('--verify=dir:' + top, image(), timeout=10), 4)
    is_(sorted(d[:2] for d in differences(result)), [('/bin/deep', 'type'), ('/bin/deep/x', 'extra')], 'found')


@test('R29: without /proc all but attributes of symlinks and devices is compared, and a warning says so')
def _():
    tools.need_root()
    if not shutil.which('unshare'):
        raise Skip('no unshare')
    if tools.SANITIZED:
        raise Skip('the search for leaks needs /proc, also to be told to leave it')
    hidden = ['unshare', '-m', 'sh', '-c', 'umount -l /proc && exec "$@"', 'sh']
    if subprocess.run(hidden + ['true'], capture_output=True).returncode:
        raise Skip('cannot hide /proc')
    top = build()
    result = expect(tools.run(hidden + [tools.FSCK, '--verify=dir:' + top, image()]), 0, 'no /proc: attributes')
    check(not differences_of(result), result)
    os.setxattr(os.path.join(top, 'etc/small'), 'user.note', b'other')
    settle(top)
    result = expect(tools.run(hidden + [tools.FSCK, '--verify=dir:' + top, image()]), 4)
    is_([d[:2] for d in differences_of(result)], [('/etc/small', 'xattr.user.note')], 'found')


@test('R21: stopped by a signal: 32')
def _():
    top = fresh('sparse', make=True)
    with open(os.path.join(top, 'data'), 'wb') as file:
        for _ in range(40):
            file.write(os.urandom(1 << 20))
    picture = fresh('image')
    expect(tools.run([tools.mkfs_tool(), '--quiet', picture, top], timeout=100), 0)

    def stop(process):
        time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
    statuses = set()
    for _ in range(8):
        statuses.add(fsck('--verify=dir:' + top, '--workers=1', picture, during=stop).status)
        if 32 in statuses:
            break
    check(statuses & {32, 36}, statuses)


@test('many names: a folder of 60000, few descriptors, little memory')
def _():
    top = fresh('many', make=True)
    for i in range(60000):
        os.mknod(os.path.join(top, 'a name that is not so short %08d' % (i * 7919 % 1000003)))
    deep = top
    for i in range(300):
        deep = os.path.join(deep, 'd%d' % (i % 3))
        os.mkdir(deep)
    picture = fresh('image')
    expect(tools.run([tools.mkfs_tool(), '--quiet', picture, top], timeout=100), 0)
    result = expect(fsck('--verify=dir:' + top, '--verify-only=names,type,size,data,mode', picture,
                         limits=[(resource.RLIMIT_NOFILE, 48)]), 0, silent=True)
    check(tools.SLOW or result.rss < 64 << 20, 'peak memory %d' % result.rss)


if __name__ == '__main__':
    main()
