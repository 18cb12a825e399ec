#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs with compression when something goes wrong: full disks, signals, sources that change (cli.md R21, R23)."""
import filecmp
import os
import random
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
from tap import check, is_, main, test  # noqa: E402
from tools import expect, fresh, fsck, make  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
if 'lzma' not in make('--version').text + make('--version').out.decode():
    from tap import skip_all
    skip_all('built without liblzma')

FIXED = ['-Uclear', '-T1700000000', '--workers=2']
MIB = 1 << 20
WAYS = (['-zlz4', '-Ededupe'], ['-zlzma,1', '-Efragments,ztailpacking'], ['-zlz4', '-C65536', '-Eall-fragments,dedupe'])


def noisy(size=3 * MIB, files=1):
    top = fresh('src', make=True, mode=0o755)
    dice = random.Random(size + files)
    for n in range(files):
        forest.write(os.path.join(top, 'f%04d' % n), dice.randbytes(size // files))
    return top


def holds(folder, *names):
    is_(sorted(os.listdir(folder)), sorted(names), 'in the folder')


@test('R23: a full disk: status 1, the cause, no file')
def _():
    for words in WAYS:
        for top in (noisy(), noisy(files=300)):
            with tools.tmpfs('1m') as folder:
                expect(make(*FIXED, *words, os.path.join(folder, 'img'), top), 1, 'cannot write .*No space left')
                holds(folder)


@test('a full TMPDIR: status 1, the cause, no file')
def _():
    for words in WAYS[1:]:
        folder = fresh('place', make=True)
        with tools.tmpfs('1m') as full:
            expect(make(*FIXED, *words, '-C4096', os.path.join(folder, 'img'), noisy(files=900),
                        env={'TMPDIR': full}), 1, 'cannot write a temporary file.*No space left')
            holds(full)
        holds(folder)


@test('a TMPDIR that is not there, or may not be written: status 1, the cause, the old image stays')
def _():
    folder = fresh('place', make=True)
    image = os.path.join(folder, 'img')
    forest.write(image, b'old')
    top = noisy(5000)
    for place in (fresh('nowhere'), '/proc'):
        expect(make(*FIXED, *WAYS[1], image, top, env={'TMPDIR': place}), 1, 'cannot make a temporary file')
        holds(folder, 'img')
        check(filecmp.cmp(image, tools.save(b'old'), shallow=False), 'the old image is gone')
    # who needs none does not ask
    expect(make(*FIXED, *WAYS[0], image, top, env={'TMPDIR': fresh('nowhere')}), 0)


@test('R21: SIGINT and SIGTERM at any moment: the image is whole, or there is none, and nothing else')
def _():
    dice = random.Random(5)
    top = noisy(MIB, 40)
    forest.write(os.path.join(top, 'text'), forest.pattern(dice, 2 * MIB))
    seen = set()
    for words in (WAYS[0], WAYS[2] + ['-zlz4hc,12'], ['-zlzma,1', '-C65536', '-Efragments']):
        whole = fresh('whole')
        took = expect(make(*FIXED, '--quiet', *words, whole, top, timeout=300), 0).seconds
        for number in [signal.SIGINT, signal.SIGTERM] * (3 if tools.SLOW else 8):
            folder, spare = fresh('place', make=True), fresh('spare', make=True)
            image = os.path.join(folder, 'img')

            def interrupt(process, number=number):
                time.sleep(dice.random() * took * 1.2)
                os.kill(process.pid, number)

            result = make(*FIXED, '--quiet', *words, image, top, during=interrupt, env={'TMPDIR': spare}, timeout=300)
            holds(spare)
            seen.add(result.status)
            if result.status == 0:
                check(filecmp.cmp(image, whole, shallow=False), 'another image')
            elif os.path.exists(image):
                check(filecmp.cmp(image, whole, shallow=False), 'a part of an image')
            else:
                is_(result.status, -number, str(result))
                holds(folder)
    check(-signal.SIGINT in seen and -signal.SIGTERM in seen, 'no signal came in time', seen)


def while_made(words, change, size=2 * MIB):
    """A run during which change(path of the last file) is called; long before that file is read."""
    top = fresh('src', make=True, mode=0o755)
    forest.write(os.path.join(top, 'a'), random.Random(1).randbytes(size))
    last = os.path.join(top, 'z')
    forest.write(last, b'what was there before\n' * 60000)
    folder = fresh('place', make=True)
    image = os.path.join(folder, 'img')

    def meddle(_):
        deadline = time.monotonic() + 60
        while not os.listdir(folder) and time.monotonic() < deadline:
            time.sleep(0.001)
        change(last)

    result = make('-Uclear', '-T1700000000', '--workers=1', *words, image, top, during=meddle, timeout=300)
    return result, image, folder


def append(path):
    with open(path, 'ab') as file:
        file.write(b'more')


def shorten(path):
    os.truncate(path, 1000)


def overwrite(path):
    with open(path, 'r+b') as file:
        file.write(b'WHAT')


def replace(path):
    os.unlink(path)
    os.mkfifo(path)


@test('files that shrink, grow, vanish or become something else while the image is made: status 1, named, no file')
def _():
    for change, text in ((shorten, 'became shorter'), (append, 'changed its size'), (os.unlink, 'cannot open'),
                         (replace, 'cannot read|cannot open|changed|became')):
        result, _, folder = while_made(['-zlzma,9', '-C1048576', '-Efragments'], change)
        expect(result, 1, r'z: (%s)' % text)
        holds(folder)


@test('a file that is written while the image is made: a warning names it; the image is sound')
def _():
    result, image, _ = while_made(['-zlzma,9', '-C1048576', '-Eztailpacking'], overwrite)
    expect(result, 0, 'z: changed while it was read')
    expect(fsck('--workers=2', '--strict', image), 0, silent=True)


@test('a file that cannot be read ends the run, and is named')
def _():
    user = tools.as_user()
    tools.nobody_runs(tools.MKFS)
    for words in WAYS:
        top = noisy(100000, 9)
        os.chmod(os.path.join(top, 'f0007'), 0)
        folder = fresh('place', make=True)
        os.chmod(folder, 0o777)
        expect(make(*FIXED, *words, os.path.join(folder, 'img'), top, **user), 1, 'f0007: cannot open')
        holds(folder)


main()
