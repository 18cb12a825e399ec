# SPDX-License-Identifier: GPL-2.0-or-later
"""Running commands one after another in turns, and what they took."""
import os
import random
import re
import select
import shutil
import statistics
import subprocess
import tempfile
import time


class Run:
    __slots__ = ('seconds', 'status', 'rss', 'entries', 'out')

    def __init__(self, seconds, status, rss, out):
        self.seconds, self.status, self.rss, self.out, self.entries = seconds, status, rss, out, 0


def peak_kib(pid):
    """VmHWM: rusage would count this interpreter, which the process was before its exec."""
    try:
        with open('/proc/%d/status' % pid) as file:
            return int(re.search(r'VmHWM:\s*(\d+)', file.read())[1])
    except (OSError, TypeError):
        return 0


def run(argv, catch=False, watch=True, **more):
    out = tempfile.TemporaryFile() if catch else subprocess.DEVNULL
    begin = time.monotonic()
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **more)
    peak = 0
    if watch:
        handle = os.pidfd_open(process.pid)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        while not poll.poll(5):
            peak = max(peak, peak_kib(process.pid))
        os.close(handle)
    else:
        process.wait()
    seconds = time.monotonic() - begin
    status = process.wait()
    text = ''
    if catch:
        out.seek(0)
        text = out.read().decode('utf-8', 'replace')
        out.close()
    return Run(seconds, status, peak, text)


def count_entries(path):
    return sum(len(folders) + len(files) for _, folders, files in os.walk(path))


def interleave(commands, rounds, target=None, watch=True):
    """name -> [Run]: every command once a round, in another order each time. @DIR@ in a command: a fresh folder below target."""
    results = {name: [] for name in commands}
    dice = random.Random(rounds)    # who comes behind whom changes: some leave the kernel with work to do
    for _ in range(rounds):
        for name, argv in dice.sample(list(commands.items()), len(commands)):
            if callable(argv):
                results[name].append(argv())
                continue
            folder = None
            if any('@DIR@' in word for word in argv):
                folder = tempfile.mkdtemp(dir=target)
                argv = [word.replace('@DIR@', folder + '/x') for word in argv]
            result = run(argv, watch=watch)
            if folder:
                result.entries = count_entries(folder)
                shutil.rmtree(folder)
            results[name].append(result)
    return results


def median(runs):
    return statistics.median(r.seconds for r in runs)


def fault(runs):
    """'' or why these figures do not count."""
    wrong = {r.status for r in runs if r.status}
    return 'status %s' % ' '.join(map(str, sorted(wrong))) if wrong else ''
