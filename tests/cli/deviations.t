#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 12, V1 to V19: behaviour of the released tools that is not copied."""
import os
import re
import stat
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
from entrance import both  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, ROOT, dump, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def need_dump():
    if not DUMP:
        raise Skip('dump.erofs not found')


def bad_sum():
    image = mkimg.Image.load(samples.plain()[0])
    return save(bytes(image.put(mkimg.SB + 4, 'I', 1).data), 'sum')


@test('V1: bad superblock checksum: status 4; --no-sbcrc goes on')
def _():
    expect(fsck(bad_sum()), 4, r'(?i)checksum')
    expect(fsck('--no-sbcrc', bad_sum()), 0)


@test('V2: dump.erofs: missing path and nid 1, damaged --cat 1, full stdout 2')
def _():
    need_dump()
    picture = samples.plain()[0]
    expect(dump('--path=/no/such', picture), 1)
    expect(dump('--cat', '--path=/no/such', picture), 1)
    expect(dump('--nid=999999', picture), 1)
    expect(dump('--cat', '--path=/f05', samples.damaged()[0]), 1)
    with open('/dev/full', 'wb') as full:
        expect(dump('-s', picture, stdout=full), 2)
    with open('/dev/full', 'wb') as full:
        expect(dump('--cat', '--path=/big', picture, stdout=full), 2)


@test('V3: dump.erofs -s warns of a bad checksum and goes on; the rest needs --no-sbcrc')
def _():
    need_dump()
    result = expect(dump('-s', bad_sum()), 0, r'^<W> erofs: .*(?i:checksum)')
    check(b'Filesystem magic number:' in result.out, result)
    for words in (['-S'], ['--ls'], ['--path=/one']):
        expect(dump(*words, bad_sum()), 2)
        expect(dump('--no-sbcrc', *words, bad_sum()), 0)


@test('V4: 1 is never the status')
def _():
    for words, path in (([], '/no/such'), (['--extract'], samples.damaged()[0]), (['--bad'], 'x'),
                        ([], save(b''))):
        check(fsck(*words, path).status in (4, 8, 12, 16), words)


@test('V5: -n and -f are accepted')
def _():
    expect(fsck('-n', '-f', samples.plain()[0]), 0, silent=True)
    expect(fsck('-nf', samples.plain()[0]), 0, silent=True)


@both('V6: no short file under its final name after an error')
def _(tool):
    target = fresh()
    expect(tool.run('--extract=' + target, samples.damaged()[0]), tool.status(4))
    check('f05' not in os.listdir(target), 'f05 is there')


@both('V7: capabilities survive the change of owner')
def _(tool):
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('the scratch file system has no extended attributes')
    target = fresh()
    expect(tool.run('--extract=' + target, '--xattrs', samples.xattrs()[0]), 0)
    for name in ('cap', 'cap1000'):
        is_(os.getxattr(os.path.join(target, name), 'security.capability'), samples.CAPABILITY,
            name)


@both('V8: --overwrite replaces existing hard links')
def _(tool):
    target = fresh()
    picture, root = samples.plain()
    for _ in range(2):
        expect(tool.run('--extract=' + target, '--overwrite', picture), 0)
        samples.same(root, target, owner=ROOT, mode=ROOT)


@both('V9: set-user-id does not survive --no-preserve')
def _(tool):
    target = fresh()
    picture = save(mkimg.build(mkimg.Dir({'su': mkimg.File(b'x', mode=0o4755)})))
    expect(tool.run('--extract=' + target, '--no-preserve', picture), 0)
    mode = os.stat(os.path.join(target, 'su')).st_mode
    check(not mode & (stat.S_ISUID | stat.S_ISGID), oct(mode))


@test('V13: -p prints the ratio at the default level')
def _():
    for words in (['-p'], ['-p', '--extract'], ['-p', '-d3']):
        expect(fsck(*words, samples.plain()[0]), 0,
               r'^<I> erofs: Compression ratio: \d+\.\d\d\(%\)$')


@test('V14: dump.erofs --ls alone lists the root; --cat alone is a usage error')
def _():
    need_dump()
    result = expect(dump('--ls', samples.plain()[0]), 0)
    check(b'fifo\n' in result.out and b'Filesystem magic' not in result.out, result)
    result = expect(dump('--cat', samples.plain()[0]), 2)
    check(not result.out, result)


@test('V15: Access: shows set-user-id, set-group-id and sticky bits')
def _():
    need_dump()
    picture = save(mkimg.build(mkimg.Dir({'su': mkimg.File(b'x', mode=0o4755),
                                          'sg': mkimg.File(b'x', mode=0o2711),
                                          't': mkimg.Dir({}, mode=0o1777)})))
    for name, text in (('su', '4755/rwsr-xr-x'), ('sg', '2711/rwx--s--x'), ('t', '1777/rwxrwxrwt')):
        result = expect(dump('--path=/' + name, picture), 0)
        check(text.encode() in result.out, text, result)


@both('V18: a target without extended attributes: counted warning, status 0; --strict fails')
def _(tool):
    tools.need_root()
    picture, root = samples.xattrs()
    with tools.Mount('-t', 'ramfs', 'ramfs') as where:
        target = os.path.join(where, 'x')
        try:
            os.setxattr(where, 'user.probe', b'1')
            raise Skip('ramfs takes user attributes here')
        except OSError:
            pass
        result = expect(tool.run('--extract=' + target, '--xattrs', picture), 0, r'^<W> erofs: ')
        lines = [l for l in result.text.splitlines() if re.match('<W>', l)]
        check(len(lines) <= 3, 'one line per file', result)
        wanted = samples.picture(root)
        for entry in wanted.values():
            entry.xattrs = {}
        samples.same(root, target, wanted, xattrs=False)
        expect(tool.run('--extract=' + os.path.join(where, 'y'), '--xattrs', '--strict', picture),
               tool.status(8))


@test('V19: -S has a bound on looping directories')
def _():
    need_dump()
    for name in ('dirent-cycle-root', 'dirent-cycle-self', 'dir-exponential'):
        result = dump('-S', tools.corpus('bad', name + '.erofs'))
        check(not result.killed and result.status in (0, 1, 2), result)


main()
