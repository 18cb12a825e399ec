#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Field reports 22 to 39: what failed on the way to parallel checking and unpacking."""
import json
import os
import re
import resource
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import FSCK, ROOT, expect, fresh, fsck, mkfs, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')
SETTINGS = ['1', '2', '3', '8', 'percpu', 'unbound']


def folder_of(files):
    folder = fresh('source', make=True, mode=0o755)
    for name, data in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(data)
    return folder


def peak_threads(argv_words, picture):
    """(result, most threads seen) of a run."""
    seen = [0]

    def during(process):
        path = '/proc/%d/task' % process.pid
        until = time.monotonic() + 5
        while time.monotonic() < until:
            try:
                with open('/proc/%d/stat' % process.pid) as file:
                    if file.read().rsplit(') ', 1)[1][0] == 'Z':
                        return
                seen[0] = max(seen[0], len(os.listdir(path)))
            except OSError:
                return

    return fsck(*argv_words, picture, during=during), seen[0]


@test('field 26: folders deeper than there are workers, each with a compressed file: no deadlock')
def _():
    node = mkimg.Dir({'end': mkimg.Runs([(1, 4)])})
    for n in range(200):
        node = mkimg.Dir({'d': node, 'f': mkimg.Runs([(n % 250 + 1, 4)]),
                          'g': mkimg.Dir({'f': mkimg.Runs([(n % 250 + 2, 3)])})})
    picture = save(mkimg.build(node))
    wanted = samples.picture(node)
    for workers in SETTINGS:
        target = fresh()
        expect(fsck('--workers=' + workers, picture), 0, silent=True)
        expect(fsck('--extract=' + target, '--workers=' + workers, picture), 0, silent=True)
        samples.same(node, target, wanted, owner=ROOT)
        tree.remove(target)


@test('field 26: compressed directories, with one and two workers')
def _():
    for name in ('bigdir-zD', 'data-lz4-all', 'data-lz4-metabox'):
        picture = tools.corpus('good', name + '.erofs')
        for workers in SETTINGS:
            expect(fsck('--workers=' + workers, picture), 0, silent=True)


@test('field 27: 30,000 files: memory stays bounded')
def _():
    root = mkimg.Dir({'d%03d' % d: mkimg.Dir({'f%03d' % n: mkimg.File(b'%d/%d' % (d, n))
                                              for n in range(150)}) for d in range(200)})
    picture = save(mkimg.build(root))
    target = fresh()
    result = expect(fsck('--extract=' + target, '--workers=2', picture), 0)
    tree.remove(target)
    check(tools.SLOW or result.rss < 160 << 20, 'peak %d MiB' % (result.rss >> 20))


@test('field 28: two damaged files are both reported, whatever the worker count; the rest goes on')
def _():
    picture, root = samples.damaged(('f03', 'f17'))
    texts = set()
    for workers in SETTINGS:
        result = expect(fsck('--workers=' + workers, picture), 4, r'/f03 \(nid', r'/f17 \(nid')
        texts.add(result.text)
        target = fresh()
        expect(fsck('--extract=' + target, '--workers=' + workers, picture), 4)
        is_(len(os.listdir(target)), 18, 'files extracted')
    is_(len(texts), 1, 'reports')


@test('field 31: a full disk wakes every waiter: ends in time with every worker setting')
def _():
    root = mkimg.Dir({'f%03d' % n: mkimg.Runs([(n % 250 + 1, 64)]) for n in range(200)})
    picture = save(mkimg.build(root))
    with tools.tmpfs('3m') as where:
        for workers in SETTINGS:
            target = os.path.join(where, 'x')
            result = expect(fsck('--extract=' + target, '--workers=' + workers, picture), 8,
                            r'(?i)no space')
            check(result.seconds < 10, result)
            for name in os.listdir(target):
                is_(os.stat(os.path.join(target, name)).st_size, 64 * 4096, name)
            tree.remove(target)


@test('field 33: threads that cannot be made: fewer workers, same result')
def _():
    picture, root = samples.plain()
    for count in (1, 2, 3):
        user = tools.as_user()
        os.chmod(picture, 0o644)
        # The limit counts all of the user's processes; this one has a user of its own.
        if not ROOT:
            raise Skip('needs root, for a user without other processes')
        user['user'] = 61000 + count
        target = fresh()
        expect(fsck('--extract=' + target, '--workers=8', picture, umask=0o022,
                    limits=[(resource.RLIMIT_NPROC, count)], **user), 0)
        wanted = tree.for_user(samples.picture(root), user['user'], user['user'], 0o022)
        samples.same(root, target, wanted)


