#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R1 to R9: how the reading tools read their command lines; help and version."""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import samples  # noqa: E402
import tools  # noqa: E402
from entrance import both, entrances  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, dump, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')
FSCK_TOOL = entrances()[0]
OPTIONS = ('version help extract device force overwrite preserve preserve-owner preserve-perms '
           'no-preserve no-preserve-owner no-preserve-perms offset xattrs no-xattrs nid path '
           'no-sbcrc xattr-inode-digest').split()


def image():
    return samples.plain()[0]


def shifted(by):
    with open(image(), 'rb') as file:
        return save(b'\x5a' * by + file.read(), 'shifted')


def usage(tool, result, quoted=None):
    expect(result, tool.usage, r"^Try '%s --help' for more information\.$" % re.escape(tool.name))
    lines = result.text.splitlines()
    is_(len(lines), 2, 'lines of a usage error\n%s' % result)
    check(lines[0].startswith('<E> erofs: '), lines[0])
    if quoted is not None:
        check(quoted in lines[0], 'the argument %r is not quoted: %s' % (quoted, lines[0]))
    check(not result.out, 'stdout: %r' % result.out)
    return result


@both('R1: options after the operand')
def _(tool):
    target = fresh()
    expect(tool.run(image(), '-d0', '--extract=' + target), 0)
    samples.same(samples.plain()[1], target)


@both('R1: -- ends options')
def _(tool):
    odd = os.path.join(fresh('dir', make=True), '--force')
    os.link(image(), odd)
    expect(tool.run('-d0', '--', '--force', cwd=os.path.dirname(odd)), 0)


@both('R1: required arguments as --opt=X, --opt X, -dX and -d X')
def _(tool):
    moved = shifted(4096)
    for words in (['--offset=4096'], ['--offset', '4096'], ['-d0', '--offset=4096'],
                  ['-d', '0', '--offset', '4096']):
        expect(tool.run(*words, tool.decode(), moved), 0, silent=True)


@both('R1: --extract DIR IMAGE is refused with "did you mean --extract=DIR"')
def _(tool):
    folder = fresh('dir', make=True)
    result = usage(tool, tool.run('--extract', folder, image()))
    check('did you mean --extract=' in result.text, result)
    is_(os.listdir(folder), [], 'folder')


@both('R2: POSIXLY_CORRECT ends options at the first operand')
def _(tool):
    usage(tool, tool.run(image(), '-d0', env={'POSIXLY_CORRECT': '1'}), '-d0')
    expect(tool.run('-d0', image(), env={'POSIXLY_CORRECT': '1'}), 0)


@test('R3: every released option name is taken as it stands')
def _():
    target = fresh()
    expect(fsck('--force', '--overwrite', '--preserve', '--preserve-owner', '--preserve-perms',
                '--xattrs', '--no-xattrs', '--no-sbcrc', '--offset=0', '--path=/',
                '--extract=' + target, image()), 0)
    expect(fsck('--no-preserve', '--no-preserve-owner', '--no-preserve-perms',
                '--extract=' + fresh(), image()), 0)


@test('R3, R8: every released option name of dump.erofs is taken as it stands, and listed')
def _():
    if not DUMP:
        raise Skip('dump.erofs not found')
    text = expect(dump('--help'), 0).out.decode()
    for words in (['--version'], ['--help'], ['-V'], ['-h'], ['-s'], ['-S'], ['-e', '--path=/big'], ['--ls'],
                  ['--ls', '--path', '/dir'], ['--cat', '--path=/one'], ['--nid=1'], ['--blkid-udev'],
                  ['--offset=0'], ['-s', '-S', '-e', '--ls', '--path=/dir']):
        result = expect(dump(*words, image()), 0)
        check(result.out and not result.err, result)
        for word in words:
            check(not word.startswith('-') or word.split('=')[0] in text, '%s is not in --help' % word)
    for name in ('device', 'offset', 'nid', 'path'):
        check('--%s=' % name in text, '--%s= is missing' % name)


@both('R4: the last of a single-valued option wins')
def _(tool):
    expect(tool.run('--offset=1', '--offset=4096', tool.decode(), shifted(4096)), 0, silent=True)
    first, second = fresh(), fresh()
    expect(tool.run('--extract=' + first, '--extract=' + second, image()), 0)
    check(os.path.isdir(second) and not os.path.exists(first), 'the first target was used')


@both('R4: --device adds up, in order')
def _(tool):
    picture, parts, root = samples.devices()
    target = fresh()
    expect(tool.run('--device=' + parts[0], '--device', parts[1], '--extract=' + target, picture), 0)
    samples.same(root, target)


