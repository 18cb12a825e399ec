#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R10 to R20: streams, messages, levels, colours, progress, locale."""
import os
import pty
import re
import signal
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from entrance import both  # noqa: E402
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


@both('R10: an extraction writes nothing to stdout, and says nothing if all went well')
def _(tool):
    expect(tool.run('--extract=' + fresh(), samples.plain()[0]), 0, silent=True)
    for level in ('-d0', '-d9'):
        is_(tool.run(level, '--extract=' + fresh(), samples.damaged()[0]).out, b'', level)


@test('R10: dump.erofs: messages go to stderr, and stdout is the same at every level')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    for words in (['--ls'], ['-S'], ['-s'], ['--path=/f05'], ['--to-tar']):
        seen = {run([DUMP, *words, level, samples.damaged()[0]]).out for level in ('-d0', '-d2', '-d9')}
        is_(len(seen), 1, words)


@test('R11: a full disk is status 2 with a message for everything that dump.erofs prints')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    picture = samples.plain()[0]
    for words in (['-s'], ['-S'], ['--blkid-udev'], ['--ls'], ['--ls', '--recursive', '--long'], ['--path=/one'],
                  ['-e', '--path=/big'], ['--cat', '--path=/one'], ['--to-tar'], ['--json'], ['--help'], ['-V']):
        with open('/dev/full', 'wb') as full:
            result = expect(run([DUMP, *words, picture], stdout=full), 2, r'^<E> erofs: .*No space left')
        samples.form_fault(result, 'dump.erofs')


@test('R11, R24: a closed pipe ends dump.erofs by SIGPIPE without a message')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    for words in (['-s'], ['-S'], ['--ls', '--recursive'], ['--cat', '--path=/big'], ['--to-tar'], ['--json']):
        read, write = os.pipe()
        os.close(read)
        # Python ignores the signal, and children would too
        result = run([DUMP, *words, samples.plain()[0]], stdout=write,
                     preexec=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        os.close(write)
        is_((result.status, result.err), (-signal.SIGPIPE, b''), words)


@test('R11: help to a full disk is a failure with a message')
def _():
    with open('/dev/full', 'wb') as full:
        result = fsck('--help', stdout=full)
    check(result.status > 0 and result.err, result)


@both('R13: every line of stderr has its prefix')
def _(tool):
    for words in (['-d9', tool.decode(), samples.damaged()[0]], [tool.decode(), samples.damaged()[0]],
                  ['/no/such/image'], ['--bad-option'], ['-d9', samples.plain()[0]]):
        tool.form_fault(tool.run(*words))


@both('R13: a damage line names image, path, nid, offset and what is wrong')
def _(tool):
    picture, _ = samples.damaged()
    result = expect(tool.run(tool.decode(), picture), tool.status(4))
    line = r'^<E> erofs: .*%s: /f05 \(nid \d+\) @ 0x[0-9a-f]+: \S.*' % re.escape(
        os.path.basename(picture))
    check(re.search(line, result.text, re.M), result)
    body = re.search(line, result.text, re.M)[0]
    check(not body.endswith('.'), 'full stop at the end: ' + body)


@both('R14: -d0 silences what is not an error, and errors stay')
def _(tool):
    result = expect(tool.run('-d0', tool.decode(), samples.damaged()[0]), tool.status(4))
    check(result.text and all(l.startswith('<E>') for l in result.text.splitlines()), result)


@test('R14: dump.erofs: a warning shows from level 2, later flags win, -q and -v count')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    picture = samples.plain()[0]    # it has a socket, which no archive can hold
    for words, shown in (([], 1), (['-d2'], 1), (['-d9'], 1), (['-q', '-v', '-v'], 1), (['-d0', '-d2'], 1),
                         (['-d1'], 0), (['-d0'], 0), (['-q'], 0), (['--quiet'], 0), (['-d9', '-q'], 0), (['-q', '-v'], 0)):
        result = expect(run([DUMP, '--to-tar', *words, picture]), 0)
        is_('<W> erofs: ' in result.text, bool(shown), words)


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


@both('R15: no colour unless stderr is a terminal, and NO_COLOR and TERM=dumb are obeyed')
def _(tool):
    picture = samples.damaged()[0]
    check(b'\x1b' not in tool.run(tool.decode(), picture, env={'TERM': 'xterm'}).err, 'colour in a file')
    for env in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}):
        _, seen = on_terminal([tool.path, tool.decode(), '--no-progress', picture], env)
        check(b'\x1b[3' not in seen and b'\x1b[1' not in seen, env, seen)
        check(b'<E> erofs: ' in seen, 'prefix', seen)
    _, seen = on_terminal([tool.path, tool.decode(), '--no-progress', picture])
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


