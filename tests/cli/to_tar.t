#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 8, --to-tar and --strip-components; rules R10, R11, R12, R21 and engine.md A10, E4."""
import hashlib
import io
import os
import pty
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
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
SETTINGS = ('1', '2', 'percpu', 'unbound')
IMAGES = ('kinds-48bit kinds-metabox kinds-owners names-lz4-zD xattrs-plain xattrs-prefix bigdir-plain '
          'data-lz4 data-zstd-64k data-lz4-allfrag small-blob sparse-chunk big-lz4-1m big-lzma-1m').split()
RESIDENT = 64 << 20
GNU = ['tar', '--xattrs', '--xattrs-include=*', '--acls', '--numeric-owner', '-xpf']
BSD = ['bsdtar', '--numeric-owner', '-xpf']


def to_tar(picture, *words, status=0, patterns=(), **more):
    result = expect(dump('--to-tar', *words, picture, **more), status, *patterns)
    return result.out


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: m for m in tar}


def contents(data, name):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return tar.extractfile(name).read()


def good(name):
    words = corpus.words_for(os.path.join(tools.CORPUS, 'good'), name)
    return tools.corpus('good', name + '.erofs'), words


def unpack(words, data):
    tools.need_root()
    if not shutil.which(words[0]):
        raise Skip('no ' + words[0])
    target = fresh('unpacked', make=True)
    file = save(data, 'tar')
    done = subprocess.run([*words, file], cwd=target, capture_output=True, timeout=120)
    os.unlink(file)
    return target, done


def takes(size):
    """May an xattr of so many bytes be set here? ext4 keeps less than a block."""
    path = save(b'')
    try:
        os.setxattr(path, 'user.probe', bytes(size))
        return True
    except OSError:
        return False


def wanted(name):
    """What the kernel shows, as far as tar has types for it and this place takes it."""
    known = tree.manifest(tools.corpus('good', name + '.mtree'))
    known = {p: e for p, e in known.items() if e.kind != 'socket'}
    for entry in known.values():
        if not tools.has_xattrs():
            entry.xattrs = {}
        entry.xattrs = {k: v for k, v in entry.xattrs.items() if len(v) < 4000 or takes(len(v))}
    return known


def compare_unpacked(words, skip_times=()):
    for name in IMAGES:
        picture, more = good(name)
        data = to_tar(picture, *more)
        target, done = unpack(words, data)
        known = wanted(name)
        got = tree.read(target, xattrs=tools.has_xattrs())
        for path in known:
            if path in got and skip_times and skip_times(path, known[path]):
                got[path].time = known[path].time
        faults = tree.compare(known, got, probe=tools.scratch())
        check(not faults, name, done.stderr[:500], *faults[:8])
        tree.remove(target)


@test('E4: the same bytes for every worker setting and again')
def _():
    for name in IMAGES:
        picture, more = good(name)
        sums = {w: hashlib.sha256(to_tar(picture, '--workers=' + w, *more)).hexdigest()
                for w in SETTINGS + ('2',)}
        is_(len(set(sums.values())), 1, name)


@test('--to-tar: GNU tar unpacks what the kernel shows: contents, times, xattrs, ACLs, links')
def _():
    compare_unpacked(GNU)


@test('--to-tar: bsdtar does too')
def _():
    # it never sets the time of "./", and takes -1.5 for half a second before 0
    compare_unpacked(BSD, lambda path, e: path == b'.' or e.time < 0 and e.time % 10 ** 9)


@test('--to-tar: sorted, the root is "./", no other name begins with it, sockets are told once')
def _():
    picture, _ = samples.plain()
    data = to_tar(picture, patterns=('1 socket left out',))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = [m.name for m in tar]
    is_(data[:3], b'./\0')
    is_(names[0], '.')
    check('socket' not in names, names)
    keys = [os.fsencode(n).split(b'/') for n in names[1:]]
    is_(keys, sorted(keys))
    is_(len(data) % 10240, 0)
    is_(data[-1024:], bytes(1024))


