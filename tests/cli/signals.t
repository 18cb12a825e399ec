#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R21, R22, R24 and X9: signals during a check and an extraction."""
import hashlib
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import FSCK, expect, fresh, fsck  # noqa: E402

tools.need(FSCK, 'fsck.erofs')
QUOTA = 12 << 30


def interrupted(number, workers, second=False):
    """Extract the long image, signal it when two files are there; (target, result)."""
    picture, _ = samples.long_run()
    target = fresh()

    def during(process):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if os.path.isdir(target) and len(os.listdir(target)) >= 2:
                break
            time.sleep(0.002)
        os.kill(process.pid, number)
        if second:
            time.sleep(0.01)
            os.kill(process.pid, number)

    result = fsck('--extract=' + target, '--workers=' + workers, picture, during=during,
                  watch=tools.scratch(), quota=QUOTA, timeout=60)
    if result.status == 0:
        raise Skip('the run was over before the signal')
    return target, result


def room():
    if tools._free(tools.scratch()) < QUOTA:
        raise Skip('less than %d GiB of scratch space' % (QUOTA >> 30))


def whole(target):
    """Every final name holds the whole file, and no other names are left."""
    _, root = samples.long_run()
    node = root.entries['f000']
    sha = hashlib.sha256()
    for piece in node.chunks:
        sha.update(piece)
    for path, entry in tree.read(target).items():
        if path == b'.':
            continue
        check(not os.path.basename(path).startswith(b'.erofs'), 'left behind', path)
        is_(entry.size, 64 << 20, tree.show(path))
        is_(entry.digest, sha.hexdigest(), tree.show(path))


for signame in ('SIGINT', 'SIGTERM', 'SIGHUP'):
    for setting in tools.WORKERS:
        @test('R21, X9: %s with workers=%s: status 32, no short file, no leftovers'
              % (signame, setting))
        def _(signame=signame, setting=setting):
            room()
            target, result = interrupted(getattr(signal, signame), setting)
            try:
                expect(result, 32, r'(?i)cancel|interrupt|stopped')
                samples.form_fault(result)
                whole(target)
                check(result.seconds < 12, 'took too long to stop', result)
            finally:
                tree.remove(target)


@test('R21: a second run with --overwrite after SIGTERM completes the tree')
def _():
    import mkimg
    root = mkimg.Dir({'d%02d' % d: mkimg.Dir({'f%03d' % n: mkimg.File(b'%d %d' % (d, n))
                                              for n in range(200)}) for d in range(30)})
    picture = tools.save(mkimg.build(root))
    target = fresh()

    def during(process):
        until = time.monotonic() + 5
        while time.monotonic() < until and not os.path.isdir(os.path.join(target, 'd01')):
            time.sleep(0.0005)
        os.kill(process.pid, signal.SIGTERM)

    result = fsck('--extract=' + target, '--workers=1', picture, during=during)
    check(result.status in (0, 32), result)
    for path, entry in tree.read(target).items():
        if entry.kind == 'file':
            check(entry.size > 0, 'empty file left', path)
    expect(fsck('--extract=' + target, '--overwrite', picture), 0)
    samples.same(root, target, owner=tools.ROOT)


@test('R21: SIGTERM during a check: status 32')
def _():
    picture, _ = samples.long_run()

    def during(process):
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGTERM)

    for workers in tools.WORKERS:
        result = fsck('--workers=' + workers, picture, during=during, timeout=60)
        if result.status == 0:
            raise Skip('the run was over before the signal')
        expect(result, 32)


@test('R21: damage found before the signal adds 4')
def _():
    import mkimg
    room()
    piece = os.urandom(4096) * 256
    entries = {'a%02d' % n: mkimg.Runs([(65 + n, 8)]) for n in range(3)}
    entries.update({'z%03d' % n: mkimg.Chunked([piece] * 64, 8) for n in range(100)})
    root = mkimg.Dir(entries)
    image = mkimg.Image(mkimg.Builder(root).build())
    at = root.entries['a00'].pclusters[0]
    image.data[at:at + 4096] = b'\xff' * 4096
    picture, target = tools.save(bytes(image.data)), fresh()

    def during(process):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if os.path.isdir(target) and sum(n[0] == 'z' for n in os.listdir(target)) >= 2:
                break
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGINT)

    result = fsck('--extract=' + target, '--workers=1', picture, during=during, timeout=60,
                  watch=tools.scratch(), quota=QUOTA)
    tree.remove(target)
    if result.status == 4:
        raise Skip('the run was over before the signal')
    expect(result, 36, r'/a00\b')


@test('R21: a second signal ends at once')
def _():
    room()
    target, result = interrupted(signal.SIGTERM, '1', second=True)
    tree.remove(target)
    check(result.status in (32, -signal.SIGTERM, 128 + signal.SIGTERM), result)


@test('R22: SIGUSR1 prints one progress line and the run goes on')
def _():
    picture, _ = samples.long_run()

    def during(process):
        time.sleep(0.15)
        os.kill(process.pid, signal.SIGUSR1)
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGTERM)

    result = fsck('--workers=1', picture, during=during, timeout=60)
    if result.status == 0:
        raise Skip('the run was over before the signal')
    expect(result, 32)
    lines = [l for l in result.text.splitlines() if any(c.isdigit() for c in l)]
    check(1 <= len(lines) <= 3, 'progress lines', result)


@test('R22: SIGUSR1 does not kill a plain check')
def _():
    picture, _ = samples.plain()

    def during(process):
        try:
            os.kill(process.pid, signal.SIGUSR1)
        except ProcessLookupError:
            pass

    result = fsck(picture, during=during)
    # The signal may come before the handler stands.
    check(result.status in (0, -signal.SIGUSR1), result)


main()