@test('field 34: --stats states how many workers ran, from the CPUs that are allowed')
def _():
    picture, _ = samples.plain()
    result = expect(fsck('--stats', '--workers=percpu', picture), 0, r'(?i)workers')
    check(not result.out, result)
    one = {min(os.sched_getaffinity(0))}
    result = expect(fsck('--stats', '--workers=percpu', picture,
                         preexec=lambda: os.sched_setaffinity(0, one)), 0)
    check(re.search(r'(?i)workers.*\b1\b', result.text), result)


@test('field 35: 64 MiB of memory suffice for every codec')
def _():
    if tools.SLOW:
        raise Skip('sanitizers need address space')
    for name in ('data-lz4-64k', 'data-zstd-1m', 'data-deflate', 'data-lzma-64k', 'bigdir-zD'):
        picture = tools.corpus('good', name + '.erofs')
        result = expect(fsck('--workers=2', '--stats=json', picture), 0)
        expect(fsck('--workers=2', '--max-memory=32M', picture), 0)
        expect(fsck('--workers=2', '--extract=' + fresh(), picture), 0)
        peak = json.loads(result.text)['engine']['peak_resident']
        check(peak < 64 << 20, 'peak %d MiB' % (peak >> 20), name)


@test('field 36: 64 workers on a few CPUs: bounded memory, same result')
def _():
    root = mkimg.Dir({'f%03d' % n: mkimg.Runs([(n % 250 + 1, 128)]) for n in range(300)})
    picture = save(mkimg.build(root))
    target = fresh()
    result = expect(fsck('--extract=' + target, '--workers=64', picture), 0)
    samples.same(root, target, owner=ROOT)
    tree.remove(target)
    check(tools.SLOW or result.rss < 200 << 20, 'peak %d MiB' % (result.rss >> 20))


@test('field 37: no threads for --help and for a plain check of a tiny image')
def _():
    for words in (['--help'], ['-V'], []):
        result, threads = peak_threads(words, samples.plain()[0])
        check(tools.SLOW or threads <= 1, '%d threads' % threads, result)


@test('field 32, 27: 20 runs of a mixed image with 8 workers and progress on: one result')
def _():
    root = mkimg.Dir({'d%d' % d: mkimg.Dir({'f%02d' % n: mkimg.Runs([(n + 1, 1 + n)])
                                            if n % 2 else mkimg.File(b'%d' % n)
                                            for n in range(40)}) for d in range(10)})
    picture = save(mkimg.build(root))
    wanted = samples.picture(root)
    for _ in range(4 if tools.SLOW else 20):
        target = fresh()
        expect(fsck('--extract=' + target, '--workers=8', '--progress', picture), 0)
        samples.same(root, target, wanted, owner=ROOT)
        tree.remove(target)


@test('field 39: unaligned encoded pclusters share blocks: 48-bit zstd, 8 workers')
def _():
    files = {'f%03d' % n: b'%d %d\n' % (n, n * n) * (300 + 7 * n) for n in range(150)}
    picture = mkfs(folder_of(files), '-E48bit', '-zzstd')
    for _ in range(3):
        target = fresh()
        expect(fsck('--extract=' + target, '--workers=8', picture), 0, silent=True)
        for name, data in files.items():
            with open(os.path.join(target, name), 'rb') as file:
                check(file.read() == data, name)
        tree.remove(target)


@test('field 53: 30 passes over LZ4 give equal bytes')
def _():
    picture = tools.corpus('good', 'data-lz4-64k.erofs')
    wanted = tree.manifest(picture[:-6] + '.mtree')
    digests = {p: e.digest for p, e in wanted.items()}
    for _ in range(3 if tools.SLOW else 30):
        target = fresh()
        expect(fsck('--extract=' + target, '--workers=percpu', picture), 0)
        is_({p: e.digest for p, e in tree.read(target, xattrs=False).items()}, digests, 'digests')
        tree.remove(target)


@test('several runs at once do not disturb one another')
def _():
    picture, root = samples.plain()
    wanted = samples.picture(root)
    faults = []

    def one():
        try:
            target = fresh()
            expect(fsck('--extract=' + target, '--workers=percpu', picture), 0)
            samples.same(root, target, wanted, owner=ROOT, mode=ROOT)
        except Exception as why:
            faults.append(why)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not faults, *faults[:2])


main()
