#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""fsck.erofs --verify=dir: with Android's view of the folder (cli.md 7, 8): owners, modes, capabilities and labels
are those of fs_config and file_contexts, as mkfs.erofs takes them."""
import os
import re
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
from tap import Skip, is_, main, test  # noqa: E402
from tools import expect, fresh, fsck, make  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')

CONFIG = '''vendor 0 2000 0755
vendor/bin 0 2000 0751
vendor/bin/sh 0 2000 0755
vendor/bin/ping 1000 3003 4750 capabilities=0x2000003000
vendor/bin/link 7 7 0644
vendor/bin/deep 0 0 0755
vendor/bin/deep/a 8 8 0600
vendor/bin/sym 0 2000 0777
vendor/big 0 0 0600
'''
CONTEXTS = '''/vendor(/.*)?        u:object_r:vendor_file:s0
/vendor/bin/[^/]+ -- u:object_r:vendor_exec:s0
/vendor/bin/sym -l   u:object_r:vendor_link:s0
/vendor/big          <<none>>
'''
BIG = b'large enough to be compared in ranges\n' * 100000


def source():
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('no extended attributes in the scratch folder')
    top = fresh('src', make=True, mode=0o700)
    for name, data in (('bin/sh', b's' * 9000), ('bin/ping', b'p'), ('bin/link', b'one'), ('big', BIG)):
        forest.write(os.path.join(top, name), data)
    os.mkdir(os.path.join(top, 'bin/deep'))
    # the deeper name is the smaller one, and still not the first
    os.link(os.path.join(top, 'bin/link'), os.path.join(top, 'bin/deep/a'))
    os.symlink('sh', os.path.join(top, 'bin/sym'))
    for name in ('bin/sh', 'big'):
        path = os.path.join(top, name)
        os.setxattr(path, 'security.capability', struct.pack('<5I', 0x02000001, 1, 0, 0, 0))
        os.setxattr(path, 'security.selinux', b'u:object_r:of_the_builder:s0')
        os.setxattr(path, 'user.x', b'kept')
    return top


def written(text, name='list'):
    return tools.save(text.encode(), name)


def lists(config=CONFIG, contexts=CONTEXTS):
    words = ['--mount-point=/vendor']
    words += ['--fs-config-file=' + written(config)] if config else []
    return words + (['--file-contexts=' + written(contexts)] if contexts else [])


def image(top, *words):
    picture = fresh('img')
    result = make('--quiet', '-Eforce-inode-extended', *words, picture, top)
    if 'libselinux, which is not there' in result.text:
        raise Skip('built without libselinux')
    expect(result, 0, silent=True)
    return picture


LINE = re.compile(r'<E> erofs: \S+: (/\S*): (\S+) \((.*), (.*)\)')


def differences(picture, top, *words, status=4):
    found = [[m.groups() for m in map(LINE.fullmatch, expect(fsck(
        '--verify=dir:' + top, '--workers=' + w, *words, picture), status).text.splitlines()) if m]
        for w in tools.WORKERS]
    is_(found[1:], found[:-1], 'the same for every worker setting')
    return sorted(found[0])


@test('what mkfs.erofs made with the lists is what the folder is with them; workers, layouts')
def _():
    top = source()
    for words in ([], ['-zlz4'], ['-zlz4hc', '-C65536', '-Eall-fragments,ztailpacking']):
        for names in (lists(), lists(contexts=None), lists(config=None)):
            picture = image(top, *words, *names)
            for workers in tools.WORKERS:
                expect(fsck('--verify=dir:' + top, '--workers=' + workers, *names, picture), 0, silent=True)
    expect(fsck('--verify=dir:' + top, '--mount-point', 'vendor/', '--product-out', fresh('out'), *lists()[1:], image(
        top, *lists())), 0, silent=True)
    plain = image(top)
    expect(fsck('--verify=dir:' + top, '--mount-point=/vendor', plain), 0, silent=True)


@test('one line changed: named, and nothing else')
def _():
    top = source()
    picture = image(top, *lists())
    xattr = 'xattr.security.'
    for old, new, wanted in (
            ('bin/sh 0 2000', 'bin/sh 1 2000', [('/bin/sh', 'uid', '0', '1')]),
            ('bin/sh 0 2000', 'bin/sh 0 2001', [('/bin/sh', 'gid', '2000', '2001')]),
            ('bin/sym 0', 'bin/sym 5', [('/bin/sym', 'uid', '0', '5')]),
            ('vendor 0 2000 0755', 'vendor 0 2000 0711', [('/', 'mode', '0755', '0711')]),
            ('3003 4750', '3003 0750', [('/bin/ping', 'mode', '4750', '0750')]),
            ('0x2000003000', '0x2000003001', [('/bin/ping', xattr + 'capability',
                                               '0x0100000200300000000000002000000000000000',
                                               '0x0100000201300000000000002000000000000000')]),
            (' capabilities=0x2000003000', '', [('/bin/ping', xattr + 'capability',
                                                 '0x0100000200300000000000002000000000000000', 'none')]),
            ('big 0 0 0600', 'big 0 9 0600', [('/big', 'gid', '0', '9')]),
            # both names are one inode, which has what the first of them says
            ('link 7 7', 'link 6 7', [('/bin/deep/a', 'uid', '7', '6'), ('/bin/link', 'uid', '7', '6')]),
            ('deep/a 8 8 0600', 'deep/a 9 9 0700', [])):
        is_(CONFIG.count(old), 1, old)
        names = lists(CONFIG.replace(old, new))
        is_(differences(picture, top, *names, status=4 if wanted else 0), wanted, new)
    for old, new, wanted in (
            ('vendor_link', 'other', [('/bin/sym', xattr + 'selinux', 'u:object_r:vendor_link:s0',
                                       'u:object_r:other:s0')]),
            ('<<none>>', 'u:object_r:big:s0', [('/big', xattr + 'selinux', 'none', 'u:object_r:big:s0')])):
        is_(differences(picture, top, *lists(contexts=CONTEXTS.replace(old, new))), wanted, new)


@test('without the lists all that they said is a difference')
def _():
    top = source()
    found = differences(image(top, *lists()), top)
    is_(('/bin/sh', 'gid', '2000', '0') in found, True, str(found))
    is_(('/bin/sh', 'xattr.security.selinux', 'u:object_r:vendor_exec:s0', 'u:object_r:of_the_builder:s0') in found,
        True, str(found))
    is_([d for d in found if d[1] in ('data', 'size', 'link', 'xattr.user.x', 'hardlink', 'time')], [])


@test('a file that has no line: an error that names it, 8, and the rest is compared')
def _():
    top = source()
    picture = image(top, *lists())
    names = lists(CONFIG.replace('vendor/bin/ping', 'vendor/bin/pong').replace('bin/sh 0 2000', 'bin/sh 0 2001'))
    result = expect(fsck('--verify=dir:' + top, *names, picture), (8, 12), 'vendor/bin/ping: has no line in ' +
                    re.escape(names[1].split('=')[1]), '/bin/sh: gid')
    is_(result.text.count('has no line'), 1, result.text)


@test('a bad line is an error with file and line number: 8')
def _():
    top = source()
    picture = image(top)
    for config, wanted in ((CONFIG + 'vendor/x\n', 'LIST:10: no owner'), ('vendor 0\n', 'LIST:1: no group'),
                           ('\n\nvendor 0 0\n', 'LIST:3: no mode'), ('vendor 0 0 0755 caps=1\n', 'LIST:1: neither'),
                           (CONFIG + 'vendor/bin 0 2000 0755\n', 'LIST:10: .*line 2')):
        path = written(config)
        expect(fsck('--verify=dir:' + top, '--mount-point=/vendor', '--fs-config-file=' + path, picture), 8,
               wanted.replace('LIST', re.escape(path)))
    for contexts, line in (('/x\n', 1), ('/a b\n/x -- y z\n', 2), ('/x -q y\n', 1)):
        path = written(contexts)
        expect(fsck('--verify=dir:' + top, '--file-contexts=' + path, picture), 8,
               '%s:%d: ' % (re.escape(path), line))
    nowhere = fresh('nowhere')
    expect(fsck('--verify=dir:' + top, '--fs-config-file=' + nowhere, picture), 8, re.escape(nowhere))


@test('the options need --verify=dir:; --product-out alone is not implemented: 16')
def _():
    for word in ('--mount-point=/x', '--fs-config-file=x', '--file-contexts=x', '--product-out=x'):
        for words in ([], ['--verify=tar:x'], ['--verify=mtree:x']):
            expect(fsck(*words, word, 'image'), 16, '%s needs --verify=dir' % word.split('=')[0])
    expect(fsck('--verify=dir:x', '--product-out=x', 'image'), 16, 'not implemented')


main()