@test('--to-tar: tarfile reads the same contents, types, modes, links and whole seconds')
def _():
    kinds = {tarfile.DIRTYPE: 'dir', tarfile.SYMTYPE: 'link', tarfile.REGTYPE: 'file',
             tarfile.FIFOTYPE: 'fifo', tarfile.CHRTYPE: 'char', tarfile.BLKTYPE: 'block'}
    for name in IMAGES:
        picture, more = good(name)
        known = wanted(name)
        seen = {}
        with tarfile.open(fileobj=io.BytesIO(to_tar(picture, *more))) as tar:
            for m in tar:
                path = b'.' if m.name == '.' else b'./' + os.fsencode(m.name)
                entry = known[path]
                if m.islnk():
                    first = known[b'./' + os.fsencode(m.linkname)]
                    check(b'./' + os.fsencode(m.linkname) in seen, name, path)
                    is_(first.inode, entry.inode, (name, path))
                else:
                    is_(kinds[m.type], entry.kind, (name, path))
                is_((m.mode, m.uid, m.gid, m.uname, m.gname), (entry.mode, entry.uid, entry.gid, '', ''))
                check(abs(float(m.mtime) - entry.time / 1e9) < 0.001, name, path, m.mtime)
                if m.issym():
                    is_(os.fsencode(m.linkname), entry.link)
                if m.isreg():
                    is_(hashlib.sha256(tar.extractfile(m).read()).hexdigest(), entry.digest, (name, path))
                    check('mtime' in m.pax_headers or entry.time % 10 ** 9 == 0, name, path)
                check(path not in seen, 'twice', path)
                seen[path] = m
        is_(set(seen), set(known), name)


@test('--to-tar: names and links of 99 to 4000 bytes, bytes that are no UTF-8, large owners, SUID')
def _():
    entries = {}
    for size in (99, 100, 101, 155, 255):
        entries['n' * size] = mkimg.File(b'%d' % size)
        entries['l%d' % size] = mkimg.Link('t' * size)
    entries['l4000'] = mkimg.Link('t' * 4000)
    entries[b'\xff' * 200] = mkimg.File(b'no UTF-8')
    entries[b'\xc3\xa9' * 120] = mkimg.File(b'UTF-8')
    deep = mkimg.Dir({'f' * 200: mkimg.File(b'deep')})
    twice = mkimg.File(b'both')
    deep.entries['z' * 90] = twice
    entries['d' * 150] = deep
    entries['zz'] = twice
    entries['suid'] = mkimg.File(b's', mode=0o6755, uid=2097151, gid=2097152)
    entries['large'] = mkimg.File(b'l', uid=4294967294, gid=4294967294)
    entries['percent'] = mkimg.File(b'p', xattrs={'user.a=b%3Dc%': b'v\n\0w', 'user.none': b''})
    picture = save(mkimg.build(mkimg.Dir(entries)))
    data = to_tar(picture)
    got = members(data)
    is_(got['suid'].mode, 0o6755)
    is_((got['suid'].uid, got['suid'].gid), (2097151, 2097152))
    check('uid' not in got['suid'].pax_headers and 'gid' in got['suid'].pax_headers)
    is_((got['large'].uid, got['large'].gid), (4294967294, 4294967294))
    check('path' not in got['n' * 100].pax_headers and 'path' in got['n' * 101].pax_headers)
    is_(got['l4000'].linkname, 't' * 4000)
    is_(got['zz'].linkname, 'd' * 150 + '/' + 'z' * 90)
    is_(got['zz'].type, tarfile.LNKTYPE)
    is_(got['n' * 100].pax_headers, {})
    for words in (GNU, BSD):
        target, done = unpack(words, data)
        root = tree.read(target)
        is_(sorted(root), sorted([b'.'] + [b'./' + os.fsencode(n) for n in entries] +
                                 [b'./' + b'd' * 150 + b'/' + os.fsencode(n) for n in deep.entries]))
        is_(root[b'./l255'].link, b't' * 255)
        is_(root[b'./large'].uid, 4294967294)
        is_(root[b'./zz'].nlink, 2)
        if words is GNU and tools.has_xattrs():
            is_(root[b'./percent'].xattrs.get(b'user.a=b%3Dc%'), b'v\n\0w')
        tree.remove(target)


@test('--to-tar: ACLs are text with numeric ids, other xattrs raw')
def _():
    picture, _ = samples.xattrs()
    got = members(to_tar(picture))
    is_(got['acl'].pax_headers['SCHILY.acl.access'],
        'user::rwx,user:1000:r-x,group::r-x,mask::r-x,other::---')
    check('SCHILY.xattr.system.posix_acl_access' not in got['acl'].pax_headers)
    is_(os.fsencode(got['trusted'].pax_headers['SCHILY.xattr.trusted.t']), b'\0\1')
    is_(os.fsencode(got['cap'].pax_headers['SCHILY.xattr.security.capability']), samples.CAPABILITY)


