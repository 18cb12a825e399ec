#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R21 and R24 and X9 through dump.erofs: signals at random moments, limits of file sizes."""
import functools
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, ROOT, dump, expect, fresh, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')


@functools.lru_cache(None)
def crowd():
    """Many small files, compressed ones, hard links, and some that are written in ranges."""
    twice = mkimg.File(b'twice' * 1000)
    entries = {'f%04d' % n: mkimg.File(bytes([n % 251]) * (2000 + n)) for n in range(1500)}
    entries.update({'z%03d' % n: mkimg.Runs([(n + 1, 40), (n + 2, 40)]) for n in range(50)})
    entries.update({'h%02d' % n: twice for n in range(40)})
    entries.update({'large%d' % n: mkimg.Chunked([bytes([k + 1]) * 65536 for k in range(100)], 4)
                    for n in range(3)})
    root = mkimg.Dir({'d': mkimg.Dir(entries, mode=0o555), 'e': mkimg.Dir({'last': mkimg.File(b'l')})})
    return save(mkimg.build(root), 'crowd'), root, samples.picture(root)


def check_names(target, wanted):
    """Every final name holds the whole file, and there are no others."""
    for path, entry in tree.read(target, xattrs=False).items():
        check(path in wanted, 'left behind', tree.show(path))
        if entry.kind == 'file':
            is_((entry.size, entry.digest), (wanted[path].size, wanted[path].digest), tree.show(path))


def stop(target, number, delay, *words, again=None, **more):
    """Extract, and send the signal so long after the target is there."""
    def during(process):
        until = time.monotonic() + 10
        while not os.path.isdir(target) and time.monotonic() < until:
            time.sleep(0.0002)
        for pause, which in ((delay, number), (again, number))[:1 + (again is not None)]:
            time.sleep(pause)
            try:
                os.kill(process.pid, which)
            except ProcessLookupError:
                pass

    return dump('--extract=' + target, *words, crowd()[0], during=during, **more)


def stop_often(folder, seed, **more):
    """Runs that are stopped; then one that completes the tree. How many were stopped?"""
    _, root, wanted = crowd()
    rng = random.Random(seed)
    hit = 0
    for turn in range(9):
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[turn % 3]
        target = os.path.join(folder, 'x%d' % turn)
        words = ['--workers=' + tools.WORKERS[turn // 3 % len(tools.WORKERS)]]
        result = stop(target, number, rng.random() * 0.04, *words, **more)
        # ended by the signal itself: a shell sees 128 and its number
        check(result.status in (0, -number), result)
        if result.status:
            hit += 1
            expect(result, -number, r'^<E> erofs: .*cancelled by %s after \d+ inodes' % number.name)
        samples.form_fault(result, 'dump.erofs')
        if os.path.isdir(target):
            check_names(target, wanted)
        expect(dump('--extract=' + target, '--overwrite', *words, crowd()[0], **more), 0, silent=True)
        samples.same(root, target, wanted, xattrs=False, owner=ROOT and 'user' not in more)
        tree.remove(target)
    return hit


def users():
    return [('root', {})] * ROOT + [('an ordinary user', None)]


for who, how in users():
    @test('R21, X9: random moments, %s, on the scratch file system: no short file; --overwrite completes' % who)
    def _(how=how):
        more = tools.as_user() if how is None else how
        check(stop_often(fresh(make=True), 1, umask=0o022, **more), 'no run was stopped')

    @test('R21, X9: random moments, %s, on ext4: no short file; --overwrite completes' % who)
    def _(how=how):
        more = tools.as_user() if how is None else how
        tools.need_root()
        disk = save(b'', 'disk')
        os.truncate(disk, 256 << 20)
        if subprocess.run(['mkfs.ext4', '-q', '-F', disk], capture_output=True).returncode:
            raise Skip('no mkfs.ext4')
        with tools.Mount('-o', 'loop', disk) as folder:
            os.chmod(folder, 0o777)
            check(stop_often(folder, 2, umask=0o022, **more), 'no run was stopped')


@test('X9: a second signal, or SIGKILL, with --safe-writes: no short file, and --overwrite removes what is left')
def _():
    _, root, wanted = crowd()
    rng = random.Random(3)
    for turn in range(8):
        target = fresh()
        if turn % 2:
            result = stop(target, signal.SIGKILL, rng.random() * 0.04, '--safe-writes', '--workers=2')
        else:
            result = stop(target, signal.SIGTERM, rng.random() * 0.04, '--safe-writes', '--workers=2',
                          again=0.0002)
        check(result.status <= 0, result)
        for path, entry in tree.read(target, xattrs=False).items():
            if path in wanted and entry.kind == 'file':
                is_((entry.size, entry.digest), (wanted[path].size, wanted[path].digest), tree.show(path))
            else:
                check(entry.kind != 'file' or re.search(rb'/\.erofs-part-[0-9a-f]{16}$', path), tree.show(path))
        expect(dump('--extract=' + target, '--overwrite', crowd()[0]), 0, silent=True)
        samples.same(root, target, wanted, xattrs=False, owner=ROOT)
        tree.remove(target)


@test('R24: a file size limit is EFBIG for the file, not a death by SIGXFSZ: --extract, --to-tar, stdout')
def _():
    picture = save(mkimg.build(mkimg.Dir({'large': mkimg.File(os.urandom(400000)), 'small': mkimg.File(b's')})))
    limits = [(resource.RLIMIT_FSIZE, 100000)]
    target = fresh()
    expect(dump('--extract=' + target, picture, limits=limits), 1, r'large.*(?i:file too large)')
    is_(os.listdir(target), ['small'], 'files')
    expect(dump('--to-tar=' + target + '.tar', picture, limits=limits), 2, r'(?i)file too large')
    check(not os.path.exists(target + '.tar'), 'a part of an archive')
    for words in (['--cat', '--path=/large'], ['--to-tar']):
        with open(fresh(), 'wb') as file:
            expect(dump(*words, picture, limits=limits, stdout=file), 2, r'(?i)file too large')


main()
