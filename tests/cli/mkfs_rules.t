#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs: the rules that hold for all tools (cli.md 2), where mkfs.t has no test of them."""
import os
import re
import resource
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import dump, expect, fresh, fsck, make  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')


def source(**files):
    top = fresh('src', make=True, mode=0o755)
    for name, data in (files or {'one': b'1' * 5000, 'two': b'2'}).items():
        forest.write(os.path.join(top, name), data)
    return top


def superblock(image):
    with open(image, 'rb') as file:
        file.seek(1024)
        return file.read(128)


def names(image):
    expect(fsck('--strict', image), 0, silent=True)
    return {line[1:] for line in expect(dump('--ls', '--recursive', image), 0).out.decode().splitlines()}


@test('R2: with POSIXLY_CORRECT options end at the first operand')
def _():
    image, top = fresh('img'), source()
    expect(make('--quiet', image, top, env={'POSIXLY_CORRECT': '1'}), 0, silent=True)
    expect(make(image, top, '--quiet', env={'POSIXLY_CORRECT': '1'}), 1, 'unexpected argument: --quiet')


@test('R3: an exact name wins; a unique beginning of a name works')
def _():
    image, top = fresh('img'), source()
    expect(make('--quie', '-T7', '--mkfs', image, top), 0, silent=True)
    expect(make('--force', '1', image, top), 1, "'?--force'?.*ambiguous|ambiguous.*--force")


@test('R4: the last of single values counts; excludes add up')
def _():
    image, top = fresh('img'), source(a=b'', b=b'', c=b'', d=b'')
    expect(make('-T1', '-T', '2', '-Lold', '-L', 'new', '-Uclear', '--mkfs-time', '--exclude-path=a', '--quiet',
                '--exclude-path=b', '--exclude-regex=^c$', '--exclude-regex=x', image, top), 0, silent=True)
    is_(names(image), {'d'})
    raw = superblock(image)
    is_((int.from_bytes(raw[24:32], 'little'), raw[64:67]), (2, b'new'))


@test('R5: sizes take K and KiB, numbers 0x and 0; overflow, signs, rubbish and nothing are usage errors')
def _():
    top = source()
    for size in ('8K', '8KiB', '8192', '0x2000'):
        image = fresh('img')
        expect(make('--quiet', '-b', size, image, top), 0, silent=True)
        is_(superblock(image)[12], 13, size)
    for text, wanted in (('0x10', 16), ('010', 8), ('10', 10)):
        expect(make('--quiet', '-T', text, image, top), 0, silent=True)
        is_(int.from_bytes(superblock(image)[24:32], 'little'), wanted, text)
    for words in (['-T', '99999999999999999999'], ['-T', '5x'], ['-T', ''], ['-T', '+5'], ['--force-uid=-1'],
                  ['--force-uid=1K'], ['--uid-offset=4294967296'], ['-b', '4Q'], ['-d', '-1'], ['-x', '--1']):
        expect(make(*words, fresh('img'), top), 1, "Try 'mkfs.erofs --help'")


@test('R10, R13: messages go to stderr, with letter and tool; W from level 2')
def _():
    top = source()
    image = os.path.join(top, 'img')
    for words, told in (([], True), (['-d2'], True), (['-d1'], False), (['-d0'], False), (['-q'], False),
                        (['-d1', '-v'], True)):
        forest.write(image, b'old')
        result = expect(make(*words, image, top), 0)
        is_(re.sub(r'[^ ]*img', 'IMG', result.text).startswith('<W> erofs: '), told, str(words))
        is_(b'<W>' in result.out, False, str(words))


@test('R18, R20: names in messages are escaped')
def _():
    top = source()
    name = os.path.join(os.fsencode(top), b'\x1b[2J\xff')
    os.symlink('x', name)
    image = os.path.join(os.fsencode(top), b'i\nmg')
    forest.write(image, b'old')
    result = expect(make('-T0', image, top), 0)
    is_(b'\n' in result.err.rstrip(b'\n'), False, result.text)
    check('\\012' in result.text, result.text)


@test('R17: no translation, whatever the locale')
def _():
    for env in ({'LC_ALL': 'de_DE.UTF-8', 'LANGUAGE': 'de'}, {'LC_ALL': 'C'}):
        expect(make('--quiet', fresh('img'), fresh('nowhere'), env=env), 1, 'No such file or directory')


@test('R16: no progress where stderr is no terminal')
def _():
    expect(make('--quiet', fresh('img'), source(big=b'x' * 5000000)), 0, silent=True)


@test('R22: SIGUSR1 prints a line, and the run goes on')
def _():
    folder = fresh('place', make=True)
    top = source()
    with open(os.path.join(top, 'huge'), 'wb') as file:
        file.truncate(2 << 30)

    def ask(process):
        deadline = time.monotonic() + 15
        while not os.listdir(folder) and time.monotonic() < deadline:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGUSR1)
        deadline = time.monotonic() + 15

    image = os.path.join(folder, 'img')
    expect(make('-T0', '-d0', image, top, during=ask, watch=folder, timeout=120), 0, 'so far')
    is_(os.listdir(folder), ['img'])
    os.unlink(image)


@test('R24: SIGXFSZ is an error like others')
def _():
    folder = fresh('place', make=True)
    expect(make('-q', os.path.join(folder, 'img'), source(big=b'x' * 300000), limits=[(resource.RLIMIT_FSIZE, 9999)]),
           1, 'too large')
    is_(os.listdir(folder), [])


@test('R29: without /proc: attributes of files and folders are there, those of others are said to be left out')
def _():
    tools.need_root()
    if not shutil.which('unshare') or not tools.has_xattrs():
        raise Skip('no unshare, or no xattrs here')
    if tools.SANITIZED:
        raise Skip('the sanitizer wants /proc')
    top, image = source(), fresh('img')
    for name in ('one', '.'):
        os.setxattr(os.path.join(top, name), 'user.x', b'y')
    result = tools.run(['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', '-',
                        *tools.INSTRUMENT, tools.MKFS, '-T0', image, top])
    if b'unshare' in result.err or b'mount' in result.err:
        raise Skip('cannot hide /proc: ' + result.text.strip())
    expect(result, 0, 'without /proc')
    names(image)
    data = expect(dump('--to-tar', image), 0).out
    is_(data.count(b'SCHILY.xattr.user.x=y'), 2)


@test('C25: atomfs: mkfs.erofs OUT DIR; --help knows workers')
def _():
    image = fresh('img')
    expect(make(image, source()), 0)
    is_(names(image), {'one', 'two'})
    check('workers' in expect(make('--help'), 0).out.decode())


main()
