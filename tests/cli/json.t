#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 9: --json of both tools; R10, R11, R18, R19, R21, and the schema that is installed."""
import base64
import functools
import json
import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import schema  # noqa: E402
import tools  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, dump, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')
tools.need(DUMP, 'dump.erofs')
HOSTILE = [b'bad\xff\xfename', b'esc\x1b[31m', b'line\nend', b'quote"\\', 'ä€😀'.encode(), b'c1\xc2\x9b',
           b'cut\xe2\x82', 'bidi‮'.encode()]


def hostile():
    return save(mkimg.build(mkimg.Dir({name: mkimg.Dir({b'in\xff': mkimg.File(b'x')}) for name in HOSTILE})))


def images(kind, step):
    folder = tools.corpus(kind)
    return [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith('.erofs')][::step]


def offset(path):
    return ['--offset=12288'] if path.endswith('kinds-offset.erofs') else []


def steady(data):
    """The report without what may differ between runs."""
    value = schema.report(data)
    for key in ('times', 'engine'):
        value.pop(key, None)
    return json.dumps(value)


def cut(data):
    """The bytes before what may differ between runs."""
    return re.split(rb'\n  "(?:times|engine)": ', data)[0]


@test('the schema is one of draft 2020-12')
def _():
    schema.library().Draft202012Validator.check_schema(schema.raw())
    is_(schema.raw()['$schema'], 'https://json-schema.org/draft/2020-12/schema', '$schema')


@test('the schema knows a wrong report')
def _():
    good = schema.report(dump('-s', '--json', samples.plain()[0]).out)
    for key, value in (('result', 'fine'), ('exit', -1), ('findings', None), ('new', 1)):
        try:
            schema.valid(dict(good, **{key: value}), 'report')
        except Exception:
            continue
        check(False, key, 'was taken')


@test('findings ids of the schema pattern: every one of the catalogue')
def _():
    with open(os.path.join(tools.SRCDIR, 'lib/diag/findings.def'), encoding='utf-8') as file:
        ids = re.findall(r'^FINDING\(\w+, \w+, "([^"]*)"\)', file.read(), re.M)
    pattern = schema.raw()['$defs']['finding']['properties']['id']['pattern']
    check(len(ids) > 40 and all(re.match(pattern, i) for i in ids), ids)
    check('failure' not in ids and 'warning' not in ids, 'the words for findings about the run are taken')


@test('every action of dump.erofs on good images: valid, in order, status 0')
def _():
    for path in images('good', 3 * tools.SAMPLE):
        for words in (['-s'], ['-S'], ['--path=/'], ['--ls'], ['--ls', '--long'], ['-e', '--path=/'],
                      ['-s', '-S', '-e', '--ls', '--path=/'], []):
            result = expect(dump('--json', *words, *offset(path), path), 0)
            is_(result.err, b'', 'stderr')
            value = schema.report(result.out)
            is_((value['result'], value['exit'], value['findings']), ('clean', 0, []), result)
            wanted = {'-s': 'superblock', '-S': 'statistics', '-e': 'extents', '--ls': 'entries'}
            for word, key in wanted.items():
                is_(key in value, word in words or (word == '-s' and not words), key)


@test('every mode of fsck.erofs on good images: valid, in order, status 0, nothing on stderr')
def _():
    for path in images('good', 3 * tools.SAMPLE):
        if 'blob' in path or 'tar-index' in path or 'merged' in path:
            continue
        for words, data in (([], False), (['--extract'], True), (['--workers=2'], True),
                            (['--no-preserve', '--extract=' + fresh()], True)):
            result = expect(fsck('--json', *words, *offset(path), path), 0)
            value = schema.report(result.out)
            is_((value['result'], value['exit'], value['data_checked']), ('clean', 0, data), result)
            is_('extract' in value and 'skipped' in value, words[:1] == ['--no-preserve'], words)