@both('R5: decimal, hex, octal and suffixed numbers for --offset')
def _(tool):
    moved = shifted(12288)
    for number in ('12288', '0x3000', '0X3000', '030000', '12K', '12KiB'):
        expect(tool.run('--offset=' + number, tool.decode(), moved), 0, silent=True)


@both('R5: decimal, hex and octal numbers for --nid')
def _(tool):
    import mkimg
    nid = mkimg.Image.load(image()).find('dir').nid
    for number in ('%d' % nid, '0x%x' % nid, '0%o' % nid):
        target = fresh()
        expect(tool.run('--nid=' + number, '--extract=' + target, image()), 0)
        is_(sorted(os.listdir(target)), ['deep', 'in'], '--nid=' + number)


for option in ('--offset', '--nid', '--workers', '-d'):
    for value in ('99999999999999999999', '-1', '12x', 'x', ''):
        if option == '-d' and not value:
            continue

        @both('R5: %s=%s is a usage error' % (option, value or '(empty)'))
        def _(tool, option=option, value=value):
            words = [option + value] if option == '-d' else [option + '=' + value]
            usage(tool, tool.run(*words, image()), value)


@both('R6: unknown options, long and short, are usage errors that quote them')
def _(tool):
    usage(tool, tool.run('--no-such-option', image()), '--no-such-option')
    usage(tool, tool.run('-Z', image()), 'Z')


@test('R6: a mistyped option is answered with the nearest one, and with nothing if none is near')
def _():
    for word, meant in (('--extrct', 'extract'), ('--extrct=x', 'extract'), ('--ovewrrite', 'overwrite'),
                        ('--nids', 'nid'), ('--ofset=4', 'offset'), ('--no-sbcsr', 'no-sbcrc')):
        text = usage(FSCK_TOOL, fsck(word, image()), word).text
        check("unknown option '%s'; did you mean --%s?\n" % (word, meant) in text, text)
    for word in ('--xyzzy', '--', '--' + 'x' * 500):
        if word != '--':
            check('did you mean' not in usage(FSCK_TOOL, fsck(word, image())).text, word)
    usage(FSCK_TOOL, fsck('--pres', image()), "ambiguous option '--pres'")


@test('R3: a unique prefix is taken, an exact name wins over longer ones')
def _():
    expect(fsck('--extr', '--overw', '--xattr-inode', '--help', image()), 0)
    expect(fsck('--preserve', '--xattrs', '--extract', image()), 0, silent=True)


@both('R8: --help fits a screen; --help=all describes each option')
def _(tool):
    short, full = (expect(tool.run(w), 0).out.decode() for w in ('--help', '--help=all'))
    check(len(short.splitlines()) <= 24, short)
    is_([l for l in short.splitlines() if len(l) > 80], [], 'wider than a screen')
    wide = [l for l in short.splitlines() + full.splitlines() if len(l) > 100]
    is_(wide, [], 'lines too long')
    names = [set(re.findall(r'--(?:\[no-\])?[a-z][a-z-]+', t)) for t in (short, full)]
    is_(sorted(names[1] - names[0]), [], 'named by --help=all alone')
    for line in full.splitlines():
        if re.match(r' +-', line):
            check(re.match(r' +-.*\S  ?\S', line), 'no description: ' + line)
    usage(tool, tool.run('--help=some', image()), 'some')


@test('R6: --verify names what to compare with, --verify-only what of it')
def _():
    for value in ('.', 'dir:', 'folder:.', ''):
        usage(FSCK_TOOL, fsck('--verify=' + value, image()), 'dir:PATH')
    for value in ('modes', '', 'mode,', 'mode,,size'):
        usage(FSCK_TOOL, fsck('--verify=dir:.', '--verify-only=' + value, image()), 'verify-only')
    usage(FSCK_TOOL, fsck('--verify-only=mode', image()), '--verify-only needs --verify')
    usage(FSCK_TOOL, fsck('--verify=dir:.', '--extract=' + fresh(), image()), 'not with --extract=DIR')


@test('X10: --salvage needs a folder to extract to')
def _():
    usage(FSCK_TOOL, fsck('--salvage', image()), '--salvage needs --extract=DIR')


@both('R6: no image: missing argument: IMAGE')
def _(tool):
    check('missing argument: IMAGE' in usage(tool, tool.run()).text, 'text')


@test('R6: a second image: unexpected argument')
def _():
    check('unexpected argument: second' in usage(FSCK_TOOL, fsck(image(), 'second')).text, 'text')


@both('R6: --extract= with an empty value is a usage error')
def _(tool):
    usage(tool, tool.run('--extract=', image()))


