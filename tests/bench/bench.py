#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmark (engine.md F3, F4): figures as ratios, all sides interleaved in one run, medians.

    bench.py --build DIR --peer DIR --keep DIR [--rounds N] [--parts WORD,...] IMAGE...

Parts: check, extract, verify, dump, mkfs, small, latency, pages, scale. Prints text; writes results.txt and chart.svg to
the folder --keep. Never passes or fails; what this machine cannot do is "not measured: REASON".
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chart  # noqa: E402
from measure import Run, fault, interleave, median, run  # noqa: E402

ROWS = []       # of the chart


class Bench:
    def __init__(self, args):
        self.args = args
        self.fsck = os.path.join(args.build, 'fsck', 'fsck.erofs')
        self.peer = os.path.join(args.peer, 'fsck.erofs')
        self.mkfs = os.path.join(args.peer, 'mkfs.erofs')
        self.lines = open(os.path.join(args.keep, 'results.txt'), 'w', encoding='utf-8')
        self.cpus = len(os.sched_getaffinity(0))

    def say(self, text=''):
        print(text, flush=True)
        self.lines.write(text + '\n')
        self.lines.flush()

    def ratio(self, label, mine, theirs, limit=None, unit='s'):
        """One line: median of ours, of theirs, ratio of times."""
        why = fault(mine) or fault(theirs)
        entries = {r.entries for r in mine + theirs}
        if not why and len(entries) > 1:
            why = 'entries differ: %s' % sorted(entries)
        a, b = median(mine), median(theirs)
        rss = max(r.rss for r in mine) / 1024
        goal = '' if limit is None else '  goal %.2f %s' % (limit, 'reached' if a / b <= limit else 'MISSED')
        self.say('  %-58s %9.4f %s  against %9.4f %s  ratio %.3f%s%s%s' % (
            label, a, unit, b, unit, a / b, goal, '  RSS %.1f MiB' % rss if rss else '',
            '  VOID: ' + why if why else ''))
        if not why:
            ROWS.append((label, a / b, limit))


def warm(path):
    with open(path, 'rb') as file:
        while file.read(1 << 20):
            pass


def two_seconds(b, program, path):
    """What the small program prints of itself: two numbers of seconds."""
    result = run([os.path.join(b.args.build, 'tests/bench', program), path], catch=True)
    parts = result.out.split()
    if result.status or len(parts) != 2:
        return Run(1e9, result.status or 1, 0, ''), Run(1e9, 1, 0, '')
    return Run(float(parts[0]), 0, 0, ''), Run(float(parts[1]), 0, 0, '')


def bare(b, image):
    """Seconds of the bare decoder, with reads and from memory."""
    return two_seconds(b, 'bare', image)


def mounted(image, words, count_mount):
    """Run a command, @MOUNT@ in it: a fresh kernel mount of the image, whose time may count."""
    where = tempfile.mkdtemp()
    begin = time.monotonic()
    if subprocess.run(['mount', '-t', 'erofs', '-o', 'loop,ro', image, where], capture_output=True).returncode:
        os.rmdir(where)
        return Run(1e9, 1, 0, '')
    try:
        begin = begin if count_mount else time.monotonic()
        done = subprocess.run([w.replace('@MOUNT@', where) for w in words], capture_output=True)
        return Run(time.monotonic() - begin, done.returncode, 0, '')
    finally:
        subprocess.run(['umount', where], check=False)
        os.rmdir(where)


def mount_read(image, cpus):
    """Read all files of a fresh kernel mount with as many processes as CPUs."""
    return mounted(image, ['sh', '-c', 'find "$0" -type f -print0 | xargs -0 -P %d -n 256 cat >/dev/null' % cpus,
                           '@MOUNT@'], False)


def peer_words(b):
    """Loader and library path of the peer's wrapper, or None."""
    words = subprocess.run(['sed', '-n', r"s/^exec '\(.*\)' --library-path '\(.*\)' '\(.*\)' .*/\1\n\2\n\3/p", b.peer],
                           capture_output=True, text=True).stdout.split('\n')
    return words[:3] if len(words) > 2 else None