@test('damaged images: a valid report whose exit is the status')
def _():
    for path in images('bad', 4 * tools.SAMPLE):
        runs = [(fsck, []), (dump, ['-S']), (dump, ['--ls']), (dump, ['-s']), (dump, ['-e', '--path=/v'])]
        if not os.path.basename(path).startswith('bomb'):
            runs.append((fsck, ['--extract']))
        for tool, words in runs:
            result = tool('--json', *words, path)
            check(not result.killed, result)
            value = schema.report(result.out)
            is_(value['exit'], result.status, result)
            is_(value['result'] == 'clean', result.status == 0, result)
            if result.status & (4 if tool is fsck else 3):
                check(value['findings'], result)


@test('damage: id, severity, nid, path, offset and message; findings by path and offset')
def _():
    picture, _ = samples.damaged(('f19', 'f02', 'f05'))
    value = schema.report(expect(fsck('--json', '--extract', picture), 4).out)
    is_(value['result'], 'damaged', 'result')
    is_([f['path'] for f in value['findings']], ['/f02', '/f05', '/f19'], 'order')
    for f in value['findings']:
        is_((f['id'], f['severity'], f['offset']), ('data-decode', 'damage', 0), f)
        is_(f['nid'], str(mkimg.Image.load(picture).find(f['path'][1:]).nid), 'nid')


@test('R10, R13: stderr is the same as without --json, stdout is the report alone')
def _():
    for path, words, status in ((samples.damaged()[0], ['--extract'], 4), (samples.plain()[0], ['-d3'], 0),
                                ('/no/such/image', [], 8), (save(bytes(5000)), [], 8)):
        without, with_it = fsck(*words, path), fsck('--json', *words, path)
        is_((with_it.status, with_it.err), (without.status, without.err), words)
        is_(without.out, b'', 'stdout')
        schema.report(with_it.out)
    expect(fsck('-d3', '--json', samples.plain()[0]), 0, 'Data was not decoded')


@test('a run that fails prints a whole object: no image, no EROFS, the engine, no such path')
def _():
    plain = samples.plain()[0]
    for tool, words, status in ((fsck, ['/no/such'], 8), (fsck, [save(bytes(9000))], 8),
                                (fsck, ['--workers=magic', plain], 16), (fsck, ['--path=/no', plain], 8),
                                (fsck, ['--device=' + plain, plain], 16),
                                (fsck, ['--extract=/no/such/folder', plain], 8), (fsck, ['/'], 8),
                                (dump, ['/no/such'], 2), (dump, ['-S', save(bytes(9000))], 2),
                                (dump, ['--workers=magic', plain], 2), (dump, ['--path=/no', plain], 1),
                                (dump, ['--ls', '--path=/one', plain], 1), (dump, ['--nid=1048576', plain], 1)):
        result = expect(tool('--json', *words), status)
        value = schema.report(result.out)
        check(value['result'] != 'clean' and value['exit'] == status, result)
        check(any(f['message'] for f in value['findings']), result)


@test('E4: the same bytes for every number of workers, times and figures left out')
def _():
    picture, _ = samples.damaged(('f02', 'f19'))
    for path in [picture, samples.plain()[0]] + images('good', 15) + images('bad', 25):
        if 'bomb' in path:
            continue
        for tool, words in ((fsck, ['--extract']), (dump, ['-S', '--ls', '-s'])):
            seen = {cut(tool('--json', '--workers=' + w, *words, path).out)
                    for w in ('1', '2', 'percpu')}
            is_(len(seen), 1, '%s: %s' % (path, seen))


@test('nids of 2^63 and more are strings, whole')
def _():
    path = tools.corpus('good', 'kinds-metabox.erofs')
    value = schema.report(expect(dump('--json', '-s', '--ls', path), 0).out)
    number = re.search(rb'root nid: +(\d+)', dump('-s', path).out)[1].decode()
    check(int(number) >= 1 << 63, number)
    is_((value['superblock']['root_nid'], value['inode']['nid']), (number, number), 'root')
    rows = {l.split(None, 2)[2].decode('latin-1'): l.split(None, 1)[0].decode()
            for l in dump('--ls', path).out.split(b'FILENAME\n')[1].splitlines()}
    check(len(value['entries']) > 20, 'entries')
    for entry in value['entries']:
        if 'name_base64' not in entry and entry['name'].isascii():
            is_(entry['nid'], rows[entry['name']], entry['name'])


