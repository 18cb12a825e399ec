#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R25 to R29 and section 3: what an image may be, and the status for each fault; both tools."""
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
from entrance import both  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import FSCK, expect, fresh, fsck, run, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def image():
    return samples.plain()[0]


def patched(at, code, value, seal=True):
    picture = mkimg.Image.load(image()).put(mkimg.SB + at, code, value)
    return save(bytes((picture.seal() if seal else picture).data), 'patched')


def refused(tool, path, status, *patterns, words=()):
    """A look at the image and extraction both fail with status, dump.erofs with 2, and nothing is made."""
    status = tool.status(status, 2)
    expect(tool.run(*words, *([] if tool.is_fsck else ['-S']), path), status, r'^<E> erofs: ', *patterns)
    target = fresh()
    result = expect(tool.run(*words, '--extract=' + target, path), status, *patterns)
    tool.form_fault(result)
    check(not os.path.lexists(target), 'the target was made')
    return result


@both('R25: /dev/stdin redirected from a file')
def _(tool):
    with open(image(), 'rb') as file:
        expect(tool.run(tool.decode(), '/dev/stdin', stdin=file), 0, silent=True)


@both('R25: - is standard input')
def _(tool):
    target = fresh()
    with open(image(), 'rb') as file:
        expect(tool.run('--extract=' + target, '-', stdin=file), 0, silent=True)
    samples.same(samples.plain()[1], target)


@both('R25: a pipe is refused with a clear text')
def _(tool):
    with open(image(), 'rb') as file:
        feeder = subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE)
    try:
        expect(tool.run('-', stdin=feeder.stdout), tool.status(8, 2), r'(?i)pipe|seek')
    finally:
        feeder.stdout.close()
        feeder.wait()


@both('R25: a FIFO by name is refused and does not hang')
def _(tool):
    path = fresh('fifo')
    os.mkfifo(path)
    expect(tool.run(path, timeout=10), tool.status(8, 2))


@both('R25: --spool reads an image from a pipe and from a FIFO, and leaves nothing behind')
def _(tool):
    folder = fresh('tmp', make=True)
    for name in (['-'], ['/dev/stdin']):
        target = fresh()
        with open(image(), 'rb') as file:
            feeder = subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE)
        expect(tool.run('--spool', '--extract=' + target, *name, stdin=feeder.stdout,
                    env={'TMPDIR': folder}), 0, silent=True)
        feeder.stdout.close()
        feeder.wait()
        samples.same(samples.plain()[1], target)
    path = fresh('fifo')
    os.mkfifo(path)
    feeder = subprocess.Popen(['sh', '-c', 'sleep 0.2; exec cat "$1" >"$2"', 'sh', image(), path])
    expect(tool.run('--spool', tool.decode(), path), 0, silent=True)
    is_(feeder.wait(), 0, 'the writer')
    is_(os.listdir(folder), [], 'left in TMPDIR')


@both('R25: --spool with no room or no folder to write in says so')
def _(tool):
    for where, status, text in (('/no/such/folder', 8, r'temporary file in /no/such/folder'),):
        with open(image(), 'rb') as file:
            feeder = subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE)
        expect(tool.run('--spool', '-', stdin=feeder.stdout, env={'TMPDIR': where}),
               tool.status(status, 2), text)
        feeder.stdout.close()
        feeder.wait()
    with open(image(), 'rb') as file:
        feeder = subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE)
    expect(tool.run('--spool', '-', stdin=feeder.stdout,
                limits=((resource.RLIMIT_FSIZE, 4096),)), tool.status(8, 2), r'(?i)temporary file.*too large')
    feeder.stdout.close()
    feeder.wait()


@both('R25: a directory and a character device are refused by type')
def _(tool):
    refused(tool, fresh('folder', make=True), 8, r'(?i)director')
    refused(tool, '/dev/zero', 8, r'(?i)device')


@both('R25: a block device is read')
def _(tool):
    tools.need_root()
    if not shutil.which('losetup'):
        raise Skip('no losetup')
    done = subprocess.run(['losetup', '-rf', '--show', image()], capture_output=True)
    if done.returncode:
        raise Skip('no loop device: ' + done.stderr.decode().strip())
    loop = done.stdout.decode().strip()
    try:
        expect(tool.run(tool.decode(), loop), 0, silent=True)
    finally:
        subprocess.run(['losetup', '-d', loop], check=False)


