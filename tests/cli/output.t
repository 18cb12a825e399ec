#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R10 to R20: streams, messages, levels, colours, progress, locale."""
import os
import pty
import re
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, expect, fresh, fsck, run, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def on_terminal(argv, env=None):
    """(status, what the terminal saw) of a run whose stdout and stderr are one terminal."""
    master, slave = pty.openpty()
    seen = []

    def drain():
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:
                return
            if not part:
                return
            seen.append(part)

    reader = threading.Thread(target=drain, daemon=True)
    full = {'TERM': 'xterm', 'NO_COLOR': None}
    full.update(env or {})

    def onto():
        os.dup2(slave, 2)

    reader.start()
    result = run(argv, stdout=slave, env=full, preexec=onto)
    os.close(slave)
    reader.join(2)
    os.close(master)
    return result, b''.join(seen)


def evil():
    """An image whose damaged file has ESC and a newline in its name."""
    builder = mkimg.Builder(mkimg.Dir({b'e\x1b[31m\nvil': mkimg.Runs([(65, 16)]),
                                       'z': mkimg.File(b'fine\n')}))
    image = mkimg.Image(builder.build())
    at = builder.root.entries[b'e\x1b[31m\nvil'].pclusters[0]
    image.data[at:at + 4096] = b'\xff' * 4096
    return save(bytes(image.data), 'evil')


@test('R10: fsck.erofs writes nothing to stdout, healthy or damaged, at any level')
def _():
    for picture, status in ((samples.plain()[0], 0), (samples.damaged()[0], 4)):
        for level in ('-d0', '-d2', '-d9'):
            result = expect(fsck(level, '--extract', picture), status)
            is_(result.out, b'', 'stdout')


@test('R10: a healthy image at the default level prints nothing')
def _():
    for words in ([], ['--workers=2'], ['--extract'], ['--extract=' + fresh()]):
        expect(fsck(*words, samples.plain()[0]), 0, silent=True)


@test('R11: help to a full disk is a failure with a message')
def _():
    with open('/dev/full', 'wb') as full:
        result = fsck('--help', stdout=full)
    check(result.status > 0 and result.err, result)


@test('R13: every line of stderr has its prefix')
def _():
    for words in (['-d9', '--extract', samples.damaged()[0]], ['--extract', samples.damaged()[0]],
                  ['/no/such/image'], ['--bad-option'], ['-d9', samples.plain()[0]]):
        samples.form_fault(fsck(*words))


@test('R13: a damage line names image, path, nid, offset and what is wrong')
def _():
    picture, _ = samples.damaged()
    result = expect(fsck('--extract', picture), 4)
    line = r'^<E> erofs: .*%s: /f05 \(nid \d+\) @ 0x[0-9a-f]+: \S.*' % re.escape(
        os.path.basename(picture))
    check(re.search(line, result.text, re.M), result)
    body = re.search(line, result.text, re.M)[0]
    check(not body.endswith('.'), 'full stop at the end: ' + body)


@test('R14: -d0 silences what is not an error, and errors stay')
def _():
    result = expect(fsck('-d0', '--extract', samples.damaged()[0]), 4)
    check(result.text and all(l.startswith('<E>') for l in result.text.splitlines()), result)


@test('R14: "No errors found" and "Extracted filesystem successfully" appear from level 3')
def _():
    picture = samples.plain()[0]
    for words in (['-d3'], ['-v'], ['-q', '-d3']):
        expect(fsck(*words, picture), 0, r'^<I> erofs: No errors found')
        expect(fsck(*words, '--extract=' + fresh(), picture), 0,
               r'^<I> erofs: Extracted filesystem successfully')
    for words in (['-d2'], ['-d3', '-q'], ['-d9', '-d0'], ['-v', '-q']):
        expect(fsck(*words, picture), 0, silent=True)


@test('R14: "Found some filesystem corruption" and "Failed to extract filesystem" are errors')
def _():
    picture = samples.damaged()[0]
    expect(fsck('--extract', picture), 4, r'^<E> erofs: Found some filesystem corruption')
    expect(fsck('--extract=' + fresh(), picture), 4, r'^<E> erofs: Failed to extract filesystem')


@test('R15: no colour unless stderr is a terminal, and NO_COLOR and TERM=dumb are obeyed')
def _():
    picture = samples.damaged()[0]
    check(b'\x1b' not in fsck('--extract', picture, env={'TERM': 'xterm'}).err, 'colour in a file')
    for env in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}):
        _, seen = on_terminal([FSCK, '--extract', '--no-progress', picture], env)
        check(b'\x1b[3' not in seen and b'\x1b[1' not in seen, env, seen)
        check(b'<E> erofs: ' in seen, 'prefix', seen)
    _, seen = on_terminal([FSCK, '--extract', '--no-progress', picture])
    check(b'<E>' in seen, 'prefix readable with colour', seen)


@test('R16: no progress unless stderr is a terminal, nor with level 0')
def _():
    picture = samples.plain()[0]
    expect(fsck('--extract', picture), 0, silent=True)
    _, seen = on_terminal([FSCK, '-d0', '--extract', picture])
    is_(seen, b'', 'terminal at level 0')


@test('R16: --progress without a terminal prints whole lines')
def _():
    result = expect(fsck('--progress', '--extract', samples.plain()[0]), 0)
    check(b'\r' not in result.err and b'\x1b' not in result.err, result)


@test('R17: locale and language change nothing')
def _():
    picture = samples.damaged()[0]
    texts = {fsck('--extract', picture, env={'LC_ALL': name, 'LANG': name, 'LANGUAGE': 'de'}).err
             for name in ('C', 'C.UTF-8', 'de_DE.UTF-8', 'tr_TR.UTF-8')}
    is_(len(texts), 1, 'texts')


@test('R18: a terminal sees control bytes of names escaped; a file gets them raw')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    picture = evil()
    result = run([DUMP, '--ls', picture])
    check(b'e\x1b[31m\nvil' in result.out, 'raw', result)
    _, seen = on_terminal([DUMP, '--ls', picture])
    check(b'\x1b[31m' not in seen and b'e\\033[31m\\012vil' in seen, 'terminal', seen)


@test('R20: names in messages have control bytes as backslash and three octal digits')
def _():
    result = expect(fsck('--extract', evil()), 4, r'e\\033\[31m\\012vil')
    check(b'\x1b' not in result.err, result)
    samples.form_fault(result)


main()
