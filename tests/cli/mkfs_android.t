#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs: the options that Android's image makers pass (cli.md 7, 10: C18, C19, C26)."""
import io
import os
import re
import struct
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import dump, expect, fresh, fsck, make  # noqa: E402

tools.need(tools.MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')

UUID = '01234567-89ab-cdef-0123-456789abcdef'
CONFIG = '''vendor 0 2000 0755
vendor/bin 0 2000 0751
vendor/bin/sh 0 2000 0755 capabilities=0x0
vendor/bin/ping 1000 3003 4750 selabel=u:object_r:ping_exec:s0 capabilities=0x2000003000
vendor/build.prop 0 0 600

vendor/not/there 1 2 0644
'''
CONTEXTS = '''# labels
/vendor(/.*)?        u:object_r:vendor_file:s0
/vendor/bin/[^/]+ -- u:object_r:vendor_exec:s0
/vendor/bin/sh    -- u:object_r:shell_exec:s0
/vendor/build\\.prop  <<none>>
'''


def source():
    top = fresh('src', make=True, mode=0o700)
    for name, data in (('bin/sh', b's' * 9000), ('bin/ping', b'p'), ('build.prop', b'b' * 4096)):
        forest.write(os.path.join(top, name), data)
    return top


def written(text, name='file'):
    return tools.save(text.encode(), name)


def members(image):
    expect(fsck('--workers=2', '--strict', image), 0, silent=True)
    with tarfile.open(fileobj=io.BytesIO(expect(dump('--to-tar', image), 0).out)) as tar:
        return {m.name: m for m in tar}


def attribute(info, name):
    return info.pax_headers.get('SCHILY.xattr.' + name)


def labels_work():
    result = make('--quiet', '--file-contexts=' + written(CONTEXTS), fresh('img'), source())
    if 'libselinux, which is not there' in result.text:
        raise Skip('built without libselinux')


def owners(image):
    return {name: (m.uid, m.gid, m.mode) for name, m in members(image).items()}


WANTED = {'.': (0, 2000, 0o755), 'bin': (0, 2000, 0o751), 'bin/sh': (0, 2000, 0o755),
          'bin/ping': (1000, 3003, 0o4750), 'build.prop': (0, 0, 0o600)}


@test('C18: what calls with the files of an extracted image: owners, modes, capabilities, labels')
def _():
    labels_work()
    image = fresh('img')
    expect(make('-T', '1700000000', '--mount-point=/vendor', '--fs-config-file=' + written(CONFIG),
                '--file-contexts=' + written(CONTEXTS), '--product-out=' + fresh('out'), image, source()), 0)
    is_(owners(image), WANTED)
    found = members(image)
    label = 'security.selinux'
    is_([attribute(found[n], label) for n in ('.', 'bin', 'bin/sh', 'bin/ping', 'build.prop')],
        ['u:object_r:vendor_file:s0', 'u:object_r:vendor_file:s0', 'u:object_r:shell_exec:s0',
         'u:object_r:vendor_exec:s0', None])
    caps = attribute(found['bin/ping'], 'security.capability').encode('utf-8', 'surrogateescape')
    is_(caps, struct.pack('<5I', 0x02000001, 0x3000, 0, 0x20, 0))
    is_(attribute(found['bin/sh'], 'security.capability'), None)
    after = fresh('img')
    expect(make('-Uclear', after, source(), '-T', '5', '--mount-point=/vendor', '--fs-config-file', written(CONFIG)), 0)
    is_(owners(after), WANTED)


@test('C19: AOSP: two-word options in its order, operands last')
def _():
    labels_work()
    image, blocks = fresh('img'), fresh('list')
    expect(make('-b', '4096', '--mount-point', '/vendor', '--product-out', fresh('out'), '--fs-config-file',
                written(CONFIG), '--file-contexts', written(CONTEXTS), '-T', '1230768000', '-U', UUID,
                '--block-list-file', blocks, '--chunksize', '4096', image, source()), 0)
    is_(owners(image), WANTED)
    check(os.path.getsize(blocks))


@test('C26: microvm.nix: --all-root -L nix-store --mount-point=/nix/store; a mount point alone changes nothing')
def _():
    top, one, two = source(), fresh('img'), fresh('img')
    words = ['-Uclear', '-T', '0', '--quiet', '--all-root', '-L', 'nix-store']
    expect(make(*words, '--mount-point=/nix/store', one, top), 0, silent=True)
    expect(make(*words, two, top), 0, silent=True)
    with open(one, 'rb') as a, open(two, 'rb') as b:
        is_(a.read() == b.read(), True)


@test('--mount-point: slashes around it do not matter; / is the root, whatever lists call that')
def _():
    for mount in ('vendor', '/vendor/', '//vendor//'):
        image = fresh('img')
        expect(make('--quiet', '--mount-point=' + mount, '--fs-config-file=' + written(CONFIG), image, source()), 0,
               silent=True)
        is_(owners(image), WANTED, mount)
    plain = CONFIG.replace('vendor/', '/')
    for root in ('/ ', ' ', '/ \t'):
        for words in ([], ['--mount-point=/'], ['--mount-point=']):
            image = fresh('img')
            expect(make('--quiet', *words, '--fs-config-file=' + written(plain.replace('vendor ', root)), image,
                        source()), 0, silent=True)
            is_(owners(image), WANTED, root)


@test('lists that do not know a file: an error that names it; a bad line: one that names file and line')
def _():
    for config, wanted in ((CONFIG.replace('vendor/bin/ping', 'vendor/bin/pong'), 'vendor/bin/ping: has no line'),
                           (CONFIG.replace('vendor 0', 'odm 0'), 'vendor: has no line'),
                           (CONFIG + 'vendor/x\n', 'LIST:8: no owner'), ('vendor 0\n', 'LIST:1: no group'),
                           ('\n\nvendor 0 0\n', 'LIST:3: no mode'), ('vendor 0 0 0888\n', 'LIST:1: no mode'),
                           ('vendor 0 0 010000\n', 'LIST:1: no mode'), ('vendor -1 0 0755\n', 'LIST:1: no owner'),
                           ('vendor 0 4294967296 0755\n', 'LIST:1: no group'),
                           ('vendor 0 0 0755 caps=1\n', 'LIST:1: neither'),
                           ('vendor 0 0 0755 capabilities=x\n', 'LIST:1: neither'),
                           (CONFIG + 'vendor/bin 0 2000 0755\n', 'LIST:8: .*line 2')):
        image, path = fresh('img'), written(config)
        expect(make('--quiet', '--mount-point=/vendor', '--fs-config-file=' + path, image, source()), 1,
               wanted.replace('LIST', re.escape(path)))
        check(not os.path.exists(image), config)
    nowhere = fresh('nowhere')
    expect(make('--quiet', '--fs-config-file=' + nowhere, fresh('img'), source()), 1, re.escape(nowhere))


@test('--file-contexts: a bad line or expression names file and line, on one line of stderr')
def _():
    labels_work()
    for contexts, line in (('/x\n', 1), ('/a b\n/x -- y z\n', 2), ('/x -q y\n', 1),
                           ('/vendor(/.*)? u:object_r:a:s0\n/vendor/(bin u:object_r:b:s0\n', 2)):
        image, path = fresh('img'), written(contexts)
        result = expect(make('--quiet', '--mount-point=/vendor', '--file-contexts=' + path, image, source()), 1,
                        '^<E> erofs: %s:%d: ' % (re.escape(path), line))
        is_(len(result.text.splitlines()), 2, result.text)
        check(not os.path.exists(image), contexts)


@test('files that say nothing of an attribute keep it; those that do replace it; -x -1 leaves all out')
def _():
    labels_work()
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('no xattrs here')
    top = source()
    os.setxattr(os.path.join(top, 'bin/sh'), 'security.capability', struct.pack('<5I', 0x02000001, 1, 0, 0, 0))
    os.setxattr(os.path.join(top, 'bin/sh'), 'user.x', b'kept')
    lists = ['--mount-point=/vendor', '--fs-config-file=' + written(CONFIG), '--file-contexts=' + written(CONTEXTS)]
    for words, wanted in (([], (True, 'kept', False)), (lists, (False, 'kept', True)),
                          (lists + ['-x', '-1'], (False, None, False))):
        image = fresh('img')
        expect(make('--quiet', *words, image, top), 0, silent=True)
        info = members(image)['bin/sh']
        is_((attribute(info, 'security.capability') is not None, attribute(info, 'user.x'),
             attribute(info, 'security.selinux') is not None), wanted, str(words))


@test('--product-out alone (C18, C19 pass more): refused, and the message says what is needed instead')
def _():
    image = fresh('img')
    for words in (['--product-out=x'], ['--product-out', 'x', '--mount-point=/vendor']):
        expect(make(*words, image, source()), 1, 'not implemented.*--android-config')
        check(not os.path.lexists(image), words)


@test('--block-list-file: PATH and blocks as the image has them, links too, nothing without blocks')
def _():
    top = source()
    forest.write(os.path.join(top, 'empty'), b'')
    os.link(os.path.join(top, 'bin/sh'), os.path.join(top, 'link'))
    for words, mount in ((['--mount-point=/vendor'], '/vendor'), ([], ''), (['-Enoinline_data'], '')):
        image, path = fresh('img'), fresh('list')
        expect(make('--quiet', '-T0', *words, '--block-list-file=' + path, image, top), 0, silent=True)
        with open(path) as file:
            lines = dict(line.rstrip('\n').split(' ', 1) for line in file)
        plain = '-Enoinline_data' in words
        names = {'/bin/sh', '/link', '/build.prop'} | ({'/bin/ping'} if plain else set())
        is_(set(lines), {mount + name for name in names}, str(words))
        is_(lines[mount + '/bin/sh'], lines[mount + '/link'])
        with open(image, 'rb') as file:
            raw = file.read()
        for name, data in (('/bin/sh', b's' * (9000 if plain else 8192)), ('/build.prop', b'b' * 4096)):
            first, _, last = lines[mount + name].partition('-')
            first, last = int(first), int(last or first)
            is_(last - first + 1, -(-len(data) // 4096))
            is_(raw[first * 4096:first * 4096 + len(data)] == data, True, name)
    expect(make('--quiet', '--block-list-file=/no/such/place', image, top), 1, '/no/such/place')


@test('--block-list-file: a run that cannot write it leaves the old image')
def _():
    image = tools.save(b'old')
    expect(make('--quiet', '--block-list-file=/no/such/place', image, source()), 1, '/no/such/place')
    with open(image, 'rb') as file:
        is_(file.read(), b'old')
    if os.path.exists('/dev/full'):
        expect(make('--quiet', '--block-list-file=/dev/full', image, source()), 1, '/dev/full')


@test('the lists hold for archives too; what is missing in the archive has to be in the list')
def _():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, data in (('bin/sh', b's' * 9000), ('bin/ping', b'p'), ('build.prop', b'b')):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    image = fresh('img')
    result = make('--quiet', '--tar=f', '--mount-point=/vendor', '--fs-config-file=' + written(CONFIG), image,
                  tools.save(out.getvalue()))
    if 'libarchive, which is not there' in result.text:
        raise Skip('built without libarchive')
    expect(result, 0, silent=True)
    is_(owners(image), WANTED)


main()