def name_of(entry, key):
    if key + '_base64' in entry:
        data = base64.b64decode(entry[key + '_base64'], validate=True)
        check('\ufffd' in entry[key], entry)
        is_(entry[key], ''.join(c if not 0xdc80 <= ord(c) <= 0xdcff else '\ufffd'
                                for c in data.decode('utf-8', 'surrogateescape')), 'text')
        return data
    return entry[key].encode('utf-8')


@test('R18: hostile names come back whole, and none of their bytes drives a terminal')
def _():
    path = hostile()
    result = expect(dump('--json', '--ls', path), 0)
    value = schema.report(result.out)
    is_(sorted(name_of(e, 'name') for e in value['entries']), sorted(HOSTILE), 'names')
    is_({name_of(e, 'name') for e in value['entries'] if 'name_base64' in e},
        {n for n in HOSTILE if n.startswith((b'bad', b'cut'))}, 'names in base64')
    check(not re.search(rb'[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]', result.out),
          'control bytes', result)
    result = expect(dump('--json', '--ls', '--recursive', path), 0)
    entries, _ = schema.stream(result.out)
    is_(sorted(name_of(e, 'path') for e in entries),
        sorted([b'/' + n for n in HOSTILE] + [b'/' + n + b'/in\xff' for n in HOSTILE]), 'paths')
    for name in HOSTILE:
        value = schema.report(expect(dump('--json', b'--path=/' + name, path), 0).out)
        is_(name_of(value['inode'], 'path'), b'/' + name, 'inode')
    copy = os.path.join(fresh(make=True).encode(), b'im\xffage')
    os.symlink(path, copy)
    is_(name_of(schema.report(fsck('--json', copy).out), 'image'), copy, 'image')


@test('damage in a file with a hostile name: path_base64')
def _():
    name = b'e\xff\x1b[31m'
    builder = mkimg.Builder(mkimg.Dir({name: mkimg.Runs([(65, 16)])}))
    image = mkimg.Image(builder.build())
    at = builder.root.entries[name].pclusters[0]
    image.data[at:at + 4096] = b'\xff' * 4096
    value = schema.report(expect(fsck('--json', '--extract', save(bytes(image.data))), 4).out)
    is_(name_of(value['findings'][0], 'path'), b'/' + name, 'path')


@test('--ls --recursive --json: an object a line, the report last, the names of --ls --recursive')
def _():
    for path in (samples.plain()[0], tools.corpus('good', 'kinds-metabox.erofs')):
        entries, last = schema.stream(expect(dump('--json', '--ls', '--recursive', path), 0).out)
        is_((last['result'], 'entries' in last), ('clean', False), 'report')
        names = [p for p in dump('--ls', '--recursive', '--print0', path).out.split(b'\0') if p]
        is_([name_of(e, 'path') for e in entries], names, 'names')
    entries, _ = schema.stream(dump('--json', '--ls', '--recursive', '--path=/dir', samples.plain()[0]).out)
    check(entries and all(e['path'].startswith('/dir/') for e in entries), entries)


@test('--long: what inodes say; R19: times in UTC with nanoseconds')
def _():
    entries, _ = schema.stream(dump('--json', '--ls', '--recursive', '--long', samples.plain()[0],
                                    env={'TZ': 'XYZ-7'}).out)
    found = {e['path']: e for e in entries}
    is_(found['/link']['target'], 'dir/in', 'target')
    is_((found['/dir']['mode'], found['/dir']['links'], found['/one']['size']), ('0750', 3, 6), 'facts')
    is_(found['/dir']['mtime'], {'time': '2009-02-13T23:31:30.987654321Z', 'sec': 1234567890,
                                 'nsec': 987654321}, 'mtime')