@both('R17: locale and language change nothing')
def _(tool):
    picture = samples.damaged()[0]
    texts = {tool.run(tool.decode(), picture, env={'LC_ALL': name, 'LANG': name, 'LANGUAGE': 'de'}).err
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


@test('R18: --cat of a symlink: its target is escaped on a terminal, and raw elsewhere')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    target = b'a\x1b[31m\nb'
    picture = save(mkimg.build(mkimg.Dir({'l': mkimg.Link(target), 'f': mkimg.File(target)})))
    is_(run([DUMP, '--cat', '--path=/l', picture]).out, target, 'raw')
    is_(on_terminal([DUMP, '--cat', '--path=/l', picture])[1], b'a\\033[31m\\012b', 'on a terminal')
    is_(on_terminal([DUMP, '--cat', '--path=/f', picture])[1], target.replace(b'\n', b'\r\n'), 'contents')


@both('R20: words of the command line are escaped in messages as names are')
def _(tool):
    bad, shown = 'x\x1b[31m\ny', r'x\\033\[31m\\012y'
    picture = samples.plain()[0]
    for words in (['--path=' + bad, picture], ['--' + bad, picture], ['--workers=' + bad, picture], [picture, bad],
                  ['--device=' + bad] * 2 + ['--path=/a', samples.devices()[0]], ['--offset=' + bad, picture], [bad],
                  ['--nid=' + bad, picture], ['--extract=' + fresh() + '/' + bad + '/z', picture],
                  ['--extract=' + fresh(), '--path=' + bad, picture]):
        result = tool.run(*words)
        expect(result, {1, 2, 4, 8, 16}, shown)
        tool.form_fault(result)
        check(b'\x1b' not in result.err, result)


@both('R17: locale changes no byte of the tree, nor of what is printed')
def _(tool):
    picture = samples.plain()[0]
    trees, texts = [], set()
    for name in ('C', 'C.UTF-8', 'de_DE.UTF-8', 'tr_TR.UTF-8'):
        env = {'LC_ALL': name, 'LANG': name}
        target = fresh()
        expect(tool.run('--extract=' + target, picture, env=env), 0, silent=True)
        trees.append(tree.read(target))
        if not tool.is_fsck:
            texts.add(b''.join(tool.run(*w, picture, env=env).out for w in (
                ['-s'], ['-S'], ['--ls', '--recursive', '--long'], ['--path=/one'], ['--to-tar'], ['--json'])))
    for other in trees[1:]:
        is_(tree.compare(trees[0], other), [], 'trees')
    check(len(texts) <= 1, 'texts differ')


@test('R19: TZ is for people; --json is UTC')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    picture = samples.plain()[0]
    seen = {zone: run([DUMP, '--path=/one', picture], env={'TZ': zone}).out for zone in ('UTC', 'UTC-5')}
    check(b'Timestamp: 2020-09-13 12:26:40.123456789\n' in seen['UTC'], seen['UTC'])
    check(b'Timestamp: 2020-09-13 17:26:40.123456789\n' in seen['UTC-5'], seen['UTC-5'])
    is_(len({run([DUMP, '--json', '--path=/one', picture], env={'TZ': zone}).out for zone in seen}), 1, 'json')


@both('R20: names in messages have control bytes as backslash and three octal digits')
def _(tool):
    result = expect(tool.run(tool.decode(), evil()), tool.status(4), r'e\\033\[31m\\012vil')
    check(b'\x1b' not in result.err, result)
    tool.form_fault(result)


main()