def part_check(b):
    b.say('data check: whole runs of fsck.erofs')
    for image in b.args.images:
        name = os.path.basename(image)[:-6]
        codec_bound = 'zstd' in name or 'lzma' in name
        warm(image)
        bares = []

        def run_bare(image=image, bares=bares):
            both = bare(b, image)
            bares.append(both[1])
            return both[0]

        commands = {
            'percpu': [b.fsck, '--workers=percpu', image],
            'one': [b.fsck, '--workers=1', image],
            'peer': [b.peer, '--extract', image],
            'bare': run_bare,
        }
        if not codec_bound:
            commands['reserved'] = [b.fsck, '--workers=percpu', '--reserved-pages=64', image]
            commands['kernel'] = [b.fsck, '--workers=percpu', '--page-policy=kernel', image]
        words = peer_words(b)
        if codec_bound and words:
            commands['libs'] = [words[0], '--library-path', words[1], b.fsck, '--workers=percpu', image]
        if os.geteuid() == 0:
            commands['mount'] = lambda image=image: mount_read(image, b.cpus)
        rounds = max(3, b.args.rounds // 2) if codec_bound else b.args.rounds
        r = interleave(commands, rounds)
        b.ratio('%s: check / peer check' % name, r['percpu'], r['peer'], 0.55)
        b.ratio('%s: bare decoder / check' % name, r['bare'], r['percpu'])
        b.say('  %-58s %.3f  goal %.2f %s; against the bare decoder from memory %.3f' % (
            '%s: throughput against the bare decoder' % name, median(r['bare']) / median(r['percpu']),
            0.95 if codec_bound else 0.90,
            'reached' if median(r['bare']) / median(r['percpu']) >= (0.95 if codec_bound else 0.90) else 'MISSED',
            median(bares) / median(r['percpu'])))
        b.ratio('%s: check with 2 workers / with 1 (1/1.85 = 0.541)' % name, r['percpu'], r['one'], 0.541)
        if 'reserved' in r:
            b.ratio('%s: check --reserved-pages=64 / default' % name, r['reserved'], r['percpu'], 1.15)
            b.ratio('%s: check --page-policy=kernel without pages / default' % name, r['kernel'], r['percpu'])
        if 'libs' in r:
            b.ratio("%s: check with the peer's codec libraries / peer check" % name, r['libs'], r['peer'], 0.55)
        if 'mount' in r:
            b.ratio('%s: check / reading a kernel mount' % name, r['percpu'], r['mount'])


def make_squash(b, image, tree):
    """A squashfs of the tree with the image's codec, if mksquashfs is here and knows it."""
    name = os.path.basename(image)[:-6]
    codec = next((c for c in ('lz4', 'zstd') if c in name), None)
    # one image of a codec and tree is enough, and xz takes minutes to make
    if not tree or not codec or name not in ('linux-lz4-4k', 'linux-zstd-64k', 'usr-lz4-4k') or not shutil.which('mksquashfs') or not shutil.which('unsquashfs'):
        return None
    path = image[:-6] + '.squashfs'
    if not os.path.exists(path):
        words = ['-comp', 'xz' if codec == 'lzma' else codec, '-quiet', '-no-progress', '-noappend']
        if subprocess.run(['mksquashfs', tree, path + '.part', *words], capture_output=True).returncode:
            return None
        os.rename(path + '.part', path)
    return path


def part_extract(b):
    b.say('extraction to %s' % b.args.target)
    for image in b.args.images:
        name = os.path.basename(image)[:-6]
        tree = os.path.realpath(image[:-6] + '.tree') if os.path.exists(image[:-6] + '.tree') else None
        squash = make_squash(b, image, tree)
        warm(image)
        commands = {
            'percpu': [b.fsck, '--workers=percpu', '--extract=@DIR@', image],
            'one': [b.fsck, '--workers=1', '--extract=@DIR@', image],
            'peer': [b.peer, '--extract=@DIR@', image],
        }
        if squash:
            warm(squash)
            commands['unsquashfs'] = ['unsquashfs', '-no-progress', '-quiet', '-processors', str(b.cpus), '-d',
                                      '@DIR@', squash]
        r = interleave(commands, max(3, b.args.rounds // 2), b.args.target)
        b.ratio('%s: extract / peer extract' % name, r['percpu'], r['peer'], 0.45 if 'linux' in name else 0.60)
        b.ratio('%s: extract with 2 workers / with 1' % name, r['percpu'], r['one'])
        if squash:
            b.ratio('%s: extract / unsquashfs' % name, r['percpu'], r['unsquashfs'], 0.60)
        else:
            b.say('  %-58s not measured (one image of a codec is; needs mksquashfs)' % (name + ': unsquashfs'))


def part_small(b):
    folder = tempfile.mkdtemp()
    image = os.path.join(folder, 'small.erofs')
    with open(os.path.join(folder, 'file'), 'w') as file:
        file.write('hello\n')
    os.mkdir(os.path.join(folder, 'tree'))
    os.rename(os.path.join(folder, 'file'), os.path.join(folder, 'tree', 'file'))
    subprocess.run([b.mkfs, '--quiet', image, os.path.join(folder, 'tree')], check=True)
    b.say('an image of %d bytes, start to end' % os.path.getsize(image))
    # the peer's wrapper starts a shell first: run what it runs
    words = peer_words(b)
    peer = [words[0], '--library-path', words[1], words[2]] if words else [b.peer]
    r = interleave({'ours': [b.fsck, '--extract', image], 'peer': peer + ['--extract', image],
                    'plain': [b.fsck, image], 'peer plain': peer + [image]}, 200, watch=False)
    b.ratio('4 KiB image: check --extract / peer', r['ours'], r['peer'], 1.0)
    b.ratio('4 KiB image: plain check / peer', r['plain'], r['peer plain'], 1.0)
    shutil.rmtree(folder)


def bare_read(b, tree):
    """Seconds of a bare parallel read of a tree, and of the SHA-256 of its blocks from memory."""
    return two_seconds(b, 'bare_read', tree)


def mount_diff(image, tree):
    """Mount, and diff -r with the tree."""
    return mounted(image, ['diff', '-r', '--no-dereference', '@MOUNT@', tree], True)


def verity_manifest(b, image):
    """A manifest with fs-verity digests alone, or None: dump.erofs cannot write one."""
    path = image[:-6] + '.fsverity.mtree'
    if os.path.exists(path):
        return path
    done = run([os.path.join(b.args.build, 'dump', 'dump.erofs'), '--to-mtree=' + path + '.part', '--mtree-xattrs', image])
    if done.status:
        return None
    with open(path + '.part', 'rb') as whole, open(path, 'wb') as file:
        for line in whole:
            words = line.rstrip(b'\n').split(b' ')
            file.write(b' '.join(w for w in words if not w.startswith(b'sha256digest=')) + b'\n')
    os.unlink(path + '.part')
    return path


def sum_ratio(b, label, mine, parts, limit):
    """One line: ours against the sum of the medians of several."""
    why = fault(mine) or next(filter(None, map(fault, parts)), '')
    total = sum(median(p) for p in parts)
    ratio = median(mine) / total
    b.say('  %-58s %9.4f s  against %9.4f s  ratio %.3f  goal %.2f %s  RSS %.1f MiB%s' % (
        label, median(mine), total, ratio, limit, 'reached' if ratio <= limit else 'MISSED',
        max(r.rss for r in mine) / 1024, '  VOID: ' + why if why else ''))
    if not why:
        ROWS.append((label, ratio, limit))


def part_verify(b):
    b.say('fsck.erofs --verify: against the tree, and against a manifest with fs-verity digests')
    for image in b.args.images:
        name, tree = os.path.basename(image)[:-6], os.path.realpath(image[:-6] + '.tree')
        if not os.path.isdir(tree):
            b.say('  %-58s not measured: no folder or link %s.tree' % (name, name))
            continue
        warm(image)
        hashes = []

        def run_read(tree=tree, hashes=hashes):
            both = bare_read(b, tree)
            hashes.append(both[1])
            return both[0]

        run_read()
        hashes.clear()
        commands = {
            'dir': [b.fsck, '--workers=percpu', '--verify=dir:' + tree, image],
            'check': [b.fsck, '--workers=percpu', image],
            'read': run_read,
        }
        manifest = verity_manifest(b, image)
        if manifest:
            commands['mtree'] = [b.fsck, '--workers=percpu', '--verify=mtree:' + manifest, image]
        if os.geteuid() == 0:
            commands['diff'] = lambda image=image, tree=tree: mount_diff(image, tree)
        r = interleave(commands, b.args.rounds)
        if 'diff' in r:
            b.ratio('%s: verify / mount and diff -r' % name, r['dir'], r['diff'], 0.5)
        sum_ratio(b, '%s: verify / data check and bare read' % name, r['dir'], [r['check'], r['read']], 1.3)
        if manifest:
            sum_ratio(b, '%s: verify fs-verity / data check and bare SHA-256' % name, r['mtree'],
                      [r['check'], hashes], 1.15)
        else:
            b.say('  %-58s not measured: dump.erofs has no --to-mtree' % name)


def tree_of(image):
    tree = os.path.realpath(image[:-6] + '.tree')
    return tree if os.path.isdir(tree) else None


def mount_tar(image):
    """What one does without --to-tar: mount, tar. A pipe, since tar reads nothing for /dev/null."""
    return mounted(image, ['sh', '-c', 'tar -C "$0" -cf - . | cat >/dev/null', '@MOUNT@'], True)


def part_dump(b):
    b.say('dump.erofs: streams, extraction, listings')
    dump = os.path.join(b.args.build, 'dump', 'dump.erofs')
    for image in b.args.images:
        name = os.path.basename(image)[:-6]
        squash = make_squash(b, image, tree_of(image))
        warm(image)
        commands = {
            'tar': [dump, '--to-tar=-', image],
            'mtree': [dump, '--to-mtree', image],
            'extract': [dump, '--workers=percpu', '--extract=@DIR@', image],
            'fsck': [b.fsck, '--workers=percpu', '--extract=@DIR@', image],
            'list': [dump, '--ls', '--recursive', image],
        }
        if os.geteuid() == 0:
            commands['mount'] = lambda image=image: mount_tar(image)
        if squash:
            commands['unsquashfs'] = ['unsquashfs', '-l', squash]
        r = interleave(commands, max(3, b.args.rounds // 2), b.args.target)
        if 'mount' in r:
            b.ratio('%s: --to-tar / mount and tar' % name, r['tar'], r['mount'], 0.5)
        b.ratio('%s: dump --extract / fsck --extract' % name, r['extract'], r['fsck'], 1.0)
        if squash:
            b.ratio('%s: --ls --recursive / unsquashfs -l' % name, r['list'], r['unsquashfs'], 0.3)
        b.say('  %-58s %9.4f s  RSS %.1f MiB' % ('%s: --to-mtree' % name, median(r['mtree']),
                                                max(x.rss for x in r['mtree']) / 1024))


MKFS_SETS = ['-zlz4', '-zlz4hc,9', '-zzstd,3', '-zlzma']
MKFS_WORDS = [[], ['-Eall-fragments,dedupe']]


def part_mkfs(b):
    b.say("mkfs.erofs against the peer's, with the peer's codec libraries; -C65536")
    words = peer_words(b)
    mine = [words[0], '--library-path', words[1]] if words else []
    mine.append(os.path.join(b.args.build, 'mkfs', 'mkfs.erofs'))
    out = tempfile.mkdtemp(dir=b.args.target)
    for tree in sorted({tree_of(i) for i in b.args.images} - {None}):
        for more in MKFS_WORDS:
            for codec in os.environ.get('CODECS', ' '.join(MKFS_SETS)).split():
                common = ['--quiet', '-T0', '-Uclear', codec, '-C65536', *more]
                images = [os.path.join(out, side) for side in ('mine', 'theirs')]
                # lzma takes minutes
                r = interleave({'mine': [*mine, *common, images[0], tree], 'theirs': [b.mkfs, *common, images[1], tree]},
                               1 if codec == '-zlzma' else max(3, b.args.rounds // 2))
                name = '%s %s' % (os.path.basename(tree), ' '.join([codec, *more]))
                b.ratio('%s: time' % name, r['mine'], r['theirs'], 0.9)
                sizes = [os.path.getsize(i) for i in images]
                b.say('  %-58s %d  against %d  ratio %.4f  goal 1.01 %s' % (
                    '%s: bytes' % name, *sizes, sizes[0] / sizes[1],
                    'reached' if sizes[0] <= 1.01 * sizes[1] else 'MISSED'))
    shutil.rmtree(out)


class Load:
    """Busy loops, so many per CPU, at normal priority."""

    def __init__(self, count):
        self.children = [subprocess.Popen(['sh', '-c', 'while :; do :; done']) for _ in range(count)]
        time.sleep(0.3)

    def end(self):
        for child in self.children:
            child.send_signal(signal.SIGKILL)
            child.wait()


def show_diff(new, old):
    return '%+.2f%%' % (100.0 * (new - old) / old) if old else ''


def part_latency(b):
    image = b.args.images[0]
    b.say('table 1: scheduling latency (us), 50 rounds of bursts of 64-256 KiB, four busy loops per CPU')
    load = Load(4 * b.cpus)
    try:
        result = run([os.path.join(b.args.build, 'tests/bench/latency'), image, '50'], catch=True)
        try:
            modes = json.loads(result.out)
        except ValueError:
            b.say('  not measured: %s' % result.out.strip())
            return
        b.say('  %-20s %12s %12s %10s %14s %10s' % ('', 'unbound', 'percpu', 'diff', 'percpu-hipri', 'diff'))
        for row, key in (('average', 'average'), ('median', 'median'), ('minimum', 'min'), ('maximum', 'max'),
                         ('standard deviation', 'deviation'), ('p99', 'p99'), ('run-queue delay', 'run_delay')):
            v = [modes[m][key] / 1e3 for m in ('unbound', 'percpu', 'percpu-hipri')]
            b.say('  %-20s %12.2f %12.2f %10s %14.2f %10s' % (row, v[0], v[1], show_diff(v[1], v[0]), v[2],
                                                          show_diff(v[2], v[0])))
        b.say('  %-20s %12d %12d %10s %14d' % ('count', modes['unbound']['count'], modes['percpu']['count'], '',
                                              modes['percpu-hipri']['count']))
        for key, goal in (('average', -95.0), ('max', -99.0)):
            diff = 100.0 * (modes['percpu-hipri'][key] / modes['unbound'][key] - 1)
            b.say('  percpu-hipri against unbound, %s: %.2f%%, goal %.0f%% %s' % (
                key, diff, goal, 'reached' if diff <= goal else 'MISSED'))
        r = interleave({m: [b.fsck, '--workers=' + m, image] for m in ('unbound', 'percpu', 'percpu-hipri')}, 5)
        for mode in ('percpu', 'percpu-hipri'):
            b.ratio('check under this load: %s / unbound' % mode, r[mode], r['unbound'])
    finally:
        load.end()


def memory_group(limit):
    """(folder, function that moves the calling process into it) of a new memory cgroup, or a reason."""
    name = 'erofs-bench-%d' % os.getpid()
    for top, file, value in (('/sys/fs/cgroup/memory', 'memory.limit_in_bytes', limit),
                             ('/sys/fs/cgroup', 'memory.max', limit)):
        path = os.path.join(top, name)
        try:
            os.mkdir(path)
            with open(os.path.join(path, file), 'w') as out:
                out.write(str(value))
        except OSError:
            if os.path.isdir(path):
                os.rmdir(path)
            continue
        return path, lambda: open(os.path.join(path, 'cgroup.procs'), 'w').write(str(os.getpid()))
    return None, 'no memory cgroup can be made here'


# Writes as fast as the kernel lets it: each page must be written out before it can be reclaimed. (Through a
# mapping there is no throttle, and the group runs out of memory.)
DIRTY = '''
import os, sys
block = b"d" * 65536
while True:
    with open(sys.argv[1], "wb", 0) as f:
        for _ in range(4096):
            f.write(block)
'''


def part_pages(b):
    image = b.args.images[0]
    b.say('table 2: page allocation under the kernel policy, in a memory cgroup with a writer of dirty pages')
    probe = run([b.fsck, '--page-policy=kernel', '--stats=json', image], catch=True)
    peak = json.loads(probe.out)['engine']['peak_resident']
    group, enter = memory_group(peak + (16 << 20))
    if not group:
        b.say('  not measured: %s' % enter)
        return
    scratch = tempfile.mkdtemp(dir=b.args.keep)
    writer = subprocess.Popen([sys.executable, '-c', DIRTY, os.path.join(scratch, 'dirty')], preexec_fn=enter)
    sums = {}
    try:
        time.sleep(1)
        for _ in range(5):
            for pages in (0, 64):
                result = run([b.fsck, '--workers=percpu-hipri', '--page-policy=kernel',
                              '--reserved-pages=%d' % pages, '--stats=json',
                              image], catch=True, preexec_fn=enter)
                engine = json.loads(result.out)['engine']
                total = sum(engine['pages_%s_ns' % s]['total'] for s in ('pagepool', 'reserved', 'system', 'failed'))
                count = sum(engine['pages_%s_ns' % s]['count'] for s in ('pagepool', 'reserved', 'system', 'failed'))
                sums.setdefault(pages, []).append((total, count, result.seconds, result.status))
    except ValueError:
        b.say('  not measured: status %d %s' % (result.status, result.out.strip()[:200]))
        return
    finally:
        writer.kill()
        writer.wait()
        shutil.rmtree(scratch)
        time.sleep(0.2)
        try:
            os.rmdir(group)
        except OSError:
            pass
    wrong = {s[3] for v in sums.values() for s in v if s[3]}
    if wrong:
        b.say('  VOID: status %s' % wrong)
    b.say('  %-32s %14s %14s %10s' % ('', 'w/o pool', 'w/ 64 pages', 'diff'))
    mid = {p: sorted(v)[len(v) // 2] for p, v in sums.items()}
    total = [mid[p][0] / 1e6 for p in (0, 64)]
    average = [mid[p][0] / mid[p][1] / 1e3 for p in (0, 64)]
    wall = [sorted(s[2] for s in sums[p])[len(sums[p]) // 2] for p in (0, 64)]
    b.say('  %-32s %14.2f %14.2f %10s' % ('total of a run (ms)', *total, show_diff(total[1], total[0])))
    b.say('  %-32s %14.3f %14.3f %10s' % ('average (us)', *average, show_diff(average[1], average[0])))
    b.say('  %-32s %14.3f %14.3f %10s' % ('wall time of the check (s)', *wall, show_diff(wall[1], wall[0])))
    diff = 100.0 * (total[1] / total[0] - 1)
    b.say('  page allocation time, 64 reserved pages against none: %.2f%%, goal -99.38%% %s (limit %d KiB)' % (
        diff, 'reached' if diff <= -99.38 else 'MISSED', (peak >> 10) + (16 << 10)))


def part_scale(b):
    b.say('cost per file')
    for count in (1000, 10000, 100000, 1000000):
        image = os.path.join(b.args.keep, 'files-%d.erofs' % count)
        if not os.path.exists(image):
            top = tempfile.mkdtemp(dir=b.args.target)
            for n in range(count):
                folder = os.path.join(top, '%04d' % (n // 500))
                if n % 500 == 0:
                    os.mkdir(folder)
                with open(os.path.join(folder, '%06d' % n), 'w') as file:
                    file.write('%d lines of text, %d\n' % (n, n * n) * (n % 60))
            subprocess.run([b.mkfs, '--quiet', '-zlz4', image, top], check=True)
            shutil.rmtree(top)
        warm(image)
        r = interleave({'check': [b.fsck, '--workers=percpu', image],
                        'extract': [b.fsck, '--workers=percpu', '--extract=@DIR@', image]},
                       3 if count > 100000 else 5, b.args.target)
        b.say('  %8d files: check %8.3f us a file, %.1f MiB; extract %8.3f us a file, %.1f MiB%s' % (
            count, median(r['check']) / count * 1e6, max(x.rss for x in r['check']) / 1024,
            median(r['extract']) / count * 1e6, max(x.rss for x in r['extract']) / 1024,
            fault(r['check'] + r['extract'])))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--build', required=True, help='folder with the built tools')
    parser.add_argument('--peer', required=True, help='folder with the released tools')
    parser.add_argument('--keep', required=True, help='folder for results')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--target', default='/dev/shm', help='where to extract to, a tmpfs')
    parser.add_argument('--parts', default='check,extract,verify,dump,mkfs,small,latency,pages,scale')
    parser.add_argument('images', nargs='+')
    b = Bench(parser.parse_args())
    version = subprocess.run([b.peer, '-V'], capture_output=True, text=True).stdout.split('\n')[0]
    b.say('ours: %s' % subprocess.run([b.fsck, '-V'], capture_output=True, text=True).stdout.split('\n')[2])
    b.say('peer: %s; %d rounds, interleaved, medians; %d CPUs' % (version, b.args.rounds, b.cpus))
    for part in b.args.parts.split(','):
        globals()['part_' + part](b)
        b.say()
    chart.draw(os.path.join(b.args.keep, 'chart.svg'), 'erofs-tools against others, %d CPUs' % b.cpus, ROWS)
    b.say('chart: chart.svg beside this text')


if __name__ == '__main__':
    sys.exit(main())