@test('a damaged directory in a stream: the rest is there, the last line says so')
def _():
    result = dump('--json', '--ls', '--recursive', tools.corpus('bad', 'dirent-cycle-root.erofs'))
    entries, last = schema.stream(result.out)
    check(entries, result)
    is_((result.status, last['exit'], last['result']), (1, 1, 'damaged'), result)


@test('extents and statistics are those of the text')
def _():
    value = schema.report(dump('--json', '-e', '--path=/runs', samples.plain()[0]).out)
    rows = re.findall(rb'^ *\d+: *(\d+)\.\. *\d+ \| *(\d+) : *(\d+)\.\. *\d+ \| *(\d+)$',
                      dump('-e', '--path=/runs', samples.plain()[0]).out, re.M)
    is_([(e['offset'], e['length'], e['physical_offset'], e['physical_length']) for e in value['extents']],
        [tuple(map(int, r)) for r in rows], 'extents')
    is_({e['kind'] for e in value['extents']}, {'compressed'}, 'kind')
    value = schema.report(dump('--json', '-S', samples.plain()[0]).out)['statistics']
    text = dump('-S', samples.plain()[0]).out
    for word, key in ((b'regular file', 'regular'), (b'directory', 'directory'), (b'symlink file', 'symlink')):
        is_(value['names'][key], int(re.search(b'Filesystem ' + word + rb' count:\t\t(\d+)', text)[1]), key)
    is_(value['original_bytes'], int(re.search(rb'original file size: +(\d+)', text)[1]), 'bytes')


@test('V3: a wrong superblock checksum is a warning for -s, and in the superblock')
def _():
    with open(samples.plain()[0], 'rb') as file:
        data = bytearray(file.read())
    data[1024 + 4] ^= 1
    path = save(bytes(data))
    value = schema.report(expect(dump('--json', '-s', path), 0).out)
    is_(value['superblock']['checksum'], 'wrong', 'checksum')
    check(any('checksum' in f['message'] and f['severity'] == 'warning' for f in value['findings']), value)
    value = schema.report(expect(fsck('--json', path), 4).out)
    is_([f['id'] for f in value['findings']], ['sb-checksum'], 'findings')


@test('--json=FILE: the report goes there, whole or not at all; text stays')
def _():
    plain = samples.plain()[0]
    target = os.path.join(fresh(make=True), 'report')
    result = expect(dump('--json=' + target, '--ls', plain), 0)
    is_(result.out, dump('--ls', plain).out, 'text')
    with open(target, 'rb') as file:
        is_(steady(file.read()), steady(dump('--json', '--ls', plain).out), 'report')
    expect(fsck('--json=' + target, plain), 0, silent=True)
    with open(target, 'rb') as file:
        is_(schema.report(file.read())['tool'], 'fsck.erofs', 'replaced')
    is_(os.listdir(os.path.dirname(target)), ['report'], 'nothing left beside it')
    is_(steady(dump('--json=-', '--ls', plain).out), steady(dump('--json', '--ls', plain).out), '"-"')
    expect(dump('--cat', '--path=/one', '--json=' + target, plain), 0)
    with open(target, 'rb') as file:
        is_(schema.report(file.read())['result'], 'clean', '--cat')
    expect(fsck('--json=/no/such/folder/x', plain), 8, '/no/such/folder/x')
    expect(dump('--json=/no/such/folder/x', plain), 2, '/no/such/folder/x')


@test('--json=FILE never falls on the image')
def _():
    with open(samples.plain()[0], 'rb') as file:
        data = file.read()
    path = save(data)
    link = fresh()
    os.symlink(path, link)
    for tool, status in ((fsck, 8), (dump, 2)):
        for name in (path, link):
            expect(tool('--json=' + name, path), status, 'is the image or a part of it')
    with open(path, 'rb') as file:
        is_(file.read() == data, True, 'the image is as it was')


