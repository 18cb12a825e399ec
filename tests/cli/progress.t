#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R16 and R22: progress, of all actions that may take long, on a terminal and off it.

Runs that write a stream are as slow as their reader here, so nothing depends on the machine's speed.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, fresh, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')
REMOVED = b'\r\x1b[K'
_big = []


def big():
    """One file of 64 MiB, and 3000 names whose list does not fit into a pipe."""
    if not _big:
        root = mkimg.Dir({'a%04d%s' % (n, 'x' * 60): mkimg.File(b'') for n in range(3000)})
        root.entries['big'] = mkimg.Runs([(n % 251, 240) for n in range(68)])
        _big.append(save(mkimg.build(root)))
    return _big[0]


CAT = ('--cat', '--path=/big')
STREAMS = {'--to-tar': ('--to-tar=-',), '--cat': CAT, '--ls --recursive': ('--ls', '--recursive')}


class Run:
    """A tool whose stderr is a terminal, or a pipe; stdout stands still for `hold` seconds."""

    def __init__(self, words, terminal=True, hold=1.6, out_terminal=False, during=None, width=0, tool=None):
        master, slave = pty.openpty() if terminal else os.pipe()
        if width:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, width, 0, 0))
        reader, writer = pty.openpty() if out_terminal else os.pipe()
        self.process = subprocess.Popen([*tools.INSTRUMENT, tool or DUMP, *words], stdout=writer, stderr=slave,
                                        stdin=subprocess.DEVNULL)
        os.close(slave)
        os.close(writer)
        self.err, self.times, self.out_bytes = b'', [], 0
        self.begun = time.monotonic()
        if during:
            during(self.process)
        self.follow(master, reader, hold)
        self.status = self.process.wait(60)

    def follow(self, master, reader, hold):
        fds = {master, reader}
        while fds:
            held = time.monotonic() < self.begun + hold and self.process.poll() is None
            ready, _, _ = select.select([fd for fd in fds if fd == master or not held], [], [], 0.05)
            for fd in ready:
                try:
                    data = os.read(fd, 65536)
                except OSError:
                    data = b''
                if not data:
                    fds.discard(fd)
                    os.close(fd)
                elif fd == master:
                    self.err += data
                    self.times += [time.monotonic()] * data.count(b'\x1b[K')
                else:
                    self.out_bytes += len(data)

    @property
    def shown(self):
        """The lines of progress on a terminal, without the one that removes them."""
        return [l.split(b'\x1b[K')[0].decode() for l in self.err.split(b'\r') if l and l != b'\x1b[K']


LINE = {'--to-tar': r'writing: \d+ of 3002 files, \d+ MiB, \d+ MiB/s',
        '--cat': r'reading: \d+ of 63 MiB, \d+ MiB/s',
        '--ls --recursive': r'listing: \d+ of 3002 files'}

for action, words in STREAMS.items():
    @test('R16: %s shows progress on a terminal: one line, rewritten, removed at the end' % action)
    def _(action=action, words=words):
        run = Run([*words, big()])
        is_(run.status, 0)
        check(len(run.shown) >= 3, run.err)
        for line in run.shown:
            check(re.fullmatch(LINE[action] + r'(, \d+:\d\d left)?', line), line)
        check(b'\n' not in run.err, 'a line is left', run.err)
        check(run.err.endswith(REMOVED), 'not removed', run.err[-40:])

    @test('R16: %s shows nothing at level 0, with --no-progress, or into a file; nor on the terminal that it '
          'writes to' % action)
    def _(words=words):
        for more, how in ((['-q', '--progress'], {}), (['--no-progress'], {}), (['-d0'], {}),
                          ([], {'terminal': False}), ([], {'out_terminal': True})):
            run = Run([*more, *words, big()], hold=0.7, **how)
            is_((run.status, run.err), (0, b''), ' '.join(more) or how)

    @test('R16: %s --progress off a terminal: whole lines, one a second at most' % action)
    def _(action=action, words=words):
        run = Run(['--progress', *words, big()], terminal=False, hold=2.5)
        is_(run.status, 0)
        lines = run.err.decode().splitlines()
        check(run.err.endswith(b'\n') and b'\r' not in run.err and b'\x1b' not in run.err, run.err)
        check(2 <= len(lines) <= time.monotonic() - run.begun, lines)
        for line in lines:
            check(re.fullmatch('<I> erofs: ' + LINE[action] + r'(, \d+:\d\d left)?', line), line)

    @test('R22: SIGUSR1 prints one line of what %s has done, without a terminal and at level 0; it goes on' % action)
    def _(action=action, words=words):
        def during(process):
            time.sleep(0.7)
            os.kill(process.pid, signal.SIGUSR1)

        run = Run(['-q', *words, big()], terminal=False, during=during)
        is_(run.status, 0)
        wanted = {'--to-tar': r'writing: \d+ of 3002 files, \d+ MiB', '--cat': r'reading: \d+ of 63 MiB',
                  '--ls --recursive': r'listing: \d+ of 3002 files, 0 MiB'}[action]
        check(re.fullmatch(f'<I> erofs: {wanted} so far\n', run.err.decode()), run.err)
        check(run.out_bytes > 100000, 'the stream is not whole', run.out_bytes)


@test('R16: at most ten lines a second, none that is wider than the terminal')
def _():
    run = Run(['--to-tar=-', big()], hold=2.2, width=30)
    is_(run.status, 0)
    check(len(run.times) >= 10, run.err)
    for first, last in zip(run.times, run.times[12:]):
        check(last - first >= 1, 'twelve lines in', last - first)
    for line in run.shown:
        check(len(line) <= 29, line)


