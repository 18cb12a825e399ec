#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""engine.md, rules A2, A3, A10, B2 to B5, E4, F1, F2 as seen from outside: --stats, --page-policy, limits."""
import json
import os
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
from tools import FSCK, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')
POLICIES = (['--page-policy=caching'], ['--page-policy=kernel'], ['--reserved-pages=64'],
            ['--reserved-pages=20', '--page-policy=caching'], ['--reserved-pages=3'])


def lz4():
    return tools.corpus('good', 'data-lz4-64k.erofs')


def large():
    """LZ4 of 16 MiB in an image that is worth threads: noise beside it makes it 2 MiB."""
    root = mkimg.Dir({'noise': mkimg.File(os.urandom(2 << 20), inline=False)})
    root.entries.update({'f%03d' % n: mkimg.Runs([(n + 1, 16)]) for n in range(250)})
    return save(mkimg.build(root)), root


def engine(result):
    text = result.text
    return json.loads(text[text.index('{"engine"'):])['engine']


@test('F1, F2: both tables and the totals, on stderr')
def _():
    result = expect(fsck('--stats', '--workers=percpu', lz4()), 0)
    for pattern in (r'scheduling latency \(us\): +wake-up +run-queue delay +queue wait', r'  average ',
                    r'  median ', r'  minimum ', r'  maximum ', r'  standard deviation ', r'  p99 ',
                    r'  count ', r'  total ', r'page allocation \(us\): +count +total +average +maximum',
                    r'  pagepool ', r'  reserved ', r'  system ', r'  failed ', r'workers: \d+, percpu'):
        check(re.search(pattern, result.text), pattern, result)
    samples.form_fault(result)
    is_(result.out, b'', 'stdout')


@test('F1: --stats=json is one object with the same figures')
def _():
    for words in ([], ['--workers=percpu'], ['--workers=1'], ['--extract=' + fresh()]):
        e = engine(expect(fsck('--stats=json', *words, large()[0]), 0))
        for key in ('wake_ns', 'queue_ns'):
            is_(sorted(e[key]), ['average', 'count', 'deviation', 'max', 'median', 'min', 'p99', 'total'], key)
        check(e['queue_ns']['count'] == e['batches'], e)
        check(e['wall_ns'] > 0 and e['peak_resident'] > 0, e)


@test('--stats=FILE shows the difference to an earlier run; another file is named')
def _():
    first = expect(fsck('--stats=json', '--workers=percpu', lz4()), 0)
    result = expect(fsck('--stats=' + save(first.err), '--workers=percpu', lz4()), 0, r'queue wait +diff')
    samples.form_fault(result)
    other = save(b'no figures')
    expect(fsck('--stats=' + other, lz4()), 0, re.escape(other))


@test('B4: every policy gives the same verdict, report and figures of the image')
def _():
    picture, _ = samples.damaged(('f02', 'f19'))
    for path, status in ((lz4(), 0), (large()[0], 0), (picture, 4)):
        seen = set()
        for words in POLICIES:
            for workers in tools.WORKERS:
                result = expect(fsck(*words, '--workers=' + workers, path), status)
                seen.add(result.text)
        is_(len(seen), 1, 'reports of %s: %s' % (path, seen))


@test('B4: --reserved-pages selects the kernel policy, and it is said')
def _():
    is_(engine(fsck('--stats=json', lz4()))['policy'], 'caching', 'default')
    is_(engine(fsck('--stats=json', '--reserved-pages=8', lz4()))['policy'], 'kernel', 'reserved')
    is_(engine(fsck('--stats=json', '--reserved-pages=8', '--page-policy=caching', lz4()))['policy'],
        'caching', 'named')
    expect(fsck('--page-policy=magic', lz4()), 16, 'magic')


@test('B1, B5: the reserved pool serves what it can, the system the rest, and each is counted')
def _():
    picture, _ = large()
    full = engine(fsck('--stats=json', '--reserved-pages=64', '--workers=1', picture))
    none = engine(fsck('--stats=json', '--page-policy=kernel', '--workers=1', picture))
    some = engine(fsck('--stats=json', '--reserved-pages=3', '--workers=1', picture))
    check(full['pages_reserved_ns']['count'] > 0 and full['pages_system_ns']['count'] == 0, full)
    check(none['pages_reserved_ns']['count'] == 0 and none['pages_system_ns']['count'] > 0, none)
    check(some['pages_reserved_ns']['count'] > 0 and some['pages_system_ns']['count'] > 0, some)
    is_(some['reserved']['lowest'], 0, 'lowest fill of 3 pages')
    for e in (full, none, some):
        is_(e['pages_failed_ns']['count'], 0, 'failed')


