#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R25 to R29 and section 3: what an image may be, and the status for each fault."""
import os
import resource
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
from tools import FSCK, expect, fresh, fsck, run, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def image():
    return samples.plain()[0]


def patched(at, code, value, seal=True):
    picture = mkimg.Image.load(image()).put(mkimg.SB + at, code, value)
    return save(bytes((picture.seal() if seal else picture).data), 'patched')


def refused(path, status, *patterns, words=()):
    """Check and extraction both fail with status, and nothing is made."""
    expect(fsck(*words, path), status, r'^<E> erofs: ', *patterns)
    target = fresh()
    result = expect(fsck(*words, '--extract=' + target, path), status, *patterns)
    samples.form_fault(result)
    check(not os.path.lexists(target), 'the target was made')
    return result


@test('R25: /dev/stdin redirected from a file')
def _():
    with open(image(), 'rb') as file:
        expect(fsck('--extract', '/dev/stdin', stdin=file), 0, silent=True)


@test('R25: - is standard input')
def _():
    target = fresh()
    with open(image(), 'rb') as file:
        expect(fsck('--extract=' + target, '-', stdin=file), 0, silent=True)
    samples.same(samples.plain()[1], target)


@test('R25: a pipe is refused with a clear text')
def _():
    with open(image(), 'rb') as file:
        feeder = subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE)
    try:
        expect(fsck('-', stdin=feeder.stdout), 8, r'(?i)pipe|seek')
    finally:
        feeder.stdout.close()
        feeder.wait()


@test('R25: a FIFO by name is refused and does not hang')
def _():
    path = fresh('fifo')
    os.mkfifo(path)
    expect(fsck(path, timeout=10), 8)


@test('R25: --spool reads an image from a pipe and from a FIFO, and leaves nothing behind')
def _():
    folder = fresh('tmp', make=True)
    for name in (['-'], ['/dev/stdin']):
        target = fresh()
        with open(image(), 'rb') as file:
            feeder = subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE)
        expect(fsck('--spool', '--extract=' + target, *name, stdin=feeder.stdout,
                    env={'TMPDIR': folder}), 0, silent=True)
        feeder.stdout.close()
        feeder.wait()
        samples.same(samples.plain()[1], target)
    path = fresh('fifo')
    os.mkfifo(path)
    feeder = subprocess.Popen(['sh', '-c', 'sleep 0.2; exec cat "$1" >"$2"', 'sh', image(), path])
    expect(fsck('--spool', '--extract', path), 0, silent=True)
    is_(feeder.wait(), 0, 'the writer')
    is_(os.listdir(folder), [], 'left in TMPDIR')


@test('R25: --spool with no room or no folder to write in says so')
def _():
    for where, status, text in (('/no/such/folder', 8, r'temporary file in /no/such/folder'),):
        with open(image(), 'rb') as file:
            feeder = subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE)
        expect(fsck('--spool', '-', stdin=feeder.stdout, env={'TMPDIR': where}), status, text)
        feeder.stdout.close()
        feeder.wait()
    with open(image(), 'rb') as file:
        feeder = subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE)
    expect(fsck('--spool', '-', stdin=feeder.stdout,
                limits=((resource.RLIMIT_FSIZE, 4096),)), 8, r'(?i)temporary file.*too large')
    feeder.stdout.close()
    feeder.wait()


@test('R25: a directory and a character device are refused by type')
def _():
    refused(fresh('folder', make=True), 8, r'(?i)director')
    refused('/dev/zero', 8, r'(?i)device')


@test('R25: a block device is read')
def _():
    tools.need_root()
    if not shutil.which('losetup'):
        raise Skip('no losetup')
    done = subprocess.run(['losetup', '-rf', '--show', image()], capture_output=True)
    if done.returncode:
        raise Skip('no loop device: ' + done.stderr.decode().strip())
    loop = done.stdout.decode().strip()
    try:
        expect(fsck('--extract', loop), 0, silent=True)
    finally:
        subprocess.run(['losetup', '-d', loop], check=False)


@test('R27: bytes behind the image do no harm')
def _():
    with open(image(), 'rb') as file:
        data = file.read()
    for extra in (b'\xff' * 5000, b'PK\3\4' * 100000, b'\0'):
        target = fresh()
        expect(fsck('--extract=' + target, save(data + extra)), 0, silent=True)
        samples.same(samples.plain()[1], target)