@test('R6: --force and --overwrite need --extract=DIR')
def _():
    usage(FSCK_TOOL, fsck('--force', image()), '--force')
    usage(FSCK_TOOL, fsck('--overwrite', image()), '--overwrite')
    usage(FSCK_TOOL, fsck('--overwrite', '--extract', image()), '--overwrite')


@both('R6: -d without a number eats the image, and says that one is missing')
def _(tool):
    usage(tool, tool.run('-d', image()))


@both('R6: more devices than slots are refused, by fsck.erofs as a usage error')
def _(tool):
    picture, parts, _ = samples.devices()
    words = [*['--device=' + p for p in parts], '--device=' + parts[0], '--path=/a', picture]
    if tool.is_fsck:
        usage(tool, tool.run(*words))
    else:
        expect(tool.run(*words), 2, '3 extra devices given, the image has 2')


@both('R7: --help and -h: stdout, status 0')
def _(tool):
    for word in ('-h', '--help'):
        result = expect(tool.run(word), 0)
        check(len(result.out) > 500 and not result.err, result)


@both('R7: --version and -V: stdout, status 0, a release of erofs-utils first')
def _(tool):
    for word in ('-V', '--version'):
        result = expect(tool.run(word), 0)
        lines = result.out.decode().splitlines()
        found = re.match(re.escape(tool.name) + r' \([^)]*\) (\d+)\.(\d+)(\.\d+)?$', lines[0])
        check(found and (int(found[1]), int(found[2])) >= (1, 8), 'first line', lines[0])
        check(re.match(r'available decompressors: [a-z0-9]+(, [a-z0-9]+)*$', lines[1]), lines[1])
        check(len(lines) >= 3, 'our own version on a line of its own')
        check(not result.err, result)


@both('R7: help wins over a missing image, and an image is not opened for it')
def _(tool):
    expect(tool.run('--help', '/no/such/image'), 0)


@test('R8: help lists every option, those with a value as --name=')
def _():
    text = fsck('--help').out.decode()
    for name in OPTIONS:
        if name not in ('preserve', 'no-preserve') and not name.startswith(('no-', 'preserve-')):
            check('--' + name in text or '--[no-]' + name in text, '--%s is missing' % name)
    for name in ('device', 'offset', 'nid', 'path', 'workers', 'extract'):
        check('--%s=' % name in text or '--%s[=' % name in text, '--%s= is missing' % name)


@test('R9: each option name is a complete C string in the executable')
def _():
    with open(tools.binary(FSCK), 'rb') as file:
        data = file.read()
    for name in OPTIONS:
        pattern = rb'(?<![\x20-\x7e])' + re.escape(name.encode()) + rb'\0'
        check(re.search(pattern, data), 'no string %r' % name)


@both('--nid and --path: a subtree, one file, and what is not there')
def _(tool):
    target = fresh()
    expect(tool.run('--path=dir', '--extract=' + target, image()), 0)
    is_(sorted(os.listdir(target)), ['deep', 'in'], 'subtree')
    for word in ('/one', 'one', '//one', '/dir/../one', '/../one'):
        target = fresh()
        expect(tool.run('--path', word, '--extract=' + target, image()), 0)
        with open(target, 'rb') as file:
            is_(file.read(), b'hello\n', word)
    target = fresh()
    expect(tool.run('--path=/no/such', '--extract=' + target, image()), tool.status({4, 8}, 1), 'no/such')
    check(not os.path.lexists(target), 'target was made')


@both('--path wins over --nid')
def _(tool):
    import mkimg
    target = fresh()
    nid = mkimg.Image.load(image()).find('one').nid
    expect(tool.run('--nid=%d' % nid, '--path=/dir', '--extract=' + target, image()), 0)
    is_(sorted(os.listdir(target)), ['deep', 'in'], 'subtree')


@both('--workers takes percpu, percpu-hipri, unbound, auto, 0, 1 and numbers')
def _(tool):
    for word in ('percpu', 'percpu-hipri', 'unbound', 'auto', '0', '1', '3', '64'):
        result = expect(tool.run('--workers=' + word, tool.decode(), image()), 0)
        check(not result.out, result)
    usage(tool, tool.run('--workers=many', image()), 'many')


@both('--reserved-pages and --max-memory are taken, EROFS_WORKERS is a default')
def _(tool):
    expect(tool.run('--reserved-pages=64', image()), 0)
    expect(tool.run('--max-memory=64M', tool.decode(), image()), 0)
    expect(tool.run(tool.decode(), image(), env={'EROFS_WORKERS': '2'}), 0, silent=True)


main()