@both('R27: bytes behind the image do no harm')
def _(tool):
    with open(image(), 'rb') as file:
        data = file.read()
    for extra in (b'\xff' * 5000, b'PK\3\4' * 100000, b'\0'):
        target = fresh()
        expect(tool.run('--extract=' + target, save(data + extra)), 0, silent=True)
        samples.same(samples.plain()[1], target)


@test('R27: an image shorter than its superblock says is damage, also for a plain check')
def _():
    with open(image(), 'rb') as file:
        data = file.read()
    for cut in (1, 4096, 20000):
        expect(fsck('--extract', save(data[:-cut])), 4)
        expect(fsck(save(data[:-cut])), 4)


@both('R28: a wrong superblock checksum is damage')
def _(tool):
    refused(tool, patched(4, 'I', 0x12345678, seal=False), 4, r'(?i)checksum')


@both('R28: --no-sbcrc passes it by')
def _(tool):
    target = fresh()
    expect(tool.run('--no-sbcrc', '--extract=' + target, patched(4, 'I', 0x12345678, seal=False)), 0)
    samples.same(samples.plain()[1], target)


@both('R28: without the feature bit no checksum is asked for')
def _(tool):
    expect(tool.run(tool.decode(), save(mkimg.build(samples.plain_root(), checksum=False))), 0, silent=True)


@both('R29: works where openat2, memfd, mlock, real-time scheduling and affinity are refused')
def _(tool):
    calls = [437, 319, 149, 325, 144, 314, 203]
    for error in (1, 38):
        target = fresh()
        expect(tool.run('--workers=percpu', '--extract=' + target, image(),
                    preexec=tools.refuse_calls(calls, error)), 0)
        samples.same(samples.plain()[1], target)


@both('R29: works without /proc and /sys')
def _(tool):
    tools.need_root()
    if not shutil.which('unshare'):
        raise Skip('no unshare')
    target = fresh()
    script = 'mount -t tmpfs n /proc && mount -t tmpfs n /sys && exec "$@"'
    words = ['unshare', '-m', 'sh', '-c', script, 'sh']
    probe = run(words + ['true'])
    if probe.status:
        raise Skip('cannot hide /proc: ' + probe.text[:100])
    expect(run(words + [tool.path, '--workers=percpu', '--extract=' + target, image()]), 0)
    samples.same(samples.plain()[1], target)


@both('R29: TMPDIR may be missing')
def _(tool):
    expect(tool.run(tool.decode(), image(), env={'TMPDIR': '/no/such/folder'}), 0, silent=True)


@both('status 8: no such file, named')
def _(tool):
    refused(tool, '/no/such/image', 8, r'/no/such/image', r'(?i)no such file')


@both('status 8: an unreadable image')
def _(tool):
    user = tools.as_user()
    path = save(b'x' * 9000, 'secret')
    os.chmod(path, 0)
    expect(tool.run(path, **user), tool.status(8, 2), r'(?i)permission denied')


@both('status 8: empty file, short file, text, zeros')
def _(tool):
    refused(tool, save(b''), 8)
    refused(tool, save(b'\0' * 1024), 8)
    refused(tool, save(b'\0' * 1100), 8)
    refused(tool, save(b'no image at all\n' * 1000), 8, r'(?i)magic|not an? EROFS')
    refused(tool, save(bytes(100000)), 8, r'(?i)magic|not an? EROFS')


@both('status 8: an ext4 superblock is no EROFS, and the target is not made')
def _(tool):
    data = bytearray(1 << 20)
    data[1024 + 56:1024 + 58] = b'\x53\xef'
    refused(tool, save(bytes(data)), 8)


@both('status 8: an unknown feature bit is named')
def _(tool):
    refused(tool, patched(80, 'I', 1 << 30), 8, r'0x40000000')
    refused(tool, patched(80, 'I', 1 << 9), 8, r'0x200\b')