@test('R11: a full disk is a failure with a message, on stdout and as FILE')
def _():
    plain = samples.plain()[0]
    for tool, words, status in ((fsck, [], 8), (fsck, ['--extract'], 8), (dump, [], 2), (dump, ['--ls'], 2),
                                (dump, ['--ls', '--recursive'], 2)):
        with open('/dev/full', 'wb') as full:
            expect(tool('--json', *words, plain, stdout=full), status, 'No space left')
        expect(tool('--json=/dev/full', *words, plain), status, 'No space left')
    with open('/dev/full', 'wb') as full:
        expect(fsck('--json', '--extract', samples.damaged()[0], stdout=full), 12)


@test('usage: no report of a command line that is refused')
def _():
    plain = samples.plain()[0]
    for words in (['--json='], ['--json', '--cat', '--path=/one'], ['--json', '--blkid-udev'],
                  ['--json', '--ls', '--print0'], ['--json', '--to-tar=-'], ['--json', '--bad']):
        is_(expect(dump(*words, plain), 2, "^Try 'dump").out, b'', words)
    is_(expect(fsck('--json=', plain), 16).out, b'', 'fsck')


@functools.lru_cache(None)
def crowd():
    """150,000 files: a run over them takes some tenths of a second in one thread."""
    return save(mkimg.build(mkimg.Dir({'d%03d' % d: mkimg.Dir({'f%04d' % n: mkimg.File(b'') for n in range(1500)})
                                       for d in range(100)})))


def stopped(tool, words, path, status):
    """A run that SIGTERM met: neither before it had its handlers, nor behind its end."""
    for delay in (0.03, 0.02, 0.01, 0.05, 0.1, 0.006, 0.003):
        def during(process):
            time.sleep(delay)
            os.kill(process.pid, signal.SIGTERM)

        result = tool('--json', *words, path, during=during, timeout=60)
        if result.status == status and result.out:
            return result
    raise Skip('the run was over before the signal: %s' % words)


@test('R21: SIGTERM: a whole report with "cancelled", from fsck.erofs with status 32')
def _():
    for workers in tools.WORKERS:
        result = stopped(fsck, ['--extract', '--workers=' + workers], crowd(), 32)
        value = schema.report(result.out)
        is_((value['result'], value['exit'], value['data_checked']), ('cancelled', 32, False), result)
        check('superblock' in value and 'check' in value, value)


@test('R21: SIGTERM: a whole report from dump.erofs, which dies by the signal')
def _():
    path = crowd()
    for words in (['--ls', '--recursive', '--long'], ['-S', '--workers=1']):
        result = stopped(dump, words, path, -signal.SIGTERM)
        value = schema.stream(result.out)[1] if '--ls' in words else schema.report(result.out)
        is_((value['result'], value['exit']), ('cancelled', 128 + signal.SIGTERM), words)


@test('--stats=json is what it was, and beside --json the same figures')
def _():
    path = tools.corpus('good', 'data-lz4-64k.erofs')
    result = expect(fsck('--json', '--stats=json', path), 0)
    value = schema.report(result.out)
    text = result.text
    check(text.startswith('{"engine": {\n  "workers": '), text[:80])
    figures = json.loads(text)['engine']
    schema.valid(figures, 'engine')
    is_(list(figures), list(value['engine']), 'keys')
    for key in ('workers', 'mode', 'pclusters', 'bytes_in', 'bytes_out', 'wake_ns', 'queue_ns'):
        is_(figures[key], value['engine'][key], key)
    check(value['times']['wall_ns'] > 0 and value['data_checked'] is True, value)
    expect(fsck('--stats=' + save(result.err), path), 0, 'diff')


@test('an entry that is also a report, or neither: the schema tells them apart')
def _():
    entries, last = schema.stream(dump('--json', '--ls', '--recursive', samples.plain()[0]).out)
    for value in entries + [last]:
        schema.valid(value)


main()