@test('R27: an image shorter than its superblock says is damage, also for a plain check')
def _():
    with open(image(), 'rb') as file:
        data = file.read()
    for cut in (1, 4096, 20000):
        expect(fsck('--extract', save(data[:-cut])), 4)
        expect(fsck(save(data[:-cut])), 4)


@test('R28: a wrong superblock checksum is damage')
def _():
    refused(patched(4, 'I', 0x12345678, seal=False), 4, r'(?i)checksum')


@test('R28: --no-sbcrc passes it by')
def _():
    target = fresh()
    expect(fsck('--no-sbcrc', '--extract=' + target, patched(4, 'I', 0x12345678, seal=False)), 0)
    samples.same(samples.plain()[1], target)


@test('R28: without the feature bit no checksum is asked for')
def _():
    expect(fsck(save(mkimg.build(samples.plain_root(), checksum=False))), 0, silent=True)


@test('R29: works where openat2, memfd, mlock, real-time scheduling and affinity are refused')
def _():
    calls = [437, 319, 149, 325, 144, 314, 203]
    for error in (1, 38):
        target = fresh()
        expect(fsck('--workers=percpu', '--extract=' + target, image(),
                    preexec=tools.refuse_calls(calls, error)), 0)
        samples.same(samples.plain()[1], target)


@test('R29: works without /proc and /sys')
def _():
    tools.need_root()
    if not shutil.which('unshare'):
        raise Skip('no unshare')
    target = fresh()
    script = 'mount -t tmpfs n /proc && mount -t tmpfs n /sys && exec "$@"'
    words = ['unshare', '-m', 'sh', '-c', script, 'sh']
    probe = run(words + ['true'])
    if probe.status:
        raise Skip('cannot hide /proc: ' + probe.text[:100])
    expect(run(words + [FSCK, '--workers=percpu', '--extract=' + target, image()]), 0)
    samples.same(samples.plain()[1], target)


@test('R29: TMPDIR may be missing')
def _():
    expect(fsck('--extract', image(), env={'TMPDIR': '/no/such/folder'}), 0, silent=True)


@test('status 8: no such file, named')
def _():
    refused('/no/such/image', 8, r'/no/such/image', r'(?i)no such file')


@test('status 8: an unreadable image')
def _():
    user = tools.as_user()
    path = save(b'x' * 9000, 'secret')
    os.chmod(path, 0)
    expect(fsck(path, **user), 8, r'(?i)permission denied')


@test('status 8: empty file, short file, text, zeros')
def _():
    refused(save(b''), 8)
    refused(save(b'\0' * 1024), 8)
    refused(save(b'\0' * 1100), 8)
    refused(save(b'no image at all\n' * 1000), 8, r'(?i)magic|not an? EROFS')
    refused(save(bytes(100000)), 8, r'(?i)magic|not an? EROFS')


@test('status 8: an ext4 superblock is no EROFS, and the target is not made')
def _():
    data = bytearray(1 << 20)
    data[1024 + 56:1024 + 58] = b'\x53\xef'
    refused(save(bytes(data)), 8)


@test('status 8: an unknown feature bit is named')
def _():
    refused(patched(80, 'I', 1 << 30), 8, r'0x40000000')
    refused(patched(80, 'I', 1 << 9), 8, r'0x200\b')


@test('status 8: an unknown algorithm is named')
def _():
    picture = mkimg.Image.load(image())
    picture.put(mkimg.SB + 80, 'I', picture.get(mkimg.SB + 80, 'I') | 2)
    picture.put(mkimg.SB + 84, 'H', 1 << 9).seal()
    refused(save(bytes(picture.data)), 8, r'0x200\b|\b9\b')


@test('status 8: blocks larger than 64 KiB; status 4: block size bits that are none')
def _():
    refused(patched(12, 'B', 17, seal=False), 8, words=['--no-sbcrc'])
    refused(patched(12, 'B', 3, seal=False), 4, words=['--no-sbcrc'])


@test('status 8: a device is missing, whichever; a plain check passes')
def _():
    picture, parts, _ = samples.devices()
    expect(fsck(picture), 0)
    for given in ([], parts[:1]):
        words = ['--device=' + p for p in given]
        result = expect(fsck('--extract', *words, picture), 8)
        check(b'device' in result.err, result)
        target = fresh()
        expect(fsck('--extract=' + target, *words, picture), 8)


@test('status 8: a device file that is not there')
def _():
    picture, parts, _ = samples.devices()
    expect(fsck('--extract', '--device=/no/such/device', '--device=' + parts[1], picture), 8,
           r'/no/such/device')


