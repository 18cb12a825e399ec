#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md, rules R1 to R9: how fsck.erofs reads its command line; help and version."""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import samples  # noqa: E402
import tools  # noqa: E402
from tap import check, is_, main, test  # noqa: E402
from tools import FSCK, expect, fresh, fsck, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')
OPTIONS = ('version help extract device force overwrite preserve preserve-owner preserve-perms '
           'no-preserve no-preserve-owner no-preserve-perms offset xattrs no-xattrs nid path '
           'no-sbcrc xattr-inode-digest').split()


def image():
    return samples.plain()[0]


def shifted(by):
    with open(image(), 'rb') as file:
        return save(b'\x5a' * by + file.read(), 'shifted')


def usage(result, quoted=None):
    expect(result, 16, r"^Try 'fsck\.erofs --help' for more information\.$")
    lines = result.text.splitlines()
    is_(len(lines), 2, 'lines of a usage error\n%s' % result)
    check(lines[0].startswith('<E> erofs: '), lines[0])
    if quoted is not None:
        check(quoted in lines[0], 'the argument %r is not quoted: %s' % (quoted, lines[0]))
    check(not result.out, 'stdout: %r' % result.out)
    return result


@test('R1: options after the operand')
def _():
    target = fresh()
    expect(fsck(image(), '-d0', '--extract=' + target), 0)
    samples.same(samples.plain()[1], target)


@test('R1: -- ends options')
def _():
    odd = os.path.join(fresh('dir', make=True), '--force')
    os.link(image(), odd)
    expect(fsck('-d0', '--', '--force', cwd=os.path.dirname(odd)), 0)


@test('R1: required arguments as --opt=X, --opt X, -dX and -d X')
def _():
    moved = shifted(4096)
    for words in (['--offset=4096'], ['--offset', '4096'], ['-d0', '--offset=4096'],
                  ['-d', '0', '--offset', '4096']):
        expect(fsck(*words, moved), 0, silent=True)


@test('R1: --extract DIR IMAGE is refused with "did you mean --extract=DIR"')
def _():
    folder = fresh('dir', make=True)
    result = usage(fsck('--extract', folder, image()))
    check('did you mean --extract=' in result.text, result)
    is_(os.listdir(folder), [], 'folder')


@test('R2: POSIXLY_CORRECT ends options at the first operand')
def _():
    usage(fsck(image(), '-d0', env={'POSIXLY_CORRECT': '1'}), '-d0')
    expect(fsck('-d0', image(), env={'POSIXLY_CORRECT': '1'}), 0)


@test('R3: every released option name is taken as it stands')
def _():
    target = fresh()
    expect(fsck('--force', '--overwrite', '--preserve', '--preserve-owner', '--preserve-perms',
                '--xattrs', '--no-xattrs', '--no-sbcrc', '--offset=0', '--path=/',
                '--extract=' + target, image()), 0)
    expect(fsck('--no-preserve', '--no-preserve-owner', '--no-preserve-perms',
                '--extract=' + fresh(), image()), 0)


@test('R4: the last of a single-valued option wins')
def _():
    expect(fsck('--offset=1', '--offset=4096', shifted(4096)), 0, silent=True)
    first, second = fresh(), fresh()
    expect(fsck('--extract=' + first, '--extract=' + second, image()), 0)
    check(os.path.isdir(second) and not os.path.exists(first), 'the first target was used')


@test('R4: --device adds up, in order')
def _():
    picture, parts, root = samples.devices()
    target = fresh()
    expect(fsck('--device=' + parts[0], '--device', parts[1], '--extract=' + target, picture), 0)
    samples.same(root, target)


@test('R5: decimal, hex, octal and suffixed numbers for --offset')
def _():
    moved = shifted(12288)
    for number in ('12288', '0x3000', '0X3000', '030000', '12K', '12KiB'):
        expect(fsck('--offset=' + number, moved), 0, silent=True)


@test('R5: decimal, hex and octal numbers for --nid')
def _():
    import mkimg
    nid = mkimg.Image.load(image()).find('dir').nid
    for number in ('%d' % nid, '0x%x' % nid, '0%o' % nid):
        target = fresh()
        expect(fsck('--nid=' + number, '--extract=' + target, image()), 0)
        is_(sorted(os.listdir(target)), ['deep', 'in'], '--nid=' + number)


for option in ('--offset', '--nid', '--workers', '-d'):
    for value in ('99999999999999999999', '-1', '12x', 'x', ''):
        if option == '-d' and not value:
            continue

        @test('R5: %s=%s is a usage error' % (option, value or '(empty)'))
        def _(option=option, value=value):
            words = [option + value] if option == '-d' else [option + '=' + value]
            usage(fsck(*words, image()), value)


@test('R6: unknown options, long and short, are usage errors that quote them')
def _():
    usage(fsck('--no-such-option', image()), '--no-such-option')
    usage(fsck('-Z', image()), 'Z')


@test('R6: a mistyped option is answered with the nearest one, and with nothing if none is near')
def _():
    for word, meant in (('--extrct', 'extract'), ('--extrct=x', 'extract'), ('--ovewrrite', 'overwrite'),
                        ('--nids', 'nid'), ('--ofset=4', 'offset'), ('--no-sbcsr', 'no-sbcrc')):
        text = usage(fsck(word, image()), word).text
        check("unknown option '%s'; did you mean --%s?\n" % (word, meant) in text, text)
    for word in ('--xyzzy', '--', '--' + 'x' * 500):
        if word != '--':
            check('did you mean' not in usage(fsck(word, image())).text, word)
    usage(fsck('--pres', image()), "ambiguous option '--pres'")


