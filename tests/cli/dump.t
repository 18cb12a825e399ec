#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 6: what dump.erofs prints and which status it ends with; C13 to C17."""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, dump, expect, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')


def plain():
    return samples.plain()[0]


def nid(path):
    return mkimg.Image.load(plain()).find(path).nid


def out(*words, status=0, **more):
    return expect(dump(*words, **more), status).out


def usage(*words):
    result = expect(dump(*words), 2, r"^Try 'dump\.erofs --help' for more information\.$")
    samples.form_fault(result, 'dump.erofs')
    return result


@test('-s: labels in order, values at column 47')
def _():
    text = out('-s', plain(), env={'TZ': 'UTC'}).decode()
    labels = ['magic number', 'blocksize', 'blocks', 'inode metadata start block',
              'shared xattr metadata start block', 'root nid', 'lz4_max_distance', 'sb_size',
              'inode count', 'created', 'compatible features', 'incompatible features', 'UUID']
    lines = text.splitlines()
    found = []
    for line in lines:
        match = re.match(r'(Filesystem ([^:]+):) *', line)
        if match and not match[2].startswith('volume'):
            is_(line[:46].rstrip(), match[1], 'column')
            check(len(line) == 46 or line[45] == ' ', repr(line))
            found.append(match[2])
    is_(found, labels, 'labels')
    values = {l[:46].rstrip(): l[46:] for l in lines}
    is_(values['Filesystem magic number:'], '0xE0F5E1E2', 'magic')
    is_(values['Filesystem blocksize:'], '4096', 'blocksize')
    is_(values['Filesystem root nid:'], '1', 'root nid')
    is_(values['Filesystem sb_size:'], '128', 'sb_size')
    is_(values['Filesystem created:'], 'Tue Nov 14 22:13:20 2023', 'created')
    is_(values['Filesystem compatible features:'], 'sb_csum mtime ', 'compatible')
    check('chunked_file ' in values['Filesystem incompatible features:'], values)
    uuid = b'small test image'.hex()
    is_(values['Filesystem UUID:'], '-'.join((uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20],
                                              uuid[20:])), 'UUID')
    check(any(l.startswith('Required upstream Linux kernel version:') for l in lines), text)


@test('R19: TZ is respected')
def _():
    text = out('-s', plain(), env={'TZ': 'XYZ-1'}).decode()
    check('Tue Nov 14 23:13:20 2023' in text, text)
    text = out('--path=/dir', plain(), env={'TZ': 'XYZ+1'}).decode()
    check('Timestamp: 2009-02-13 22:31:30.987654321' in text, text)


@test('-s: packed nid, algorithms, metabox nid of corpus images')
def _():
    text = out('-s', tools.corpus('good', 'hints-mixed.erofs')).decode()
    check(re.search(r'^Filesystem compr_algs: +lz4, lzma, deflate, zstd$', text, re.M), text)
    check('lz4_max_distance' not in text, text)
    text = out('-s', tools.corpus('good', 'data-lz4-frag.erofs')).decode()
    check(re.search(r'^Filesystem packed nid: +\d+$', text, re.M), text)
    text = out('-s', tools.corpus('good', 'kinds-metabox.erofs')).decode()
    check(re.search(r'^Filesystem metabox nid: +\d+$', text, re.M), text)
    check(re.search(r'^Filesystem root nid: +9223372036854775\d+$', text, re.M), text)
    check('metabox ' in text and '48bit ' in text, text)


@test('C14: the superblock without any option; UUID and features as scripts cut them out')
def _():
    is_(out(plain()), out('-s', plain()), 'no option')
    text = out('-s', save(mkimg.build(mkimg.Dir({})))).decode()
    check(not re.search(r'features:.*0padding', text), '0padding on an uncompressed image')
    check(re.search(r'features:.*0padding', out('-s', plain()).decode()), 'no 0padding')


@test('-S: nine counts, files, sizes, rate')
def _():
    text = out('-S', plain()).decode()
    counts = dict(re.findall(r'^Filesystem (.*) count:\t\t(\d+)$', text, re.M))
    wanted = {'unknown type': 0, 'regular file': 11, 'directory': 3, 'char dev': 0, 'block dev': 0,
              'FIFO file': 1, 'SOCK file': 1, 'symlink file': 2}
    is_({k: int(v) for k, v in counts.items() if k != 'total file'}, wanted, 'counts')
    is_(int(counts['total file']), sum(wanted.values()), 'total')
    for label in ('Filesystem compressed files:', 'Filesystem uncompressed files:',
                  'Filesystem total original file size:', 'Filesystem total file size:',
                  'Filesystem compress rate:'):
        check(re.search('^' + re.escape(label.ljust(40)), text, re.M), 'no ' + label, text)
    is_(re.search(r'compressed files: *(\d+)', text)[1], '1', 'compressed')
    for title in ('Original file size distribution:', 'On-disk file size distribution:',
                  'File type distribution:'):
        check(title in text, 'no ' + title)
    check('nan' not in text, 'nan')


