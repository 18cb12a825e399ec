#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 8, --to-mtree and --mtree-xattrs; rules R11, R20, R21 and engine.md A10, E4."""
import glob
import os
import pty
import re
import shutil
import signal
import stat
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
from tools import DUMP, dump, expect, fresh, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')
GOOD = os.path.join(tools.CORPUS, 'good')
SETTINGS = ('1', '2', 'percpu', 'unbound')
IMAGES = ('kinds-48bit kinds-metabox kinds-owners kinds-offset names-lz4-zD xattrs-plain xattrs-prefix bigdir-plain '
          'data-lz4 data-zstd-64k data-lz4-allfrag small-blob sparse-chunk big-lz4-1m big-lzma-1m').split()
KEYS = 'type,mode,uid,gid,size,time,link,nlink,inode,device,sha256'


def to_mtree(picture, *words, status=0, patterns=(), **more):
    return expect(dump('--to-mtree', *words, picture, **more), status, *patterns).out


def need_digests():
    if b'no digests without libcrypto' in dump('--to-mtree', samples.plain()[0]).err:
        print('1..0 # SKIP dump.erofs was built without libcrypto')
        sys.exit(0)


def good(name):
    return tools.corpus('good', name + '.erofs'), corpus.words_for(GOOD, name)


def lines_of(data):
    """Lines of entries by path, without comments."""
    return {tree.unescape(line.split(b' ')[0]): line for line in data.splitlines() if not line.startswith(b'#')}


@test('--to-mtree: line for line the manifests of the corpus')
def _():
    tools.corpus('good')
    faults = []
    names = sorted(os.path.basename(p)[:-6] for p in glob.glob(GOOD + '/*.mtree'))
    check(len(names) > 100, names)
    for name in names[::tools.SAMPLE]:
        picture, words = good(name)
        with open(os.path.join(GOOD, name + '.mtree'), 'rb') as file:
            wanted = file.read()
        for workers in ('1', 'percpu'):
            got = to_mtree(picture, '--workers=' + workers, *words)
            if b' inode=' not in wanted:    # of a tree that no kernel here mounts
                got = b''.join(re.sub(b' nlink=[0-9]+', b'', line) if b' type=dir' in line else line
                               for line in re.sub(b' inode=[0-9]+', b'', got).splitlines(True))
            if got != wanted:
                differ = [p for p in zip(got.splitlines(), wanted.splitlines()) if p[0] != p[1]]
                faults.append('%s: %s' % (name, differ[:1]))
    check(not faults, *faults[:8])


@test('E4: the same bytes for every worker setting and again')
def _():
    for name in IMAGES:
        picture, words = good(name)
        outputs = {to_mtree(picture, '--mtree-xattrs', '--workers=' + w, *words) for w in SETTINGS + ('2',)}
        is_(len(outputs), 1, name)


def parse(data):
    """Words by key; numbers as numbers; nlink of directories left out, 1 where it is not said."""
    out = {}
    for path, line in lines_of(data).items():
        words = dict(w.split(b'=', 1) for w in line.split(b' ')[1:] if w)
        whole, part = words[b'time'].split(b'.')
        words[b'time'] = (int(whole), int(part))
        words[b'mode'] = int(words[b'mode'], 8)
        words[b'link'] = tree.unescape(words.get(b'link', b''))
        words[b'nlink'] = None if words[b'type'] == b'dir' else int(words.get(b'nlink', 1))
        out[path] = words
    return out