@test('R3: a unique prefix is taken, an exact name wins over longer ones')
def _():
    expect(fsck('--extr', '--overw', '--xattr-inode', '--help', image()), 0)
    expect(fsck('--preserve', '--xattrs', '--extract', image()), 0, silent=True)


@test('R8: --help fits a screen of 24 lines and 80 columns; --help=all describes each option')
def _():
    short, full = (expect(fsck(w), 0).out.decode() for w in ('--help', '--help=all'))
    check(len(short.splitlines()) <= 24, short)
    wide = [l for l in short.splitlines() + full.splitlines() if len(l) > 100]
    is_(wide, [], 'lines too long')
    names = [set(re.findall(r'--(?:\[no-\])?[a-z][a-z-]+', t)) for t in (short, full)]
    is_(sorted(names[1] - names[0]), [], 'named by --help=all alone')
    for line in full.splitlines():
        if re.match(r' +-', line):
            check(re.match(r' +-.*\S  ?\S', line), 'no description: ' + line)
    usage(fsck('--help=some', image()), 'some')


@test('R6: --verify names what to compare with, --verify-only what of it')
def _():
    for value in ('.', 'dir:', 'folder:.', ''):
        usage(fsck('--verify=' + value, image()), 'dir:PATH')
    for value in ('modes', '', 'mode,', 'mode,,size'):
        usage(fsck('--verify=dir:.', '--verify-only=' + value, image()), 'verify-only')
    usage(fsck('--verify-only=mode', image()), '--verify-only needs --verify')
    usage(fsck('--verify=dir:.', '--extract=' + fresh(), image()), 'not with --extract=DIR')


@test('X10: --salvage needs a folder to extract to')
def _():
    usage(fsck('--salvage', image()), '--salvage needs --extract=DIR')


@test('R6: no image: missing argument: IMAGE')
def _():
    check('missing argument: IMAGE' in usage(fsck()).text, 'text')


@test('R6: a second image: unexpected argument')
def _():
    check('unexpected argument: second' in usage(fsck(image(), 'second')).text, 'text')


@test('R6: --extract= with an empty value is a usage error')
def _():
    usage(fsck('--extract=', image()))


@test('R6: --force and --overwrite need --extract=DIR')
def _():
    usage(fsck('--force', image()), '--force')
    usage(fsck('--overwrite', image()), '--overwrite')
    usage(fsck('--overwrite', '--extract', image()), '--overwrite')


@test('R6: -d without a number eats the image, and says that one is missing')
def _():
    usage(fsck('-d', image()))


@test('R6: more devices than slots are a usage error')
def _():
    picture, parts, _ = samples.devices()
    usage(fsck(*['--device=' + p for p in parts], '--device=' + parts[0], picture))


@test('R7: --help and -h: stdout, status 0')
def _():
    for word in ('-h', '--help'):
        result = expect(fsck(word), 0)
        check(len(result.out) > 500 and not result.err, result)


@test('R7: --version and -V: stdout, status 0, a release of erofs-utils first')
def _():
    for word in ('-V', '--version'):
        result = expect(fsck(word), 0)
        lines = result.out.decode().splitlines()
        found = re.match(r'fsck\.erofs \([^)]*\) (\d+)\.(\d+)(\.\d+)?$', lines[0])
        check(found and (int(found[1]), int(found[2])) >= (1, 8), 'first line', lines[0])
        check(re.match(r'available decompressors: [a-z0-9]+(, [a-z0-9]+)*$', lines[1]), lines[1])
        check(len(lines) >= 3, 'our own version on a line of its own')
        check(not result.err, result)


@test('R7: help wins over a missing image, and an image is not opened for it')
def _():
    expect(fsck('--help', '/no/such/image'), 0)


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


@test('--nid and --path: a subtree, one file, and what is not there')
def _():
    target = fresh()
    expect(fsck('--path=dir', '--extract=' + target, image()), 0)
    is_(sorted(os.listdir(target)), ['deep', 'in'], 'subtree')
    for word in ('/one', 'one', '//one', '/dir/../one', '/../one'):
        target = fresh()
        expect(fsck('--path', word, '--extract=' + target, image()), 0)
        with open(target, 'rb') as file:
            is_(file.read(), b'hello\n', word)
    target = fresh()
    expect(fsck('--path=/no/such', '--extract=' + target, image()), {4, 8}, 'no/such')
    check(not os.path.lexists(target), 'target was made')


@test('--path wins over --nid')
def _():
    import mkimg
    target = fresh()
    nid = mkimg.Image.load(image()).find('one').nid
    expect(fsck('--nid=%d' % nid, '--path=/dir', '--extract=' + target, image()), 0)
    is_(sorted(os.listdir(target)), ['deep', 'in'], 'subtree')


@test('--workers takes percpu, percpu-hipri, unbound, auto, 0, 1 and numbers')
def _():
    for word in ('percpu', 'percpu-hipri', 'unbound', 'auto', '0', '1', '3', '64'):
        result = expect(fsck('--workers=' + word, image()), 0)
        check(not result.out, result)
    usage(fsck('--workers=many', image()), 'many')


@test('--reserved-pages and --max-memory are taken, EROFS_WORKERS is a default')
def _():
    expect(fsck('--reserved-pages=64', image()), 0)
    expect(fsck('--max-memory=64M', '--extract', image()), 0)
    expect(fsck('--extract', image(), env={'EROFS_WORKERS': '2'}), 0, silent=True)


main()