@test('status 4: a device shorter than its slot says')
def _():
    picture, parts, root = samples.devices()
    target = fresh()
    result = expect(fsck('--extract=' + target, '--device=' + parts[0],
                         '--device=' + save(b'short'), picture), {4, 8, 12}, r'/b\b|device')
    with open(os.path.join(target, 'a'), 'rb') as file:
        is_(file.read(), root.entries['a'].chunks[0], 'the file of the other device')
    check(not os.path.exists(os.path.join(target, 'b')), 'short file left', result)


@test('status 8: --offset behind the end')
def _():
    refused(image(), 8, words=['--offset=1G'])


@test('status 12: damage in one file and a target that runs full')
def _():
    root = mkimg.Dir({'bad': mkimg.Runs([(65, 16)]), 'large': mkimg.File(os.urandom(1000000)),
                      'small': mkimg.File(b'fits\n')})
    builder = mkimg.Builder(root)
    picture = mkimg.Image(builder.build())
    at = root.entries['bad'].pclusters[0]
    picture.data[at:at + 4096] = b'\xff' * 4096
    path = save(bytes(picture.data))
    with tools.tmpfs('600k') as where:
        result = expect(fsck('--extract=' + os.path.join(where, 'x'), path), 12, r'/bad\b',
                        r'large.*(?i:no space)')
        is_(os.listdir(os.path.join(where, 'x')), ['small'], 'files left\n%s' % result)


@test('status 4: image of a truncated file whose metadata is whole')
def _():
    data = mkimg.build(mkimg.Dir({'a': mkimg.File(os.urandom(100000)), 'b': mkimg.File(b'b')}))
    target = fresh()
    expect(fsck('--extract=' + target, save(data[:50000])), 4, r'/a\b')
    is_(sorted(os.listdir(target)), ['b'], 'what is there')


@test('a read error of the image is an error with its reason, and status 8')
def _():
    if tools.SLOW or not shutil.which('cc'):
        raise Skip('needs a compiler and a run without sanitizers')
    source = save(b'''#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#define FROM ((off_t)atol(getenv("EIO_FROM")))
ssize_t pread64(int fd, void *buf, size_t n, off_t at)
{
	ssize_t (*real)(int, void *, size_t, off_t) = (ssize_t (*)(int, void *, size_t, off_t))
		dlsym(RTLD_NEXT, "pread64");
	if (at + (off_t)n > FROM) {
		errno = EIO;
		return -1;
	}
	return real(fd, buf, n, at);
}
ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
	return pread64(fd, buf, n, at);
}
''', 'eio') + '.c'
    os.rename(source[:-2], source)
    shim = source[:-2] + '.so'
    if subprocess.run(['cc', '-shared', '-fPIC', '-o', shim, source, '-ldl'],
                      capture_output=True).returncode:
        raise Skip('the compiler makes no shared object')
    root = mkimg.Dir({'a': mkimg.File(os.urandom(300000)), 'b': mkimg.File(b'b' * 50)})
    path = save(mkimg.build(root))
    env = {'LD_PRELOAD': shim, 'EIO_FROM': '100000'}
    target = fresh()
    for words in (['--extract'], ['--extract=' + target]):
        for workers in tools.WORKERS:
            result = fsck(*words, '--workers=' + workers, path, env=env)
            if result.status == 0 and not result.err:
                raise Skip('the tool reads by other means than pread')
            expect(result, 8, r'/a\b', r'(?i)input/output error')
            tree.remove(target) if words[0] != '--extract' and workers != tools.WORKERS[-1] else 0
    is_(sorted(os.listdir(target)), ['b'], 'what is there')


@test('targets: exists as a file, below a missing folder, not writable')
def _():
    path = save(b'precious')
    expect(fsck('--extract=' + path, image()), 8, r'(?i)exists|not a directory')
    with open(path, 'rb') as file:
        is_(file.read(), b'precious', 'the file')
    expect(fsck('--extract=/no/such/folder/x', image()), 8, r'(?i)no such file')
    user = tools.as_user()
    locked = fresh('locked', make=True, mode=0o555)
    os.chmod(image(), 0o644)
    result = expect(fsck('--extract=' + os.path.join(locked, 'x'), image(), **user), 8,
                    r'(?i)permission denied')
    samples.form_fault(result)
    is_(os.listdir(locked), [], 'locked folder')


@test('the target / needs --force')
def _():
    small = save(mkimg.build(mkimg.Dir({}, mode=stat.S_IMODE(os.stat('/').st_mode))))
    result = expect(fsck('--extract=/', small), {8, 16}, r'--force')
    samples.form_fault(result)


main()