@test('--to-mtree: once parsed the same as bsdtar prints for a kernel mount')
def _():
    if not shutil.which('bsdtar'):
        raise Skip('no bsdtar')
    tools.need_root()
    for name in IMAGES:
        picture, words = good(name)
        offset = ''.join(',offset=' + w[9:] for w in words if w.startswith('--offset='))
        if any(w.startswith('--device=') for w in words):
            continue
        with tools.Mount('-t', 'erofs', '-o', 'loop,ro' + offset, picture) as folder:
            done = subprocess.run(['bsdtar', '--no-acls', '-cf', '-', '--format=mtree', '--options=mtree:!all,' + KEYS, '.'],
                                  cwd=folder, capture_output=True, timeout=120, env={**os.environ, 'LC_ALL': 'C'})
        is_(done.returncode, 0, done.stderr)
        wanted, got = parse(done.stdout), parse(to_mtree(picture, *words))
        is_(sorted(got), sorted(wanted), name)
        for path in wanted:
            is_(got[path], wanted[path], (name, path))


@test('R20: any byte of a name or a target is octal digits, and can be told back; times and modes have all digits')
def _():
    name = bytes(range(1, 47)) + bytes(range(48, 128))
    root = mkimg.Dir({name: mkimg.File(b'x', mode=0o4005, time=-500000000), b'\x80\xff': mkimg.Link(name + b'\x80/')})
    got = to_mtree(save(mkimg.build(root)))
    first, root_line, *rest = got.splitlines()
    is_(first, b'#mtree')
    check(root_line.startswith(b'. type=dir mode=0755 uid=0 gid=0 nlink=2 inode='), root_line)
    check(all(0x20 <= c < 0x7f or c == 10 for c in got))
    is_(len(rest), 2, rest)
    path, *words = rest[0].split(b' ')
    check(not set(path) & set(b'#=*?['), path)
    is_(tree.unescape(path), b'./' + name)
    is_([w for w in words if w.startswith((b'mode', b'time', b'size'))],
        [b'mode=4005', b'time=-1.500000000', b'size=1'])
    is_(tree.unescape(rest[1].split(b'link=')[-1]), name + b'\x80/')


@test('--mtree-xattrs: attributes and fs-verity digests as comments, sorted, and nothing else changes')
def _():
    for name in ('xattrs-plain', 'xattrs-prefix', 'kinds-plain'):
        picture, words = good(name)
        got = to_mtree(picture, '--mtree-xattrs', *words)
        plain = to_mtree(picture, *words)
        is_([line for line in got.splitlines() if not line.startswith(b'#erofs')], plain.splitlines())
        known = tree.manifest(tools.corpus('good', name + '.mtree'))
        found = {path: {} for path in known}
        verity = set()
        above = None
        for line in got.splitlines()[1:]:
            if not line.startswith(b'#'):
                above, before = tree.unescape(line.split(b' ')[0]), b''
                continue
            head, path, word = line.split(b' ')
            is_((head, tree.unescape(path)), (b'#erofs:', above))
            key, value = word.split(b'=')
            if key == b'fsverity':
                verity.add(above)
                is_(len(bytes.fromhex(value.decode())), 32)
                continue
            check(key.startswith(b'xattr.') and line > before, line)
            before = line
            found[above][tree.unescape(key[6:])] = bytes.fromhex(value.decode())
        is_(verity, {p for p, e in known.items() if e.kind == 'file'}, name)
        for path, entry in known.items():
            is_(found[path], entry.xattrs, (name, path))


@test('--mtree-xattrs: the digests of fs-verity are those of --digest=fsverity; bsdtar reads the manifest')
def _():
    picture, words = good('data-lz4')
    got = to_mtree(picture, '--mtree-xattrs', *words)
    digests = expect(dump('--digest=fsverity', *words, picture), 0).out
    is_(re.findall(rb'^#erofs: (.*) fsverity=(.*)$', got, re.M),
        [(b'./' + p, h) for h, p in re.findall(rb'^sha256:(\S+) (.*)$', digests, re.M)])
    if not shutil.which('bsdtar'):
        raise Skip('no bsdtar')
    done = subprocess.run(['bsdtar', '-tf', save(got)], capture_output=True, timeout=60)
    is_((done.returncode, done.stderr), (0, b''))
    is_(len(done.stdout.splitlines()), len(lines_of(got)))