@test('--to-tar: an ordinary user gets the same bytes')
def _():
    tools.nobody_runs(DUMP)
    picture, _ = samples.xattrs()
    os.chmod(picture, 0o644)
    if tools.ROOT:
        is_(to_tar(picture, user=tools.NOBODY), to_tar(picture))


def hole(size):
    bits = 31
    return save(mkimg.build(mkimg.Dir({'hole': mkimg.Chunked(
        [mkimg.HOLE] * -(-size >> (12 + bits)), bits, size=size)})))


@test('--to-tar: sizes above 8 GiB have a record; a reader that ends early ends it by SIGPIPE (R11, R24)')
def _():
    size = (9 << 30) + 5
    process = subprocess.Popen([*tools.INSTRUMENT, DUMP, '--to-tar', hole(size)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    with tarfile.open(fileobj=process.stdout, mode='r|') as tar:
        next(iter(tar))
        is_(tar.next().size, size)
    process.stdout.close()
    is_(process.stderr.read(), b'')
    is_(process.wait(), -signal.SIGPIPE)


@test('A10: 64 MiB hold a file of 2 GiB of holes, and one of 64 MiB of data')
def _():
    if tools.SLOW:
        raise Skip('instrumented')
    big = save(mkimg.build(mkimg.Dir({'f': mkimg.Runs([(n % 251, 240) for n in range(70)])})))
    for picture in (hole(2 << 30), big):
        with open('/dev/null', 'wb') as null:
            result = expect(dump('--to-tar', '--workers=2', picture, stdout=null), 0)
        check(result.rss <= RESIDENT, result.rss)


@test('--to-tar: a large file is cut into ranges that all workers decode, and comes out whole')
def _():
    runs = [(n % 251, 240) for n in range(24)]
    data = to_tar(save(mkimg.build(mkimg.Dir({'f': mkimg.Runs(runs)}))), '--workers=2')
    is_(contents(data, 'f'), b''.join(bytes([b]) * (n * 4096) for b, n in runs))


@test('R12: not to a terminal, unless it is named')
def _():
    picture, _ = samples.plain()
    for words, status in (('--to-tar', 2), ('--to-tar=-', 0)):
        master, slave = pty.openpty()
        pid = os.fork()
        if not pid:
            os.close(slave)
            while True:
                try:
                    if not os.read(master, 65536):
                        os._exit(0)
                except OSError:
                    os._exit(0)
        os.close(master)
        expect(dump(words, picture, stdout=slave), status, *(['terminal'] if status else []))
        os.close(slave)
        os.waitpid(pid, 0)


@test('R11: a full disk is status 2 with a message, and leaves no file')
def _():
    picture, _ = samples.plain()
    with open('/dev/full', 'wb') as full:
        expect(dump('--to-tar', picture, stdout=full), 2, 'cannot write the archive: No space left')
    with tools.tmpfs('1M') as folder:
        target = os.path.join(folder, 'x.tar')
        expect(dump('--to-tar=' + target, hole(64 << 20)), 2, 'No space left')
        is_(os.listdir(folder), [])


@test('--to-tar=FILE: a folder whose files cannot be given a mode is left as it was')
def _():
    picture, _ = samples.plain()
    folder = fresh('out', make=True)
    refused = tools.refuse_calls([91])      # fchmod
    expect(dump('--to-tar=' + os.path.join(folder, 'x.tar'), picture, preexec=refused), 2,
           r'x\.tar: cannot create: Operation not permitted')
    is_(os.listdir(folder), [])


@test('--to-tar=FILE: an old file stays until the new one is whole, with its mode; symlinks are followed')
def _():
    picture, _ = samples.plain()
    folder = fresh('out', make=True)
    target, link = os.path.join(folder, 'x.tar'), os.path.join(folder, 'link')
    expect(dump('--to-tar=' + target, picture, umask=0o027), 0)
    is_(stat.S_IMODE(os.stat(target).st_mode), 0o640)
    whole = to_tar(picture)
    os.chmod(target, 0o604)
    os.symlink('x.tar', link)
    with open(target, 'wb') as file:
        file.write(b'old')
    expect(dump('--to-tar=' + link, '/nonexistent'), 2)
    with open(target, 'rb') as file:
        is_(file.read(), b'old')
    expect(dump('--to-tar=' + link, picture), 0)
    with open(target, 'rb') as file:
        is_(file.read(), whole)
    is_(stat.S_IMODE(os.stat(target).st_mode), 0o604)
    is_(sorted(os.listdir(folder)), ['link', 'x.tar'])
    expect(dump('--to-tar=' + folder + '/no/x.tar', picture), 2, 'no/x.tar: cannot create')


@test('R21: SIGTERM and SIGINT end it as such and leave no file, also when nobody reads')
def _():
    picture = hole(1 << 40)
    folder = fresh('out', make=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        def during(process):
            time.sleep(0.2)
            os.kill(process.pid, number)
        is_(dump('--to-tar=' + folder + '/x', picture, during=during).status, -number)
        is_(os.listdir(folder), [])
        reader, writer = os.pipe()
        is_(dump('--to-tar', picture, stdout=writer, during=during, timeout=10).status, -number)
        os.close(reader)
        os.close(writer)


@test('--strip-components drops leading parts; --path begins there, also at a file')
def _():
    picture, root = samples.plain()
    is_(sorted(members(to_tar(picture, '--strip-components=1'))), ['deep', 'deep/er', 'in'])
    is_(sorted(members(to_tar(picture, '--path=/dir'))), ['.', 'deep', 'deep/er', 'in'])
    is_(sorted(members(to_tar(picture, '--path=/dir', '--strip-components=1'))), ['er'])
    data = to_tar(picture, '--path=/dir/in')
    is_(list(members(data)), ['in'])
    is_(contents(data, 'in'), b'inside\n')
    to_tar(picture, '--path=/nowhere', status=1)


@test('--to-tar and --strip-components: usage errors')
def _():
    picture, _ = samples.plain()
    to_tar(picture, '-s', status=2, patterns=('does not go with',))
    expect(dump('--to-tar=', picture), 2)
    to_tar(picture, '--strip-components=x', status=2)
    expect(dump('--strip-components=1', picture), 2, 'needs --extract or --to-tar')


@test('damage: a small file is left out, its other name too; a large one has zeros; status 1')
def _():
    twice = mkimg.Runs([(65, 8)])
    large = mkimg.Runs([(66, 240), (67, 240), (68, 240)])
    root = mkimg.Dir({'a': twice, 'b': mkimg.File(b'intact\n'), 'large': large, 'z': twice})
    builder = mkimg.Builder(root)
    image = mkimg.Image(builder.build())
    for at in (twice.pclusters[0], large.pclusters[1]):
        image.data[at:at + 4096] = b'\xff' * 4096
    picture = save(bytes(image.data))
    for workers in SETTINGS:
        data = to_tar(picture, '--workers=' + workers, status=1, patterns=(
            '/a .*@ 0x', 'a: left out', 'z: left out', '/large .*@ 0x', 'large: damaged'))
        is_(sorted(members(data)), ['.', 'b', 'large'])
        is_(contents(data, 'b'), b'intact\n')
        got = contents(data, 'large')
        is_(len(got), 3 * 240 * 4096)
        is_(got[:240 * 4096], b'B' * 240 * 4096)
        check(set(got[240 * 4096:2 * 240 * 4096]) == {0})


@test('damage: what the corpus wants reported never ends with 0, and no wrong bytes are in the archive')
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
        runs = [dump('--to-tar', '--workers=' + w, *words, os.path.join(folder, name + '.erofs'))
                for w in ('1', 'percpu')]
        one, two = runs
        if (one.status, one.out, one.err) != (two.status, two.out, two.err):
            faults.append('%s: differs with workers' % name)
        allowed = {'ok': {0}, 'report': {1}, 'reject': {2}, 'safe': {0, 1, 2}}.get(row['class'], {1, 2})
        if name == 'real-interlaced-tail':
            allowed = {0, 1}    # the fault is the packed file's; f3 comes out as it was put in
        if one.killed or one.status not in allowed:
            faults.append(str(one))
        if one.status == 2:
            continue
        base = {} if row['base'] == '-' else \
            tree.manifest(os.path.join(folder, 'base-%s.mtree' % row['base']))
        # what is not to be reported cannot be told from healthy bytes
        skip = [os.fsencode('.' + p) for p in corpus.affected(row)] if row['class'] != 'report' else []
        with tarfile.open(fileobj=io.BytesIO(one.out)) as tar:
            for m in tar:
                path = b'./' + os.fsencode(m.name)
                entry = base.get(path)
                if m.isreg() and entry and path not in skip and \
                        hashlib.sha256(tar.extractfile(m).read()).hexdigest() != entry.digest:
                    faults.append('%s: wrong bytes in %s' % (name, m.name))
    check(not faults, *faults[:12])


main()