@both('status 8: an unknown algorithm is named')
def _(tool):
    picture = mkimg.Image.load(image())
    picture.put(mkimg.SB + 80, 'I', picture.get(mkimg.SB + 80, 'I') | 2)
    picture.put(mkimg.SB + 84, 'H', 1 << 9).seal()
    refused(tool, save(bytes(picture.data)), 8, r'0x200\b|\b9\b')


@both('status 8: blocks larger than 64 KiB; status 4: block size bits that are none')
def _(tool):
    refused(tool, patched(12, 'B', 17, seal=False), 8, words=['--no-sbcrc'])
    refused(tool, patched(12, 'B', 3, seal=False), 4, words=['--no-sbcrc'])


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


@both('status 4: a device shorter than its slot says')
def _(tool):
    picture, parts, root = samples.devices()
    target = fresh()
    result = expect(tool.run('--extract=' + target, '--device=' + parts[0],
                         '--device=' + save(b'short'), picture), tool.status({4, 8, 12}), r'/b\b|device')
    with open(os.path.join(target, 'a'), 'rb') as file:
        is_(file.read(), root.entries['a'].chunks[0], 'the file of the other device')
    check(not os.path.exists(os.path.join(target, 'b')), 'short file left', result)


@both('status 8: --offset behind the end')
def _(tool):
    refused(tool, image(), 8, words=['--offset=1G'])


@both('status 12: damage in one file and a target that runs full')
def _(tool):
    root = mkimg.Dir({'bad': mkimg.Runs([(65, 16)]), 'large': mkimg.File(os.urandom(1000000)),
                      'small': mkimg.File(b'fits\n')})
    builder = mkimg.Builder(root)
    picture = mkimg.Image(builder.build())
    at = root.entries['bad'].pclusters[0]
    picture.data[at:at + 4096] = b'\xff' * 4096
    path = save(bytes(picture.data))
    with tools.tmpfs('600k') as where:
        result = expect(tool.run('--extract=' + os.path.join(where, 'x'), path), tool.status(12), r'/bad\b',
                        r'large.*(?i:no space)')
        is_(os.listdir(os.path.join(where, 'x')), ['small'], 'files left\n%s' % result)


@both('status 4: image of a truncated file whose metadata is whole')
def _(tool):
    data = mkimg.build(mkimg.Dir({'a': mkimg.File(os.urandom(100000)), 'b': mkimg.File(b'b')}))
    target = fresh()
    expect(tool.run('--extract=' + target, save(data[:50000])), tool.status(4), r'/a\b')
    is_(sorted(os.listdir(target)), ['b'], 'what is there')


@both('a read error of the image is an error with its reason, and status 8')
def _(tool):
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
    for words in (['--extract'], ['--extract=' + target])[not tool.is_fsck:]:
        for workers in tools.WORKERS:
            result = tool.run(*words, '--workers=' + workers, path, env=env)
            if result.status == 0 and not result.err:
                raise Skip('the tool reads by other means than pread')
            expect(result, tool.status(8), r'/a\b', r'(?i)input/output error')
            tree.remove(target) if words[0] != '--extract' and workers != tools.WORKERS[-1] else 0
    is_(sorted(os.listdir(target)), ['b'], 'what is there')


@both('targets: exists as a file, below a missing folder, not writable')
def _(tool):
    path = save(b'precious')
    expect(tool.run('--extract=' + path, image()), tool.status(8, 2), r'(?i)exists|not a directory')
    with open(path, 'rb') as file:
        is_(file.read(), b'precious', 'the file')
    expect(tool.run('--extract=/no/such/folder/x', image()), tool.status(8, 2), r'(?i)no such file')
    user = tools.as_user()
    locked = fresh('locked', make=True, mode=0o555)
    os.chmod(image(), 0o644)
    result = expect(tool.run('--extract=' + os.path.join(locked, 'x'), image(), **user), tool.status(8, 2),
                    r'(?i)permission denied')
    tool.form_fault(result)
    is_(os.listdir(locked), [], 'locked folder')


@both('the target / needs --force')
def _(tool):
    small = save(mkimg.build(mkimg.Dir({}, mode=stat.S_IMODE(os.stat('/').st_mode))))
    result = expect(tool.run('--extract=/', small), tool.status(8, 2), r'--force')
    tool.form_fault(result)


main()