@test('R16: time left is shown once something is known of it')
def _():
    run = Run(['--to-tar=-', big()], hold=1.8)
    left = [line for line in run.shown if 'left' in line]
    if not left:
        raise Skip('the first hundredth did not fit into the pipe')
    check(not any('left' in line for line in run.shown[:5]), run.shown)


@test('R16, R22: a selection has no total, and no time left')
def _():
    def during(process):
        time.sleep(0.8)
        os.kill(process.pid, signal.SIGUSR1)

    for words in (('--to-tar=-', big(), 'big'), ('--to-tar=-', '--path=/big', big())):
        run = Run(words, terminal=False, during=during)
        is_(run.status, 0)
        check(re.fullmatch(rb'<I> erofs: writing: \d+ files, \d+ MiB so far\n', run.err), run.err)


@test('R16: --extract shows progress and leaves no line; R22: SIGUSR1 in between stands on a line of its own')
def _():
    free = tools._free(tools.scratch())
    if free < 8 << 30:
        raise Skip('less than 8 GiB of scratch space')
    picture, _ = samples.long_run()
    target = fresh()

    def during(process):
        until = time.monotonic() + 20
        while time.monotonic() < until and not (os.path.isdir(target) and len(os.listdir(target)) > 8):
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGUSR1)

    for tool in filter(None, (DUMP, FSCK)):
        try:
            run = Run(['--extract=' + target, '--workers=1', picture], during=during, tool=tool)
        finally:
            tree.remove(target)
        is_(run.status, 0)
        if len(run.shown) < 2:
            raise Skip('the run was over before anything was to be shown')
        told = re.findall(rb'\r\x1b\[K(<I> erofs: extracting: \d+ of 101 files, \d+ MiB so far)\r\n', run.err)
        is_(len(told), 1, run.err)
        for line in run.shown:
            check(re.match(r'(<I> erofs: )?extracting: \d+ of 101 files, \d+ MiB', line) or line.strip() == '', line)
        check(run.err.endswith(REMOVED), 'not removed', run.err[-40:])


@test('R16: the bytes of a large file count while it is written')
def _():
    root = mkimg.Dir({'f': mkimg.Chunked([bytes(os.urandom(4096)) * 256] * 3000, 8)})
    if tools._free(tools.scratch()) < 8 << 30:
        raise Skip('less than 8 GiB of scratch space')
    target = fresh()
    try:
        run = Run(['--extract=' + target, '--workers=1', save(mkimg.build(root), 'one')])
    finally:
        tree.remove(target)
    is_(run.status, 0)
    counts = [int(re.search(r'(\d+) MiB,', line).group(1)) for line in run.shown if 'MiB,' in line]
    if len(counts) < 2:
        raise Skip('the run was over before anything was to be shown')
    check(0 < counts[0] < 3000 and counts == sorted(counts), counts)


LEFT = r'(, (\d+:)?\d+:\d\d left)?'
TOTALS = r'0 of 1 files, \d+ of 1048576 MiB'


def made(*words, archive=False, **how):
    """mkfs.erofs at a file that it cannot finish before the signal."""
    if not tools.MKFS:
        raise Skip('no mkfs.erofs')
    top, image = fresh('src', make=True), fresh('made')
    with open(os.path.join(top, 'holes'), 'wb') as file:
        file.truncate(1 << 40)
    if archive:
        source = fresh('tar')
        if subprocess.run(['tar', '-S', '-C', top, '-cf', source, 'holes']).returncode:
            raise Skip('no tar')
        words, top = [*words, '--tar=f'], source

    def during(process):
        time.sleep(1.8)
        os.kill(process.pid, signal.SIGUSR1)
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGTERM)

    run = Run([*words, '-zlz4' if 'lz4' in codecs() else '-b4096', image, top], tool=tools.MKFS, during=during, **how)
    is_(run.status, -signal.SIGTERM)
    check(not os.path.exists(image))
    return run


def codecs():
    return tools.make('--version').out.decode()


@test('R16, R22: mkfs.erofs on a terminal: files and bytes, of how many')
def _():
    run = made()
    lines = [line for line in run.shown if 'so far' not in line and line.strip()]
    check(any(re.fullmatch(r'writing: %s, \d+ MiB/s%s' % (TOTALS, LEFT), line) for line in lines), run.err)
    check(re.search(rb'<I> erofs: writing: %s so far\r\n' % TOTALS.encode(), run.err), run.err)


@test('R16: mkfs.erofs of an archive knows how much there is, too')
def _():
    lines = made('--progress', terminal=False, archive=True).err.decode().splitlines()
    check(any(re.fullmatch(r'<I> erofs: writing: %s, \d+ MiB/s%s' % (TOTALS, LEFT), line) for line in lines), lines)


@test('R16, R22: mkfs.erofs off a terminal: --progress, and --quiet')
def _():
    lines = made('--progress', terminal=False).err.decode().splitlines()
    check(any(re.fullmatch(r'<I> erofs: writing: %s, \d+ MiB/s%s' % (TOTALS, LEFT), line) for line in lines), lines)
    for words in (['--quiet', '--progress'], ['--no-progress', '--quiet']):
        run = made(*words, terminal=False)
        check(re.match(rb'<I> erofs: writing: %s so far\n' % TOTALS.encode(), run.err), run.err)
        check(b'MiB/s' not in run.err, run.err)
    is_(b'MiB/s' in made('--no-progress').err, False)


@test('R16: a short run shows nothing')
def _():
    run = Run(['-S', big()], hold=0)
    is_((run.status, run.err), (0, b''))


main()
