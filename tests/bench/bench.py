#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of the data check and of extraction, as ratios against a released fsck.erofs.

    bench.py --fsck OURS --peer PEER [--rounds N] [--target DIR] IMAGE...

All runs of one image are interleaved in one loop; medians are compared. A run of the peer counts only
if its status is 0 and, when extracting, as many entries came out as of ours. Prints one table; never
passes or fails.
"""
import argparse
import os
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def peak_kib(pid):
    """VmHWM: rusage would count this interpreter, which the process was before its exec."""
    try:
        with open('/proc/%d/status' % pid) as file:
            return int(re.search(r'VmHWM:\s*(\d+)', file.read())[1])
    except (OSError, TypeError):
        return 0


def run(argv):
    """Return (seconds, status, peak RSS in KiB, looked at every 5 ms) of one command."""
    begin = time.monotonic()
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    peak = 0
    watcher = select.poll()
    handle = os.pidfd_open(process.pid)
    watcher.register(handle, select.POLLIN)
    while not watcher.poll(5):
        peak = max(peak, peak_kib(process.pid))
    seconds = time.monotonic() - begin
    process.wait()
    os.close(handle)
    return seconds, process.returncode, peak


def count_entries(path):
    return sum(len(folders) + len(files) for _, folders, files in os.walk(path))


def measure(commands, rounds, target):
    """Interleave the commands; return name -> list of (seconds, status, rss, entries)."""
    results = {name: [] for name in commands}
    for _ in range(rounds):
        for name, argv in commands.items():
            folder = tempfile.mkdtemp(dir=target)
            argv = [word.replace('@DIR@', folder + '/x') for word in argv]
            seconds, status, rss = run(argv)
            entries = count_entries(folder) if 'extract' in name else 0
            shutil.rmtree(folder)
            results[name].append((seconds, status, rss, entries))
    return results


def report(image, results, pairs):
    for ours, theirs in pairs:
        mine, peer = results[ours], results[theirs]
        a = statistics.median(r[0] for r in mine)
        b = statistics.median(r[0] for r in peer)
        note = ''
        if any(r[1] for r in mine):
            note += ' OURS FAILED: status %s' % {r[1] for r in mine}
        if any(r[1] for r in peer):
            note += ' peer failed: status %s, ratio void' % {r[1] for r in peer}
        if mine[0][3] != peer[0][3]:
            note += ' entries %d against %d' % (mine[0][3], peer[0][3])
        print('%-24s %-22s %8.3f s  peer %8.3f s  ratio %.3f  RSS %6.1f MiB (peer %6.1f)%s' % (
            os.path.basename(image), ours, a, b, a / b, max(r[2] for r in mine) / 1024,
            max(r[2] for r in peer) / 1024, note), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--fsck', required=True)
    parser.add_argument('--peer', required=True)
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--target', default=os.environ.get('TMPDIR', '/tmp'), help='a folder on tmpfs')
    parser.add_argument('--workers', default='percpu')
    parser.add_argument('images', nargs='+')
    args = parser.parse_args()
    version = subprocess.run([args.peer, '-V'], capture_output=True, text=True).stdout.split('\n')[0]
    print('peer: %s; %d rounds, interleaved, medians; CPUs: %d' % (version, args.rounds,
                                                                 len(os.sched_getaffinity(0))))
    for image in args.images:
        workers = '--workers=' + args.workers
        with open(image, 'rb') as file:     # hot cache
            while file.read(1 << 20):
                pass
        commands = {
            'check': [args.fsck, workers, image],
            'check 1 worker': [args.fsck, '--workers=1', image],
            'peer check': [args.peer, '--extract', image],
            'extract': [args.fsck, workers, '--extract=@DIR@', image],
            'extract 1 worker': [args.fsck, '--workers=1', '--extract=@DIR@', image],
            'peer extract': [args.peer, '--extract=@DIR@', image],
        }
        results = measure(commands, args.rounds, args.target)
        report(image, results, [('check', 'peer check'), ('check 1 worker', 'peer check'),
                                ('extract', 'peer extract'), ('extract 1 worker', 'peer extract')])


if __name__ == '__main__':
    sys.exit(main())