@test('--to-mtree: members, globs and lists choose; parents come along; --path begins there, also at a file')
def _():
    picture, _ = samples.plain()
    whole = lines_of(to_mtree(picture))
    is_(sorted(lines_of(to_mtree(picture, '--include=dir'))),
        [b'.', b'./dir', b'./dir/deep', b'./dir/deep/er', b'./dir/in'])
    member = expect(dump('--to-mtree', picture, 'dir/in'), 0).out
    is_(lines_of(member), {p: whole[p] for p in (b'.', b'./dir', b'./dir/in')})
    is_(sorted(lines_of(to_mtree(picture, '--exclude=dir', '--exclude=b*'))),
        sorted(p for p in whole if not p.startswith((b'./dir', b'./b'))))
    is_(sorted(lines_of(to_mtree(picture, '--files-from=' + save(b'one\n')))), [b'.', b'./one'])
    is_(sorted(lines_of(to_mtree(picture, '--path=/dir'))), [b'.', b'./deep', b'./deep/er', b'./in'])
    is_(sorted(lines_of(to_mtree(picture, '--path=/dir/in'))), [b'./in'])
    to_mtree(picture, '--path=/nowhere', status=1)
    to_mtree(picture, '--include=nothing', status=1, patterns=('nothing: nothing in the image matches',))


@test('--to-mtree: usage errors, and --json goes beside it only')
def _():
    picture, _ = samples.plain()
    for words, text in ((('-s',), 'does not go with'), (('--to-tar=x',), 'does not go with'),
                        (('--extract=x',), 'does not go with'), (('--digest=sha256',), 'does not go with'),
                        (('--long',), 'does not go with'), (('--strip-components=1',), 'needs --extract or --to-tar'),
                        (('--json',), '--to-mtree goes with --json=FILE only')):
        is_(to_mtree(picture, *words, status=2, patterns=(text,)), b'', words)
    expect(dump('--to-mtree=', picture), 2, 'needs the name of a file')
    expect(dump('--mtree-xattrs', picture), 2, 'needs --to-mtree')
    report = fresh('report')
    check(to_mtree(picture, '--json=' + report).startswith(b'#mtree\n'))
    check(os.path.getsize(report) > 0)


@test('--to-mtree: text may go to a terminal')
def _():
    picture, _ = samples.plain()
    master, slave = pty.openpty()
    expect(dump('--to-mtree', '--path=/dir/in', picture, stdout=slave), 0)
    check(os.read(master, 65536).startswith(b'#mtree\r\n./in type=file'))
    os.close(master)
    os.close(slave)


@test('--to-mtree=FILE: an old file stays until the new one is whole; R11: a full disk is status 2 and no file')
def _():
    picture, _ = samples.plain()
    target = fresh('manifest')
    expect(dump('--to-mtree=' + target, picture, umask=0o027), 0, silent=True)
    is_(stat.S_IMODE(os.stat(target).st_mode), 0o640)
    with open(target, 'rb') as file:
        is_(file.read(), to_mtree(picture))
    with open(target, 'wb') as file:
        file.write(b'old')
    expect(dump('--to-mtree=' + target, '/nonexistent'), 2)
    with open(target, 'rb') as file:
        is_(file.read(), b'old')
    with open('/dev/full', 'wb') as full:
        expect(dump('--to-mtree', picture, stdout=full), 2, 'cannot write the manifest: No space left')
    with tools.tmpfs('4k') as folder:
        expect(dump('--to-mtree=' + folder + '/x', good('names-plain')[0]), 2, 'No space left')
        is_(os.listdir(folder), [])


@test('--to-mtree: an ordinary user gets the same bytes')
def _():
    tools.nobody_runs(DUMP)
    picture, _ = samples.xattrs()
    os.chmod(picture, 0o644)
    if tools.ROOT:
        is_(to_mtree(picture, '--mtree-xattrs', user=tools.NOBODY), to_mtree(picture, '--mtree-xattrs'))