@test('-S: an image without file data has a rate of 100.00%')
def _():
    text = out('-S', save(mkimg.build(mkimg.Dir({})))).decode()
    check(re.search(r'compress rate: +100\.00%', text) and 'nan' not in text, text)


@test('inode block of --path and --nid: the same, with all fields')
def _():
    text = out('--path=/dir', plain(), env={'TZ': 'UTC'}).decode()
    is_(text, out('--nid=%d' % nid('dir'), plain(), env={'TZ': 'UTC'}).decode(), 'by nid')
    for pattern in (r'^Path : /dir$', r'^Size: \d+ +On-disk size: \d+ +directory$',
                    r'^NID: %d +Links: 3 +Layout: 2 ' % nid('dir'),
                    r'^Inode size: 64 +Xattr size: 0$', r'^Uid: 0 +Gid: 0 +Access: 0750/rwxr-x---$',
                    r'^Timestamp: 2009-02-13 23:31:30\.987654321$'):
        check(re.search(pattern, text, re.M), pattern, text)


@test('inode block: the word for each type, and size 0 gives 100.00%')
def _():
    for name, word in (('one', 'regular file'), ('link', 'symlink file'), ('fifo', 'FIFO file'),
                       ('socket', 'SOCK file'), ('empty', 'regular file')):
        text = out('--path', '/' + name, plain()).decode()
        check(word in text and 'nan' not in text, name, text)
    check('100.00%' in out('--path=/empty', plain()).decode())


@test('C15: "NID:" of / is a number; --cat gives the bytes; a missing file is not 0')
def _():
    check(re.search(r'NID: (\d+)', out('--path=/', plain()).decode()))
    root = samples.plain()[1]
    for name in ('one', 'big', 'runs', 'holes', 'empty', 'dir/in'):
        node = root
        for part in name.split('/'):
            node = node.entries[part]
        is_(out('--cat', '--path=/' + name, plain()), samples.contents(node, 4096), name)
    is_(out('--cat', '--path=/link', plain()), b'dir/in', 'link: its target')
    is_(out('--cat', '--nid=%d' % nid('one'), plain()), b'hello\n', 'by nid')
    expect(dump('--cat', '--path=/no', plain()), 1)


@test('--cat: a directory is an error, a FIFO gives nothing')
def _():
    expect(dump('--cat', '--path=/dir', plain()), {1, 2})
    is_(out('--cat', '--path=/fifo', plain()), b'', 'FIFO')


@test('--cat with -s, -S, -e, --ls is a usage error')
def _():
    for word in ('-s', '-S', '-e', '--ls'):
        usage('--cat', '--path=/one', word, plain())


