#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every option of dump.erofs on corpus images: as root and as an ordinary user, in the C and a UTF-8 locale,
into tmpfs and ext4 (X1 to X13, R17)."""
import contextlib
import hashlib
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import corpus  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, ROOT, dump, expect, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')
IMAGES = 'kinds-owners kinds-metabox names-lz4-zD xattrs-prefix sparse-chunk small-blob data-zstd-64k'.split()
LOCALES = [{'LC_ALL': name, 'LANG': name} for name in ('C', 'C.UTF-8')]
BOX = 'kinds-owners'

# What an option changes of the tree that comes out, beside nothing.
PLAIN = ('--no-xattrs --sparse --safe-writes --fsync --mkdir-parents --no-sbcrc --fail-fast --salvage --spool '
         '--quiet --reserved-pages=64 --max-memory=64M --page-policy=kernel --workers=1 --workers=2 --workers=percpu '
         '--workers=unbound --workers=auto --path=/ --exclude=no/such/name --offset=0 -d0 --no-progress').split()
LOUD = ['--stats', '--stats=json', '--progress', '-v', '--verbose', '-d9']
OTHER = [['--no-times'], ['--no-preserve'], ['--no-preserve-owner'], ['--preserve-perms'], ['--no-preserve-perms']]


@contextlib.contextmanager
def place(kind):
    if kind == 'tmpfs':
        with tools.tmpfs('600m') as folder:
            os.chmod(folder, 0o777)
            yield folder
        return
    disk = save(b'', 'disk')
    os.truncate(disk, 600 << 20)
    if subprocess.run(['mkfs.ext4', '-q', '-F', disk], capture_output=True).returncode:
        raise Skip('no mkfs.ext4')
    with tools.Mount('-o', 'loop', disk) as folder:
        os.chmod(folder, 0o777)
        yield folder
    os.unlink(disk)


def image(name):
    path = tools.corpus('good', name + '.erofs')
    return path, corpus.words_for(os.path.dirname(path), name)


def wanted(name, user, options=()):
    known = tree.manifest(tools.corpus('good', name + '.mtree'))
    if user:
        modes = {p: e.mode for p, e in known.items()}
        known = tree.for_user(known, tools.NOBODY, tools.NOBODY, 0o022)
        if '--preserve-perms' in options:
            for path, entry in known.items():
                entry.mode = modes[path]
    return known


def compare(name, target, known, folder, what, **more):
    faults = tree.compare(known, tree.read(target, xattrs=more.get('xattrs', False)), probe=folder,
                          **{'xattrs': False, **more})
    check(not faults, name, what, *faults[:6])
    tree.remove(target)


def who():
    if not ROOT:
        raise Skip('needs root, to mount and to become somebody else')
    return ((False, {}), (True, tools.as_user()))


for kind in ('tmpfs', 'ext4'):
    @test('every image of a choice comes out whole on %s, for both users, in both locales' % kind)
    def _(kind=kind):
        with place(kind) as folder:
            for name in IMAGES:
                path, words = image(name)
                for user, how in who():
                    known = wanted(name, user)
                    for env in LOCALES:
                        target = os.path.join(folder, 'x')
                        result = expect(dump('--extract=' + target, *words, path, env=env, umask=0o022, **how), 0)
                        is_(result.out, b'', 'stdout')
                        compare(name, target, known, folder, (user, env))

    @test('X6: attributes come out on %s, as root' % kind)
    def _(kind=kind):
        who()
        with place(kind) as folder:
            for name in ('xattrs-prefix', 'xattrs-plain', BOX):
                path, words = image(name)
                known = wanted(name, False)
                # ext4 keeps less than a block of attributes
                large = [p for p, e in known.items() if sum(map(len, e.xattrs.values())) > 3000]
                known = {p: e for p, e in known.items() if p not in large}
                leave = [b'--exclude=' + p[2:] for p in large]
                for env in LOCALES:
                    target = os.path.join(folder, 'x')
                    expect(dump('--extract=' + target, '--xattrs', *leave, *words, path, env=env), 0, silent=True)
                    compare(name, target, known, folder, env, xattrs=True)

    @test('every option of extraction on %s, for both users, in both locales: the tree is what it says' % kind)
    def _(kind=kind):
        path, words = image(BOX)
        choice = [[o] for o in PLAIN + LOUD] + OTHER
        with place(kind) as folder:
            for user, how in who():
                for turn, options in enumerate(choice):
                    target = os.path.join(folder, 'x')
                    env = LOCALES[turn % 2]
                    result = expect(dump('--extract=' + target, *options, *words, path, env=env, umask=0o022,
                                         **how), 0)
                    check(options[0] in LOUD or user or not result.err, result)
                    known = wanted(BOX, user, options)
                    perms = options[0] not in ('--no-preserve', '--no-preserve-perms', '--no-preserve-owner')
                    owner = options[0] not in ('--no-preserve', '--no-preserve-owner')
                    compare(BOX, target, known, folder, (user, options), mode=perms or user, owner=owner or user,
                            times=options[0] != '--no-times')


@test('--overwrite, --strict, members, lists, globs, --strip-components: the same for both users and locales')
def _():
    path, words = image(BOX)
    listed = expect(dump('--ls', '--recursive', *words, path), 0).out.splitlines()
    some = [n[1:] for n in listed if n.count(b'/') == 2][:5]
    names = save(b'\n'.join(some) + b'\n', 'list')
    os.chmod(names, 0o644)
    ways = [some, [b'--files-from=' + names.encode()], [b'--include=' + n for n in some],
            [b'--include=**', *(b'--exclude=' + n for n in some)], [b'--strip-components=1', *some], [b'--overwrite']]
    with place('tmpfs') as folder:
        for way in ways:
            seen = {}
            for user, how in who():
                for env in LOCALES:
                    target = os.path.join(folder, 'x')
                    result = dump('--extract=' + target, *words, path, *way, env=env, umask=0, **how)
                    expect(result, 0)
                    got = tree.read(target, xattrs=False)
                    seen.setdefault(user, []).append((sorted(got), result.err))
                    tree.remove(target)
            for texts in seen.values():
                is_(texts[0], texts[1], way)
            left, right = ([p for p in s[0][0]] for s in (seen[False], seen[True]))
            devices = {p for p, e in wanted(BOX, False).items() if e.kind in ('char', 'block')}
            is_([p for p in left if p not in devices], [p for p in right if p not in devices], way)
        for user, how in who():
            target = os.path.join(folder, 'x')
            expect(dump('--extract=' + target, '--strict', *words, path, **how), 1 if user else 0)
            tree.remove(target)


@test('whatever it prints is the same for both users and in both locales')
def _():
    for name in IMAGES:
        path, words = image(name)
        ways = [['-s'], ['-S'], ['--blkid-udev'], ['--ls'], ['--ls', '--recursive'], ['--ls', '--long'],
                ['--ls', '--recursive', '--print0'], ['--path=/'], ['--nid=36'], ['-e', '--path=/'], ['--to-tar'],
                ['--json'], ['--ls', '--recursive', '--long', '--json'], ['--to-tar', '--workers=1']]
        first = expect(dump('--ls', '--recursive', *words, path), 0).out.splitlines()
        ways += [[b'--cat', b'--path=' + n] for n in first[:6]]
        for way in ways:
            seen = set()
            for user, how in who():
                for env in LOCALES:
                    result = dump(*way, *words, path, env={**env, 'TZ': 'UTC'}, **how)
                    check(result.status in (0, 1), result)
                    seen.add((result.status, hashlib.sha256(result.out).digest(), result.err))
            is_(len(seen), 1, (name, way))


main()