@test('B3: the pool is full again after success, damage and cancellation')
def _():
    picture, _ = samples.damaged(('f02', 'f19'))

    def during(process):
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGTERM)

    for path, more in ((large()[0], {}), (picture, {}), (samples.long_run()[0], {'during': during})):
        for workers in tools.WORKERS:
            e = engine(fsck('--stats=json', '--reserved-pages=64', '--workers=' + workers, path, **more))
            is_((e['reserved']['pages'], e['reserved']['final']), (64, 64), path)


@test('B2: reserved pages that cannot be locked are said to be so; the run is the same')
def _():
    result = fsck('--stats', '--reserved-pages=64', lz4(), limits=[(resource.RLIMIT_MEMLOCK, 0)],
                  **(tools.as_user() if tools.ROOT else {}))
    if result.status == 8:
        os.chmod(lz4(), 0o644)
    check(re.search(r'locked: (no, because|yes)', result.text), result)


@test('A2: percpu-hipri without the right: one warning, the same result')
def _():
    picture, _ = large()
    os.chmod(picture, 0o644)
    result = expect(fsck('--workers=percpu-hipri', picture, limits=[(resource.RLIMIT_RTPRIO, 0),
                                                                  (resource.RLIMIT_NICE, 0)],
                         **tools.as_user()), 0)
    lines = [l for l in result.text.splitlines() if 'priority' in l]
    is_(len(lines), 1, 'warnings: %s' % result)


@test('A2: percpu-hipri on one CPU beside four busy loops ends, and leaves no thread behind')
def _():
    picture, root = large()
    one = {min(os.sched_getaffinity(0))}
    loops = [subprocess.Popen(['sh', '-c', 'while :; do :; done'],
                              preexec_fn=lambda: os.sched_setaffinity(0, one)) for _ in range(4)]
    try:
        for words in (['--extract'], ['--extract=' + fresh()]):
            expect(fsck(*words, '--workers=percpu-hipri', picture, timeout=60,
                        preexec=lambda: os.sched_setaffinity(0, one)), 0)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@test('A6: taskset -ap during a run: it ends with the same result')
def _():
    picture, _ = samples.long_run()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip('needs two CPUs')

    def during(process):
        until = time.monotonic() + 1
        turn = 0
        while time.monotonic() < until:
            turn += 1
            try:
                for tid in os.listdir('/proc/%d/task' % process.pid):
                    os.sched_setaffinity(int(tid), {cpus[turn % 2]} if turn % 3 else set(cpus))
            except OSError:
                pass
            time.sleep(0.01)

    expect(fsck('--workers=percpu', picture, during=during, timeout=120), 0)


def v1_group(kind, **settings):
    """A fresh cgroup of version 1 with these settings; (folder, function that enters it)."""
    top = '/sys/fs/cgroup/' + kind
    path = os.path.join(top, 'erofs-test-%d' % os.getpid())
    if not os.path.exists(os.path.join(top, 'cgroup.procs')):
        raise Skip('no %s cgroup of version 1' % kind)
    try:
        os.mkdir(path)
        for key, value in settings.items():
            with open(os.path.join(path, '%s.%s' % (kind, key)), 'w') as out:
                out.write(value)
    except OSError as why:
        if os.path.isdir(path):
            os.rmdir(path)
        raise Skip('no %s cgroup can be made: %s' % (kind, why))

    def enter():
        with open(os.path.join(path, 'cgroup.procs'), 'w') as out:
            out.write(str(os.getpid()))

    return path, enter


def leave(path):
    time.sleep(0.1)
    try:
        os.rmdir(path)
    except OSError:
        pass


@test('A2: a cgroup without a real-time budget: one warning, the same result')
def _():
    tools.need_root()
    path, enter = v1_group('cpu')
    try:
        result = expect(fsck('--workers=percpu-hipri', large()[0], preexec=enter), 0)
        budget = os.path.join(path, 'cpu.rt_runtime_us')
        if not os.path.exists(budget):
            raise Skip('this kernel has no real-time budgets of groups')
        is_(len([l for l in result.text.splitlines() if 'priority' in l]), 1, 'warnings: %s' % result)
    finally:
        leave(path)


