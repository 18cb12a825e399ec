#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 6: dump.erofs --ls with --recursive, --long, --print0; R18, C17, V19."""
import os
import pty
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
from tap import check, is_, main, test  # noqa: E402
from tools import DUMP, dump, expect, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')


def plain():
    return samples.plain()[0]


def out(*words, **more):
    return expect(dump(*words, **more), 0).out


def names():
    return sorted(p[1:] for p in samples.picture(samples.plain()[1]) if p != b'.')


def on_terminal(*words):
    """stdout of a run whose stdout is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([DUMP, *words], stdout=slave, stderr=subprocess.DEVNULL)
    os.close(slave)
    text = b''
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(master)
    is_(process.wait(20), 0, 'status')
    return text.replace(b'\r\n', b'\n')


def hostile():
    root = mkimg.Dir({b: mkimg.File(b'x') for b in ('a\x1b[31mred', 'new\nline', 'del\x7f', '\xe4')})
    return save(mkimg.build(root))


@test('C17: --ls --recursive: full paths in path order, one a line, no header')
def _():
    lines = out('--ls', '--recursive', plain()).splitlines()
    is_(sorted(lines), names(), 'names')
    is_(lines, sorted(lines, key=lambda p: p.split(b'/')), 'order')


@test('--ls --recursive of a folder: paths are full, also by --nid')
def _():
    wanted = [n for n in names() if n.startswith(b'/dir/')]
    for words in (['--path=/dir'], ['--path', 'dir/'], ['--path=/dir/deep/..'],
                  ['--nid=%d' % mkimg.Image.load(plain()).find('dir').nid]):
        is_(sorted(out('--ls', '--recursive', *words, plain()).splitlines()), wanted, words)


@test('--print0: names end with NUL, and nothing else comes out')
def _():
    text = out('--ls', '--recursive', '--print0', plain())
    is_(sorted(text.split(b'\0')), [b''] + names(), 'recursive')
    is_(sorted(out('--ls', '--print0', '--path=/dir', plain()).split(b'\0')), [b'', b'deep', b'in'], 'one')


@test('--long: mode, owner, size, time, path, target; TZ is respected (R19)')
def _():
    text = out('--ls', '--long', '--recursive', plain(), env={'TZ': 'UTC'}).decode('utf-8', 'backslashreplace')
    for pattern in (r'^drwxr-x--- 0/0 +\d+ 2009-02-13 23:31:30 /dir$', r'^l\S{9} .* /link -> dir/in$',
                    r'^p\S{9} .* /fifo$', r'^-\S{9} \d+/\d+ +6 .* /one$'):
        check(re.search(pattern, text, re.M), pattern, text)
    text = out('--ls', '--long', plain(), env={'TZ': 'XYZ+1'}).decode('utf-8', 'backslashreplace')
    check(re.search(r' 2009-02-13 22:31:30 dir$', text, re.M), text)


@test('R18: raw names into files, escaped ones on terminals')
def _():
    raw = out('--ls', '--recursive', hostile())
    check(b'a\x1b[31mred' in raw and b'new\nline' in raw and b'del\x7f' in raw, raw)
    for words in (['--ls'], ['--ls', '--recursive'], ['--ls', '--long']):
        text = on_terminal(*words, hostile())
        check(b'a\\033[31mred' in text and b'new\\012line' in text and b'del\\177' in text, text)
        check(not re.search(rb'[\x00-\x09\x0b-\x1f\x7f]', text), text)


@test('--recursive, --long, --print0 need --ls; a file, or nothing at the path: 1')
def _():
    for word in ('--recursive', '--long', '--print0'):
        expect(dump(word, plain()), 2, re.escape(word) + ' needs --ls')
    expect(dump('--ls', '--recursive', '--path=/one', plain()), 1, r'(?i)not a directory')
    expect(dump('--ls', '--recursive', '--path=/no', plain()), 1)


@test('V2: a listing into a full disk is 2, with a message')
def _():
    with open('/dev/full', 'wb') as full:
        expect(dump('--ls', '--recursive', plain(), stdout=full), 2, 'No space left')


@test('V19: damaged images of the corpus, loops among them: a listing ends, with 0, 1 or 2')
def _():
    folder = tools.corpus('bad')
    for name in sorted(n for n in os.listdir(folder) if n.endswith('.erofs'))[::tools.SAMPLE]:
        result = dump('--ls', '--recursive', '--long', os.path.join(folder, name))
        check(not result.killed and result.status in (0, 1, 2), result)
        check(len(result.out) < 128 << 20, name)


@test('a directory with two names is entered once, by its own; 1 says that it is damage')
def _():
    for name, text in (('dirent-cycle-root', 'a cycle'), ('dirent-cycle-self', 'a cycle'),
                       ('dir-two-parents', 'is a second name of the directory')):
        result = expect(dump('--ls', '--recursive', tools.corpus('bad', name + '.erofs')), 1)
        check(text in result.text, result)
    shared = mkimg.Dir({'in': mkimg.File(b'x')})
    picture = mkimg.Image(mkimg.build(mkimg.Dir({'a': mkimg.Dir({'other': shared}),
                                                 'b': mkimg.Dir({'own': shared})})))
    picture.put(picture.find('b/own').end + 12, 'Q', picture.find('b').nid)     # its ".."
    result = expect(dump('--ls', '--recursive', save(bytes(picture.data))), 1)
    is_(result.out.splitlines(), [b'/a', b'/a/other', b'/b', b'/b/own', b'/b/own/in'], 'names')


@test('names out of order, or twice, are handed out, and 1 says so')
def _():
    result = expect(dump('--ls', '--recursive', tools.corpus('bad', 'dir-claims-million.erofs')), 1)
    check('is not in order' in result.text and b'/d/000199\n' in result.out, result.text)


@test('a chain of 5,000 folders is listed to its end: depth takes no stack, and no block a level')
def _():
    root = mkimg.Dir({'end': mkimg.File(b'x')})
    for _ in range(5000):
        root = mkimg.Dir({'d': root})
    lines = out('--ls', '--recursive', save(mkimg.build(root))).splitlines()
    is_((len(lines), lines[-1]), (5001, b'/d' * 5000 + b'/end'), 'names')


main()
