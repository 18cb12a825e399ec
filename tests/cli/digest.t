#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 8, --digest, --fsverity-block and --salt; rules R11, R18, R21 and engine.md A10, E4."""
import hashlib
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import corpus  # noqa: E402
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, dump, expect, fresh, fsck, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')
SETTINGS = ('1', '2', 'percpu', 'unbound')
ALGORITHMS = ('sha256', 'sha512', 'fsverity', 'fsverity-sha512')
IMAGES = ('kinds-48bit kinds-metabox names-lz4-zD bigdir-plain data-lz4 data-zstd-64k data-lz4-allfrag '
          'small-blob sparse-chunk big-lz4-1m big-lzma-1m').split()
RESIDENT = 64 << 20


def digest(algorithm, picture, *words, status=0, patterns=(), **more):
    return expect(dump('--digest=' + algorithm, *words, picture, **more), status, *patterns).out


def need_digests():
    if b'no digests without libcrypto' in dump('--digest=sha256', samples.plain()[0]).err:
        print('1..0 # SKIP dump.erofs was built without libcrypto')
        sys.exit(0)


def good(name):
    return tools.corpus('good', name + '.erofs'), corpus.words_for(os.path.join(tools.CORPUS, 'good'), name)


def files_of(folder):
    """Paths of its regular files in path order: by their parts."""
    found = []
    for top, _, names in os.walk(os.fsencode(folder)):
        for name in names:
            path = os.path.join(top, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found.append(os.path.relpath(path, os.fsencode(folder)))
    return sorted(found, key=lambda p: p.split(b'/'))


def print_by(words, folder, paths):
    """What another program prints for the files."""
    if not shutil.which(words[0]):
        raise Skip('no ' + words[0])
    out = b''
    for at in range(0, len(paths), 500):
        done = subprocess.run([*words, '--', *paths[at:at + 500]], cwd=folder, capture_output=True, timeout=300)
        is_((done.returncode, done.stderr), (0, b''), words)
        out += done.stdout
    return out


def unpacked(picture, words):
    target = fresh('unpacked')
    expect(fsck('--extract=' + target, *words, picture), 0)
    return target


@test('A10: 64 MiB hold files of 64 MiB, whatever is asked of them')
def _():
    # the first test: what this process has taken counts for those it starts
    if tools.SLOW:
        raise Skip('instrumented')
    big = save(mkimg.build(mkimg.Dir({n: mkimg.Runs([(k % 251, 240) for k in range(70)]) for n in 'ab'})))
    for algorithm in ALGORITHMS:
        result = expect(dump('--digest=' + algorithm, '--fsverity-block=1K', '--workers=2', big)
                        if 'fs' in algorithm else dump('--digest=' + algorithm, '--workers=2', big), 0)
        check(result.rss <= RESIDENT, algorithm, result.rss)


@test('--digest=sha256, sha512: what sha256sum and sha512sum print, also for names with newlines and backslashes')
def _():
    for name in IMAGES:
        picture, words = good(name)
        target = unpacked(picture, words)
        paths = files_of(target)
        for algorithm in ('sha256', 'sha512'):
            got = digest(algorithm, picture, *words)
            is_(got, print_by([algorithm + 'sum'], target, paths), (name, algorithm))
        check(got.count(b'\n\\') > 2 or name[:5] != 'names')
        done = subprocess.run(['sha512sum', '-c', '--quiet', '--strict', save(got)], cwd=target, capture_output=True)
        is_((done.returncode, done.stdout, done.stderr), (0, b'', b''), name)
        tree.remove(target)


@test('--digest=fsverity: what "fsverity digest" prints, with its block sizes and salts')
def _():
    if not shutil.which('fsverity'):
        raise Skip('no fsverity')
    salt = bytes(range(200, 229)).hex()
    for name in IMAGES:
        picture, words = good(name)
        target = unpacked(picture, words)
        paths = files_of(target)
        for options, theirs in (
                ([], []), (['--fsverity-block=1024'], ['--block-size=1024']),
                (['--fsverity-block=64K', '--salt=' + salt], ['--block-size=65536', '--salt=' + salt])):
            for ours, other in (('fsverity', 'sha256'), ('fsverity-sha512', 'sha512')):
                got = digest(ours, picture, *words, *options)
                is_(got, print_by(['fsverity', 'digest', '--hash-alg=' + other, *theirs], target, paths),
                    (name, ours, options))
        tree.remove(target)


@test('E4: the same bytes for every worker setting and again')
def _():
    for name in IMAGES:
        picture, words = good(name)
        for algorithm in ALGORITHMS:
            outputs = {digest(algorithm, picture, '--workers=' + w, *words) for w in SETTINGS + ('2',)}
            is_(len(outputs), 1, (name, algorithm))


def verity(data, block=4096, salt=b''):
    """fs-verity by SHA-256, as its documentation says it."""
    padded = salt.ljust(-(-len(salt) // 64) * 64, b'\0')

    def level(text):
        return b''.join(hashlib.sha256(padded + text[at:at + block].ljust(block, b'\0')).digest()
                        for at in range(0, len(text), block))

    root = level(data)
    while len(root) > 32:
        root = level(root)
    return seal(len(data), root, block, salt)


def seal(size, root, block=4096, salt=b''):
    head = struct.pack('<BBBB4xQ64sB31x', 1, 1, block.bit_length() - 1, len(salt), size, root, 0)
    raw = bytearray(head.ljust(256, b'\0'))
    raw[80:80 + len(salt)] = salt
    return hashlib.sha256(bytes(raw)).hexdigest()


def mixed():
    """A file of many ranges with holes, runs and an end within a block; and its contents."""
    chunk = 64 << 10
    pieces = []
    for number in range(400):
        hole = number % 7 == 3 or 100 <= number < 230
        pieces.append(mkimg.HOLE if hole else hashlib.sha512(b'%d' % number).digest() * (chunk // 64))
    node = mkimg.Chunked(pieces, 4, size=400 * chunk - 1234)
    return node, samples.contents(node, 4096)


@test('--digest=fsverity: a file of many ranges, of data, of runs and of holes, is what its bytes give')
def _():
    node, data = mixed()
    runs = mkimg.Runs([(n % 251, 240) for n in range(24)])
    picture = save(mkimg.build(mkimg.Dir({'m': node, 'r': runs, 'z': mkimg.File(b'')})))
    flat = samples.contents(runs, 4096)
    for block, salt in ((4096, b''), (1024, b'salt'), (65536, bytes(32))):
        words = ['--fsverity-block=%d' % block] + (['--salt=' + salt.hex().upper()] if salt else [])
        wanted = ''.join('sha256:%s %s\n' % (verity(d, block, salt), n) for n, d in
                         (('m', data), ('r', flat))) + 'sha256:%s z\n' % seal(0, b'', block, salt)
        for workers in SETTINGS:
            is_(digest('fsverity', picture, '--workers=' + workers, *words).decode(), wanted, (workers, words))


@test('--digest=fsverity: a hole of 128 TiB takes no time; SHA does not begin such a file, and says so')
def _():
    size, root = 4096 << 35, hashlib.sha256(bytes(4096)).digest()
    for _ in range(5):
        root = hashlib.sha256(root * 128).digest()
    picture = save(mkimg.build(mkimg.Dir({'a': mkimg.Chunked([mkimg.HOLE] * 16, 31, size=size),
                                          'b': mkimg.File(b'b')})))
    is_(digest('fsverity', picture, timeout=10).decode().splitlines()[0], 'sha256:%s a' % seal(size, root))
    got = digest('sha256', picture, status=1, patterns=('too many for SHA', 'a: left out'))
    is_(got.decode(), hashlib.sha256(b'b').hexdigest() + '  b\n')


@test('--digest: every name of a hard link has its line; sorted by path; other types have none')
def _():
    picture, root = samples.plain()
    wanted = {p: e for p, e in samples.picture(root).items() if e.kind == 'file'}
    lines = digest('sha256', picture).splitlines()
    is_([line[66:] for line in lines], sorted((p[2:] for p in wanted), key=lambda p: p.split(b'/')))
    is_({line[66:]: line[:64].decode() for line in lines}, {p[2:]: e.digest for p, e in wanted.items()})


@test('--digest: members, globs and lists choose; --path begins there, also at a file')
def _():
    picture, _ = samples.plain()

    def names(*words, members=(), **more):
        got = expect(dump('--digest=sha256', *words, picture, *members), more.get('status', 0), *more.get('say', ()))
        return [line[66:] for line in got.out.decode().splitlines()]
    is_(names(members=['dir']), ['dir/deep/er', 'dir/in'])
    is_(names(members=['one', 'dir/in']), ['dir/in', 'one'])
    is_(names('--include=dir/**', '--exclude=dir/deep'), ['dir/in'])
    is_(names('--files-from=' + save(b'one\n')), ['one'])
    is_(names('--files-from=' + save(b'one\0'), '--null'), ['one'])
    is_(names('--path=/dir'), ['deep/er', 'in'])
    is_(names('--path=/dir/in'), ['in'])
    is_(names('--path=/nowhere', status=1), [])
    is_(names(members=['one', 'none'], status=1, say=('none: nothing in the image matches',)), ['one'])


@test('--digest, --fsverity-block, --salt: usage errors')
def _():
    picture, _ = samples.plain()
    for algorithm, words, text in (
            ('md5', (), 'sha256, sha512, fsverity or fsverity-sha512'), ('', (), 'sha256, sha512'),
            ('fsverity', ('--fsverity-block=1000',), 'power of two from 1024 to 65536'),
            ('fsverity', ('--fsverity-block=512',), 'power of two'), ('fsverity', ('--fsverity-block=128K',), 'power'),
            ('fsverity', ('--salt=abc',), 'two digits each'), ('fsverity', ('--salt=xx',), 'two digits each'),
            ('fsverity', ('--salt=' + '00' * 33,), 'up to 32 bytes'),
            ('sha256', ('--salt=00',), '--salt needs --digest=fsverity'),
            ('sha256', ('--fsverity-block=4096',), '--fsverity-block needs --digest=fsverity'),
            ('sha256', ('-s',), 'does not go with'), ('sha256', ('--cat',), 'does not go with'),
            ('sha256', ('--to-tar=x',), 'does not go with'), ('sha256', ('--long',), 'does not go with'),
            ('sha256', ('--strip-components=1',), 'needs --extract or --to-tar'),
            ('sha256', ('--json',), '--digest goes with --json=FILE only')):
        is_(digest(algorithm, picture, *words, status=2, patterns=(text,)), b'')
    expect(dump('--salt=00', picture), 2, '--salt needs --digest=fsverity')
    expect(dump('--digest', picture), 2)


@test('R18: on a terminal names cannot drive it; in files they are as sha256sum prints them')
def _():
    name = b'\x1b[2Jx\x7f\xff'
    picture = save(mkimg.build(mkimg.Dir({name: mkimg.File(b'x'), b'\xc3\xa9': mkimg.File(b'x')})))
    for algorithm, gap in (('sha256', b'  '), ('fsverity', b' ')):
        check(gap + name + b'\n' in digest(algorithm, picture))
        master, slave = pty.openpty()
        expect(dump('--digest=' + algorithm, picture, stdout=slave), 0)
        lines = os.read(master, 65536).splitlines()
        is_([line.split(gap)[1] for line in lines], [b'\\033[2Jx\\177\\377', b'\xc3\xa9'])
        os.close(master)
        os.close(slave)


@test('R11: a full disk is status 2 with a message; R24: a reader that ends early ends it by SIGPIPE')
def _():
    picture, _ = good('bigdir-plain')
    with open('/dev/full', 'wb') as full:
        expect(dump('--digest=sha256', picture, stdout=full), 2, 'cannot write the digests: No space left')
    reader, writer = os.pipe()
    os.close(reader)
    result = dump('--digest=sha512', picture, stdout=writer)
    os.close(writer)
    is_((result.status, result.err), (-signal.SIGPIPE, b''))


@test('R21: SIGTERM and SIGINT end it as such, also while nobody reads')
def _():
    hole = save(mkimg.build(mkimg.Dir({'hole': mkimg.Chunked([mkimg.HOLE], 28, size=1 << 40)})))
    many, _ = good('bigdir-plain')
    for number in (signal.SIGTERM, signal.SIGINT):
        def during(process):
            time.sleep(0.3)
            os.kill(process.pid, number)
        for workers in ('1', '2'):
            is_(dump('--digest=sha256', '--workers=' + workers, hole, during=during).status, -number)
            reader, writer = os.pipe()
            is_(dump('--digest=sha512', '--workers=' + workers, many, stdout=writer, during=during,
                     timeout=10).status, -number)
            os.close(reader)
            os.close(writer)


@test('damage: what cannot be read has no line, and is told by name; status 1; the same for every setting')
def _():
    twice, fine = mkimg.Runs([(65, 8)]), mkimg.Runs([(66, 240)] * 24)
    large = mkimg.Runs([(66, 240), (67, 240), (68, 240)] * 8)
    builder = mkimg.Builder(mkimg.Dir({'a': twice, 'b': fine, 'large': large, 'y': mkimg.File(b'intact\n'),
                                       'z': twice}))
    image = mkimg.Image(builder.build())
    for at in (twice.pclusters[0], large.pclusters[7]):
        image.data[at:at + 4096] = b'\xff' * 4096
    picture = save(bytes(image.data))
    for algorithm in ALGORITHMS:
        outputs = set()
        for workers in SETTINGS:
            result = expect(dump('--digest=' + algorithm, '--workers=' + workers, picture), 1, '/a .*@ 0x',
                            '/large .*@ 0x', ': a: left out', ': z: left out', ': large: left out')
            outputs.add((result.out, result.err))
            is_([line[-2:] for line in result.out.splitlines()], [b' b', b' y'])
        is_(len(outputs), 1, algorithm)


def is_elsewhere(base, row):
    """Is the fault in what digests do not look at: xattrs, targets?"""
    kinds = {base[p].kind for p in (os.fsencode('.' + p) for p in corpus.affected(row)) if p in base}
    return row['name'].startswith(('xattr-', 'sb-xattr-')) or kinds and not kinds & {'file', 'dir'}


@test('damage: what the corpus wants reported never ends with 0, and no wrong digest has a line')
def _():
    folder = tools.corpus('bad')
    faults = []
    for row in corpus.read_rows():
        name = row['name']
        if name in corpus.BIG or name == 'xattr-icount-1':     # the count says where the inline data begins
            continue
        words = ['--device=' + os.path.join(folder, 'base-blob.blob')] \
            if row['base'] == 'blob' and name != 'dev-missing' else []
        algorithms = ('fsverity',) if name.startswith('bomb-hole') else ('sha256', 'fsverity')
        base = {} if row['base'] == '-' else \
            tree.manifest(os.path.join(folder, 'base-%s.mtree' % row['base']))
        skip = [os.fsencode('.' + p) for p in corpus.affected(row)] if row['class'] != 'report' else []
        for algorithm in algorithms:
            one, two = [dump('--digest=' + algorithm, '--workers=' + w, *words,
                             os.path.join(folder, name + '.erofs')) for w in ('1', 'percpu')]
            if (one.status, one.out, one.err) != (two.status, two.out, two.err):
                faults.append('%s: differs with workers\n%s\n%s' % (name, one, two))
            allowed = {'ok': {0}, 'report': {1}, 'reject': {2}, 'safe': {0, 1, 2}}.get(row['class'], {1, 2})
            if name == 'real-interlaced-tail' or is_elsewhere(base, row):
                allowed = allowed | {0}
            if one.killed or one.status not in allowed:
                faults.append(str(one))
            if algorithm != 'sha256':
                continue
            for line in one.out.splitlines():
                path = b'./' + line[66:]
                if not line.startswith(b'\\') and path in base and path not in skip and \
                        line[:64].decode() != base[path].digest:
                    faults.append('%s: wrong digest of %s' % (name, path))
    check(not faults, *faults[:12])


need_digests()
main()
