#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 10, C1 to C12: how other projects call fsck.erofs."""
import os
import shutil
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, ROOT, dump, expect, fresh, fsck, run, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def ext4():
    data = bytearray(1 << 20)
    data[1024 + 56:1024 + 58] = b'\x53\xef'
    return save(bytes(data), 'ext4')


class Loop:
    """A read-only loop device with the image mounted, as in a running system."""

    def __init__(self, image):
        tools.need_root()
        if not shutil.which('losetup'):
            raise Skip('no losetup')
        self.image = image

    def __enter__(self):
        done = subprocess.run(['losetup', '-rf', '--show', self.image], capture_output=True)
        if done.returncode:
            raise Skip('no loop device: ' + done.stderr.decode().strip())
        self.device = done.stdout.decode().strip()
        return self.device

    def __exit__(self, *_):
        subprocess.run(['losetup', '-d', self.device], check=False)


@test('C1: build_image: --extract and nothing written; damage: not 0, with a text')
def _():
    folder = fresh('cwd', make=True)
    expect(fsck('--extract', samples.plain()[0], cwd=folder), 0, silent=True)
    is_(os.listdir(folder), [], 'current folder')
    check(expect(fsck('--extract', samples.damaged()[0], cwd=folder), 4).err)


@test('C2: deapexer: --extract=D --overwrite [--no-preserve-owner] into an existing folder')
def _():
    picture, root = samples.plain()
    for words in (['--no-preserve-owner'], []):
        folder = fresh('apex', make=True)
        result = expect(fsck('--extract=' + folder, '--overwrite', *words, picture), 0)
        is_(result.out, b'', 'stdout')
        samples.same(root, folder, owner=False, mode=ROOT)
        is_(os.stat(os.path.join(folder, 'one')).st_uid, os.geteuid(), 'owner')


@test('C3: unblob: --no-preserve --extract=D, ordinary user, image too long, devices skipped')
def _():
    root = samples.plain_root()
    root.entries['null'] = mkimg.Special(stat.S_IFCHR, 1, 3)
    picture = save(mkimg.build(root) + os.urandom(9999))
    os.chmod(picture, 0o644)
    target = fresh()
    expect(fsck('--no-preserve', '--extract=' + target, picture, umask=0o022, **tools.as_user()),
           0)
    user = tools.NOBODY if ROOT else os.getuid()
    group = tools.NOBODY if ROOT else os.getgid()
    samples.same(root, target, tree.for_user(samples.picture(root), user, group, 0o022))


@test('C3: unblob: damaged, not 0, what was readable is there')
def _():
    target = fresh()
    expect(fsck('--no-preserve', '--extract=' + target, samples.damaged()[0]), 4)
    is_(len(os.listdir(target)), 19, 'files')


@test('C4: dumpyara: an ext4 file: not 0, the folder is not made')
def _():
    target = fresh()
    check(fsck('--extract=' + target, ext4()).status > 0)
    check(not os.path.lexists(target), 'folder made')


@test('C5: dracut: --extract=. --overwrite beside the image, twice, with hard links')
def _():
    folder = fresh('initrd', make=True)
    shutil.copy(samples.plain()[0], os.path.join(folder, 'erofs-root.img'))
    for _ in range(2):
        result = expect(fsck('--extract=.', '--overwrite', 'erofs-root.img', cwd=folder), 0)
        is_(result.out, b'', 'stdout')
        info = os.stat(os.path.join(folder, 'first'))
        is_(info.st_ino, os.stat(os.path.join(folder, 'second')).st_ino, 'hard link')
        is_(info.st_nlink, 2, 'links')
    check(os.path.exists(os.path.join(folder, 'erofs-root.img')), 'the image is gone')


@test('C6: lsinitrd: --extract=T/erofs-root --overwrite, status 0 to be summed up')
def _():
    folder = fresh('tmp', make=True)
    expect(fsck('--extract=' + os.path.join(folder, 'erofs-root'), '--overwrite',
                samples.plain()[0]), 0)


@test('C7: FEX-Emu: -V starts, --extract=N gives exactly 0')
def _():
    expect(fsck('-V'), 0)
    expect(fsck('--extract=' + fresh(), samples.plain()[0]), 0)