@test('--cat: a closed pipe ends it by SIGPIPE without a message')
def _():
    process = subprocess.Popen([DUMP, '--cat', '--path=/f000', samples.long_run()[0]],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    text = process.stderr.read()
    is_((process.wait(20), text), (-13, b''), 'status and stderr')


@test('--ls: header, rows of NID, type, name; order as stored; nothing behind the name')
def _():
    text = out('--ls', '--path=/dir', plain())
    lines = text.split(b'\n')
    at = lines.index(b'       NID TYPE  FILENAME')
    is_(lines[at - 1], b'', 'line before the header')
    rows = [b'%10d %4d  %s' % row for row in (
        (nid('dir'), 2, b'.'), (1, 2, b'..'), (nid('dir/deep'), 2, b'deep'),
        (nid('dir/in'), 1, b'in'))]
    is_(lines[at + 1:], rows + [b''], 'rows')


@test('C13: --ls --path=/ and --ls --path /dir contain the names, status 0')
def _():
    check(b'dir\n' in out('--ls', '--path=/', plain()))
    check(b'deep\n' in out('--ls', '--path', '/dir', plain()))
    check(b'deep\n' in out('--ls', '--path', 'dir', plain()))
    is_(out('--ls', '--nid=%d' % nid('dir'), plain()), out('--ls', '--path=/dir', plain()), 'nid')


@test('C16: a walk by --ls --nid finds every name')
def _():
    seen, pending = set(), [(1, b'')]
    while pending:
        number, path = pending.pop()
        text = out('--ls', '--nid=%d' % number, plain())
        for line in text.split(b'FILENAME\n')[1].splitlines():
            child, kind, name = line.split(None, 2)
            if name not in (b'.', b'..'):
                seen.add(path + b'/' + name)
                if kind == b'2':
                    pending.append((int(child), path + b'/' + name))
    wanted = {p[1:] for p in samples.picture(samples.plain()[1]) if p != b'.'}
    is_(seen, wanted, 'names')


@test('C17: --ls --recursive: full paths, one a line')
def _():
    result = dump('--ls', '--recursive', plain())
    if result.status == 2 and b'recursive' in result.err:
        raise Skip('--recursive belongs to the full dump.erofs')
    lines = expect(result, 0).out.splitlines()
    check(any(l.endswith(b'dir/deep/er') for l in lines), result)


@test('--ls of what is no directory: 1')
def _():
    expect(dump('--ls', '--path=/one', plain()), 1)


@test('-e: header, rows, total; a usage error without a target')
def _():
    text = out('-e', '--path=/runs', plain()).decode()
    lines = text.splitlines()
    at = lines.index(' Ext:   logical offset   |  length :     physical offset    |  length')
    is_(lines[at - 1], '', 'line before the header')
    runs = samples.plain()[1].entries['runs']
    rows, place = [], 0
    for number, ((_, count), at_disk) in enumerate(zip(runs.runs, runs.pclusters)):
        size = count * 4096
        rows.append('%4d: %8d..%8d | %7d : %10d..%10d | %7d' % (
            number, place, place + size, size, at_disk, at_disk + 4096, 4096))
        place += size
    is_(lines[at + 1:at + 3], rows, 'rows')
    is_(lines[-1], '/runs: 2 extents found', 'total')
    usage('-e', plain())


@test('-e: fragments are physical 0..0, other devices are named')
def _():
    text = out('-e', '--path=/a', tools.corpus('bad', 'base-frag.erofs')).decode()
    check(re.search(r': +0\.\. +0 \| +0', text), text)
    picture, parts, _ = samples.devices()
    text = out('-e', '--path=/b', *['--device=' + p for p in parts], picture).decode()
    check(re.search(r'# device 2$', text, re.M), text)


@test('--offset and --device')
def _():
    picture = tools.corpus('good', 'kinds-offset.erofs')
    check(b'fifo' in out('--ls', '--offset=12288', picture))
    expect(dump('--ls', picture), 2)
    picture, parts, root = samples.devices()
    text = out('--cat', '--path=/b', *['--device=' + p for p in parts], picture)
    is_(text, root.entries['b'].chunks[0], 'content')
    check(dump('--cat', '--path=/b', picture).status in (1, 2))


@test('status 2: usage, cannot open, not EROFS, bad superblock; messages have their prefix')
def _():
    usage('--no-such-option', plain())
    usage()
    usage(plain(), 'second')
    for path in ('/no/such/image', save(b''), save(bytes(9000)), '/'):
        samples.form_fault(expect(dump('-s', path), 2), 'dump.erofs')


@test('R7: -h and -V: stdout, status 0')
def _():
    check(len(out('-h')) > 300 and out('-h') == out('--help'))
    lines = out('-V').decode().splitlines()
    check(re.match(r'dump\.erofs \([^)]*\) \d+\.\d+', lines[0]), lines)
    is_(out('-V'), out('--version'), '--version')


@test('R9: each option name is a complete C string in the executable')
def _():
    with open(tools.binary(DUMP), 'rb') as file:
        data = file.read()
    for name in ('version', 'help', 'nid', 'path', 'ls', 'cat', 'device', 'offset', 'blkid-udev'):
        check(re.search(rb'(?<![\x20-\x7e])' + name.encode() + rb'\0', data), 'no string ' + name)


@test('every healthy image of the corpus: -s, -S, --ls end with 0')
def _():
    folder = tools.corpus('good')
    names = sorted(n for n in os.listdir(folder) if n.endswith('.erofs'))
    for name in names[::tools.SAMPLE]:
        words = ['--offset=12288'] if name == 'kinds-offset.erofs' else []
        for word in ('-s', '-S', '--ls'):
            result = expect(dump(word, *words, os.path.join(folder, name)), 0)
            check(not result.err and result.out, result)


@test('every damaged image of the corpus: ends in time, without a crash')
def _():
    folder = tools.corpus('bad')
    for name in sorted(n for n in os.listdir(folder) if n.endswith('.erofs'))[::tools.SAMPLE]:
        for words in (['-s'], ['-S'], ['--ls'], ['-e', '--path=/v'], ['--cat', '--path=/z']):
            if words[0] == '--cat' and name.startswith('bomb'):
                continue
            result = dump(*words, os.path.join(folder, name))
            check(not result.killed and result.status in (0, 1, 2), result)


main()