@test('R21: SIGTERM and SIGINT end it as such while a hole of 1 TiB is hashed, and leave no file')
def _():
    picture = save(mkimg.build(mkimg.Dir({'hole': mkimg.Chunked([mkimg.HOLE], 28, size=1 << 40)})))
    folder = fresh('out', make=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        def during(process):
            time.sleep(0.3)
            os.kill(process.pid, number)
        for workers in ('1', '2'):
            is_(dump('--to-mtree=' + folder + '/x', '--workers=' + workers, picture, during=during).status, -number)
            is_(os.listdir(folder), [])


@test('damage: a line without what cannot be read, told by name; the rest is there; status 1')
def _():
    twice, fine = mkimg.Runs([(65, 8)]), mkimg.Runs([(66, 240)] * 24)
    large = mkimg.Runs([(66, 240), (67, 240), (68, 240)] * 8)
    link = mkimg.Link('t' * 100)
    builder = mkimg.Builder(mkimg.Dir({'a': twice, 'b': fine, 'large': large, 'link': link, 'z': twice}))
    image = mkimg.Image(builder.build())
    for at in (twice.pclusters[0], large.pclusters[7]):
        image.data[at:at + 4096] = b'\xff' * 4096
    at = image.data.index(b't' * 100)
    image.data[at + 9] = 0
    picture = save(bytes(image.data))
    outputs = set()
    for workers in SETTINGS:
        for words in ((), ('--mtree-xattrs',)):
            result = expect(dump('--to-mtree', '--workers=' + workers, *words, picture), 1, '/a .*@ 0x',
                            '/large .*@ 0x', r'/link .*symlink target contains NUL', 'a: without a digest',
                            'z: without a digest', 'large: without a digest', 'link: without its target')
            outputs.add((words, result.out, result.err))
            got = lines_of(result.out)
            is_(sorted(got), [b'.', b'./a', b'./b', b'./large', b'./link', b'./z'])
            is_([p for p in got if b'sha256digest' in got[p] or b'link=' in got[p].replace(b'nlink=', b'')], [b'./b'])
    is_(len(outputs), 2)


@test('damage: what the corpus wants reported never ends with 0, and no wrong digest is in the manifest')
def _():
    folder = tools.corpus('bad')
    faults = []
    for row in corpus.read_rows():
        name = row['name']
        if name in corpus.BIG or name.startswith('bomb-hole') or \
                name == 'xattr-icount-1':     # the count says where the inline data begins
            continue
        words = ['--device=' + os.path.join(folder, 'base-blob.blob')] \
            if row['base'] == 'blob' and name != 'dev-missing' else []
        one, two = [dump('--to-mtree', '--mtree-xattrs', '--workers=' + w, *words,
                         os.path.join(folder, name + '.erofs')) for w in ('1', 'percpu')]
        if (one.status, one.out, one.err) != (two.status, two.out, two.err):
            faults.append('%s: differs with workers\n%s\n%s' % (name, one, two))
        allowed = {'ok': {0}, 'report': {1}, 'reject': {2}, 'safe': {0, 1, 2}}.get(row['class'], {1, 2})
        if name == 'real-interlaced-tail':
            allowed = {0, 1}    # the fault is the packed file's; f3 comes out as it was put in
        if one.killed or one.status not in allowed:
            faults.append(str(one))
        base = {} if row['base'] == '-' else \
            tree.manifest(os.path.join(folder, 'base-%s.mtree' % row['base']))
        # what is not to be reported cannot be told from healthy bytes
        skip = [os.fsencode('.' + p) for p in corpus.affected(row)] if row['class'] != 'report' else []
        for path, line in lines_of(one.out).items() if one.status != 2 else ():
            found = re.search(rb' sha256digest=(\S+)', line)
            if found and path in base and path not in skip and found[1].decode() != base[path].digest:
                faults.append('%s: wrong digest of %s' % (name, path))
    check(not faults, *faults[:12])


need_digests()
main()