@test('C8: composefs: many xattrs, whiteouts, files of chunks without data: 0, no output')
def _():
    many = {'trusted.overlay.x%03d' % n: b'v' * n for n in range(100)}
    many.update({'trusted.overlay.redirect': b'/6b/digest', 'trusted.overlay.metacopy': b''})
    root = mkimg.Dir({'redirect': mkimg.Chunked([mkimg.HOLE], 20, size=123456789, xattrs=many),
                      'gone': mkimg.Special(stat.S_IFCHR, 0, 0),
                      'opaque': mkimg.Dir({}, xattrs={'trusted.overlay.opaque': b'y'})})
    picture = save(mkimg.build(root))
    for words in ([], ['--extract'], ['--workers=2']):
        expect(fsck(*words, picture), 0, silent=True)


@test('C9: Buildroot: fsck.erofs, dump.erofs -s, -S on a mounted device')
def _():
    with Loop(samples.plain()[0]) as device, tools.Mount('-t', 'erofs', '-o', 'ro', device):
        expect(fsck(device), 0, silent=True)
        expect(fsck('--extract', device), 0, silent=True)
        if DUMP:
            expect(dump('-s', device), 0)
            expect(dump('-S', device), 0)


@test('C10: fsck(8), systemd-fsck, init scripts: -a, -y, -A, -n, -f, -r: good image 0')
def _():
    for words in (['-a'], ['-y'], ['-A'], ['-n'], ['-r'], ['-a', '-f'], ['-y', '-f'], ['-n', '-f']):
        expect(fsck(*words, samples.plain()[0]), 0, silent=True)


@test('C10: damaged superblock and damaged tree: 4 with each of them')
def _():
    broken = mkimg.Image.load(samples.plain()[0])
    broken.put(mkimg.SB + 4, 'I', 1)
    path = save(bytes(broken.data))
    tree_fault = mkimg.Image.load(samples.plain()[0])
    tree_fault.put(tree_fault.find('one').at, 'H', 0xF << 1)
    other = save(bytes(tree_fault.seal().data))
    for words in (['-a'], ['-y'], ['-n'], ['-a', '-f']):
        expect(fsck(*words, path), 4)
        expect(fsck(*words, other), {4, 12}, r'/one\b')


@test('C10: through the wrapper fsck(8)')
def _():
    wrapper = shutil.which('fsck') or shutil.which('fsck', path='/sbin:/usr/sbin')
    if not wrapper:
        raise Skip('no fsck(8)')
    folder = fresh('bin', make=True)
    os.symlink(FSCK, os.path.join(folder, 'fsck.erofs'))
    with Loop(samples.plain()[0]) as device:
        result = run([wrapper, '-T', '-t', 'erofs', '-a', device], env={'PATH': folder})
        expect(result, 0)
        result = run([wrapper, '-T', '-t', 'erofs', '-n', '-f', device], env={'PATH': folder})
        expect(result, 0)


@test('C10: -C# reports progress on a descriptor in e2fsck\'s form')
def _():
    read, write = os.pipe()
    result = fsck('-C%d' % write, '--extract', samples.plain()[0], pass_fds=(write,))
    os.close(write)
    seen = b''
    while True:
        part = os.read(read, 65536)
        if not part:
            break
        seen += part
    os.close(read)
    expect(result, 0)
    for line in seen.splitlines():
        words = line.split()
        check(len(words) >= 4 and all(w.isdigit() for w in words[:3]), 'line', line)


@test('C11: detection: -d0 is 0 or not, without a sound on success')
def _():
    expect(fsck('-d0', samples.plain()[0]), 0, silent=True)
    check(fsck('-d0', ext4()).status > 0)


@test('C11: -d3 prints "<I> erofs: No errors found"')
def _():
    expect(fsck('-d3', samples.plain()[0]), 0, r'^<I> erofs: No errors found$')


@test('C12: --extract with --device')
def _():
    picture, parts, _ = samples.devices()
    expect(fsck('--extract', *['--device=' + p for p in parts], picture), 0, silent=True)


@test('C25: "-d --extract DIR IMAGE" stays an error, and nothing is written')
def _():
    folder = fresh('dir', make=True)
    expect(fsck('-d', '--extract', folder, samples.plain()[0]), 16)
    is_(os.listdir(folder), [], 'folder')


main()