@test('A6: a cpuset that shrinks and grows under load: the run ends with the same result')
def _():
    tools.need_root()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip('needs two CPUs')
    both = '%d,%d' % tuple(cpus[:2])
    path, enter = v1_group('cpuset', cpus=both, mems='0')

    def during(process):
        until = time.monotonic() + 1.5
        turn = 0
        while time.monotonic() < until:
            turn += 1
            try:
                with open(os.path.join(path, 'cpuset.cpus'), 'w') as out:
                    out.write(both if turn % 2 else str(cpus[turn // 2 % 2]))
            except OSError:
                pass
            time.sleep(0.02)

    try:
        for mode in ('percpu', 'percpu-hipri'):
            expect(fsck('--workers=' + mode, samples.long_run()[0], preexec=enter, during=during, timeout=120), 0)
    finally:
        leave(path)


@test('A10: a limit that is too small for all workers: fewer run, and it is said; too small for one: 8')
def _():
    picture, _ = large()
    result = expect(fsck('--workers=8', '--max-memory=12M', picture), 0, r'room for \d of 8 workers')
    is_(len(result.text.splitlines()), 1, 'lines')
    expect(fsck('--workers=2', '--max-memory=1M', picture), 8, r'5120 KiB are needed')


def big_tree():
    """A folder of 60,000 names, a file that decodes 250 times larger, a hole of 1 TiB."""
    names = {'n%06d' % n: mkimg.File(b'') for n in range(200)}
    many = mkimg.File(b'x')
    root = mkimg.Dir({'many': mkimg.Dir({'%05d' % n: many for n in range(60000)}),
                      'few': mkimg.Dir(names),
                      'bomb': mkimg.Runs([(65, 250)] * 64)})
    return save(mkimg.build(root)), root


@test('A10, E5: bounded memory: many names, data that decodes 250 times larger, a hole of 1 TiB')
def _():
    picture, _ = big_tree()
    for path in (picture, tools.corpus('bad', 'bomb-hole-1t.erofs')):
        for words in (['--extract'], ['--extract=' + fresh()]):
            e = engine(expect(fsck('--stats=json', '--workers=2', *words, path), 0))
            check(tools.SLOW or e['peak_resident'] < 64 << 20, '%d MiB' % (e['peak_resident'] >> 20), path)


@test('A10: works within 256 MiB of address space')
def _():
    if tools.SLOW:
        raise Skip('sanitizers need address space')
    for path in (big_tree()[0], lz4(), tools.corpus('good', 'data-lzma-1m.erofs'),
                 tools.corpus('good', 'data-zstd-1m.erofs'), tools.corpus('good', 'big-lz4-1m.erofs')):
        for words in (['--extract'], ['--extract=' + fresh()], ['--extract', '--reserved-pages=64']):
            expect(fsck('--workers=2', *words, path, limits=[(resource.RLIMIT_AS, 256 << 20)]), 0, silent=True)


@test('A10: works in a memory cgroup of 64 MiB, every healthy image')
def _():
    tools.need_root()
    if tools.SLOW:
        raise Skip('sanitizers need memory')
    group, limit = None, None
    for top, file in (('/sys/fs/cgroup/memory', 'memory.limit_in_bytes'), ('/sys/fs/cgroup', 'memory.max')):
        path = os.path.join(top, 'erofs-test-%d' % os.getpid())
        try:
            os.mkdir(path)
            with open(os.path.join(path, file), 'w') as out:
                out.write(str(64 << 20))
            group = path
            break
        except OSError:
            if os.path.isdir(path):
                os.rmdir(path)
    if not group:
        raise Skip('no memory cgroup can be made')

    def enter():
        with open(os.path.join(group, 'cgroup.procs'), 'w') as out:
            out.write(str(os.getpid()))

    try:
        folder = tools.corpus('good')
        for name in sorted(n for n in os.listdir(folder) if n.endswith('.erofs'))[::tools.SAMPLE]:
            if name in ('kinds-offset.erofs', 'merged.erofs') or 'blob' in name or 'tar-index' in name:
                continue
            expect(fsck('--workers=2', os.path.join(folder, name), preexec=enter), 0)
        expect(fsck('--workers=2', big_tree()[0], preexec=enter), 0)
    finally:
        time.sleep(0.1)
        try:
            os.rmdir(group)
        except OSError:
            pass


@test('E5: the number of directories is not bounded by memory, in the check and in extraction')
def _():
    picture = save(mkimg.build(mkimg.Dir({
        '%03d' % a: mkimg.Dir({'%03d' % b: mkimg.Dir() for b in range(300)}) for a in range(200)})))
    for workers in ('1', '2'):
        words = ('--workers=' + workers, '--max-memory=5M')
        expect(fsck(*words, picture), 0)
        target = fresh()
        expect(fsck('--extract=' + target, *words, picture), 0)
        is_(sum(len(folders) for _, folders, _ in os.walk(target)), 60200, 'directories')


@test('E4: the same report and figures of the image for every number of workers and limit of memory')
def _():
    picture, _ = big_tree()
    texts = set()
    for workers in ('1', '2', '7', 'percpu', 'unbound'):
        for limit in ('64M', '8M'):
            result = fsck('-p', '--workers=' + workers, '--max-memory=' + limit, picture)
            texts.add('\n'.join(l for l in result.text.splitlines() if 'room for' not in l))
    is_(len(texts), 1, 'reports: %s' % texts)


main()
