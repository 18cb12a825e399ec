# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees: read one from disk or from a manifest, compare two, remove one.

A tree is a dict from path (bytes, '.' is the root, './a/b' the rest) to Entry. Walking goes
by directory descriptors, one open at a time, so neither depth nor path length matters.
"""
import hashlib
import os
import re
import stat

KINDS = {
    stat.S_IFREG: 'file', stat.S_IFDIR: 'dir', stat.S_IFLNK: 'link', stat.S_IFCHR: 'char',
    stat.S_IFBLK: 'block', stat.S_IFIFO: 'fifo', stat.S_IFSOCK: 'socket',
}
HOST_LABEL = b'security.selinux'     # a host with SELinux labels whatever is made


class Entry:
    __slots__ = ('kind', 'mode', 'uid', 'gid', 'nlink', 'inode', 'time', 'size', 'digest', 'link',
                 'device', 'xattrs', 'blocks')

    def __init__(self, **values):
        for name in self.__slots__:
            setattr(self, name, values.get(name))

    def copy(self):
        return Entry(**{name: getattr(self, name) for name in self.__slots__})


def unescape(text):
    return re.sub(rb'\\([0-7]{3})', lambda m: bytes([int(m[1], 8)]), text)


def manifest(path):
    """The tree that a NAME.mtree describes, with the xattrs of NAME.xattr beside it."""
    tree = {}
    with open(path, 'rb') as file:
        for line in file.read().splitlines()[1:]:
            name, *words = line.split(b' ')
            value = dict(word.split(b'=', 1) for word in words)
            number = {k: int(value[k]) for k in (b'uid', b'gid', b'nlink', b'inode', b'size')
                      if k in value}
            whole, part = value[b'time'].split(b'.')
            tree[unescape(name)] = Entry(
                kind=value[b'type'].decode(), mode=int(value[b'mode'], 8), uid=number[b'uid'],
                gid=number[b'gid'], nlink=number.get(b'nlink'), inode=number.get(b'inode'),
                time=int(whole) * 10 ** 9 + int(part), size=number.get(b'size'),
                digest=value.get(b'sha256digest', b'').decode(),
                link=unescape(value[b'link']) if b'link' in value else None,
                device=value.get(b'device', b'').decode(), xattrs={})
    beside = os.path.splitext(path)[0] + '.xattr'
    if os.path.exists(beside):
        entry = None
        with open(beside, 'rb') as file:
            for line in file.read().splitlines():
                if line.startswith(b'# file: '):
                    name = unescape(line[8:])
                    entry = tree[name if name == b'.' else b'./' + name]
                elif line:
                    key, value = line.split(b'=', 1)
                    entry.xattrs[unescape(key)] = bytes.fromhex(value[2:].decode())
    return tree


_whole = {}


def _digest(fd, size):
    """sha256 of the file; what was seen before (same data, same places) is not hashed again."""
    sketch = hashlib.sha256(b'%d' % size)
    place = 0
    while place < size:
        try:
            start = os.lseek(fd, place, os.SEEK_DATA)
        except OSError:
            break
        end = os.lseek(fd, start, os.SEEK_HOLE)
        sketch.update(b'@%d-%d:' % (start, end))
        place = start
        while place < end:
            part = os.pread(fd, min(1 << 20, end - place), place)
            if not part:
                break
            sketch.update(part)
            place += len(part)
    key = sketch.digest()
    if key not in _whole:
        sha = hashlib.sha256()
        place = 0
        while True:
            part = os.pread(fd, 1 << 20, place)
            if not part:
                break
            sha.update(part)
            place += len(part)
        _whole[key] = sha.hexdigest()
    return _whole[key]


def _open_dir(name, at):
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=at)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=at)
        return os.open(name, flags, dir_fd=at)


def _entry(name, at, info, xattrs, data):
    kind = KINDS[stat.S_IFMT(info.st_mode)]
    entry = Entry(kind=kind, mode=stat.S_IMODE(info.st_mode), uid=info.st_uid, gid=info.st_gid,
                  nlink=info.st_nlink, inode=info.st_ino, time=info.st_mtime_ns, device='',
                  digest='', xattrs={}, blocks=info.st_blocks)
    if xattrs:
        path = b'/proc/self/fd/%d/%s' % (at, name)
        for key in os.listxattr(path, follow_symlinks=False):
            entry.xattrs[os.fsencode(key)] = os.getxattr(path, key, follow_symlinks=False)
    if kind == 'file':
        entry.size = info.st_size
        if data and info.st_size <= data:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            try:
                fd = os.open(name, flags, dir_fd=at)
            except PermissionError:
                os.chmod(name, 0o400, dir_fd=at)
                fd = os.open(name, flags, dir_fd=at)
            try:
                entry.digest = _digest(fd, info.st_size)
            finally:
                os.close(fd)
    elif kind == 'link':
        entry.link = os.readlink(name, dir_fd=at)
    elif kind in ('char', 'block'):
        entry.device = 'native,%d,%d' % (os.major(info.st_rdev), os.minor(info.st_rdev))
    return entry


def _walk(root, visit, leave=None):
    """Call visit(path, name, fd of the folder, stat) for root and all below; leave() behind."""
    at = os.open(os.path.dirname(os.fsencode(root)) or b'.', os.O_RDONLY | os.O_DIRECTORY)
    pending = [(b'.', [os.path.basename(os.fsencode(root))])]
    top = True
    try:
        while pending:
            path, names = pending[-1]
            if not names:
                pending.pop()
                if pending:
                    up = os.open(b'..', os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
                    os.close(at)
                    at = up
                    if leave:
                        leave(os.path.basename(path) if len(pending) > 1
                              else os.path.basename(os.fsencode(root)), at)
                continue
            name = names.pop()
            here = b'.' if top else path + b'/' + name
            top = False
            info = os.stat(name, dir_fd=at, follow_symlinks=False)
            visit(here, name, at, info)
            if stat.S_ISDIR(info.st_mode):
                down = _open_dir(name, at)
                os.close(at)
                at = down
                pending.append((here, sorted(map(os.fsencode, os.listdir(at)), reverse=True)))
    finally:
        os.close(at)


def read(root, xattrs=True, data=1 << 40):
    """The tree on disk; data: largest file whose contents are hashed."""
    tree = {}

    def visit(path, name, at, info):
        tree[path] = _entry(name, at, info, xattrs, data)

    _walk(root, visit)
    return tree


def remove(root):
    """rm -rf that copes with any depth and with folders that we may not read."""
    if not os.path.lexists(root):
        return
    if not os.path.isdir(root) or os.path.islink(root):
        os.unlink(root)
        return

    def visit(path, name, at, info):
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(name, dir_fd=at)
        elif not info.st_mode & 0o300 == 0o300 and os.geteuid():
            os.chmod(name, 0o700, dir_fd=at)

    def leave(name, at):
        os.rmdir(name, dir_fd=at)

    _walk(os.path.abspath(root), visit, leave)


def shifted(ns, probe):
    """What the file system of the folder probe makes of a time (its range may be smaller)."""
    path = os.path.join(probe, '.time-probe')
    with open(path, 'w'):
        pass
    try:
        os.utime(path, ns=(0, ns))
        return os.stat(path).st_mtime_ns
    except (OSError, OverflowError):
        return None
    finally:
        os.unlink(path)


def for_user(tree, uid, gid, umask):
    """What an ordinary user gets of a tree (X5 to X7)."""
    out = {}
    for path, entry in tree.items():
        if entry.kind in ('char', 'block') and entry.device != 'native,0,0':
            continue
        entry = entry.copy()
        entry.uid, entry.gid = uid, gid
        if entry.kind != 'link':
            entry.mode &= ~umask
        if entry.kind == 'file':
            entry.mode &= ~0o6000
        if entry.kind in ('file', 'dir'):
            entry.xattrs = {k: v for k, v in entry.xattrs.items() if k.startswith(b'user.')}
        else:
            entry.xattrs = {}
        out[path] = entry
    return out


def below(path, roots):
    return any(path == r or path.startswith(r + b'/') for r in roots)


def _groups(tree, names):
    """Path -> the paths (among names) of the same inode."""
    groups = {}
    for path in names:
        entry = tree[path]
        if entry.inode is not None and entry.kind != 'dir':
            groups.setdefault(entry.inode, set()).add(path)
    return {path: group for group in groups.values() for path in group}


def compare(wanted, got, skip=(), xattrs=True, nlink=True, probe=None, maybe=(), owner=True,
            mode=True, times=True):
    """Differences as lines; skip: paths (with all below them) that are not looked at."""
    out = []
    skip = [b'.' if p == b'/' else b'.' + p for p in skip]
    if b'.' in skip:
        return out
    names = {p for p in wanted if not below(p, skip)}
    found = {p for p in got if not below(p, skip)}
    for path in sorted(names - found):
        if path not in maybe:
            out.append('%s: missing' % show(path))
    for path in sorted(found - names):
        out.append('%s: should not be there' % show(path))
    names &= found
    touched = {wanted[p].inode for p in wanted if below(p, skip)}
    fields = ['kind', 'device', 'link', 'size', 'digest']
    fields += ['mode'] * mode + ['uid', 'gid'] * owner
    left, right = _groups(wanted, names), _groups(got, names)
    for path in sorted(names):
        one, two = wanted[path], got[path]
        for field in fields:
            a, b = getattr(one, field), getattr(two, field)
            if a != b:
                if field == 'mode':
                    a, b = '%04o' % a, '%04o' % b
                out.append('%s: %s %s, wanted %s' % (show(path), field, short(b), short(a)))
        if times and one.time != two.time and not (probe and
                                                   shifted(one.time, probe) == two.time):
            out.append('%s: time %s, wanted %s' % (show(path), two.time, one.time))
        if one.kind != 'dir' and one.inode not in touched:
            if nlink and one.nlink is not None and one.nlink != two.nlink:
                out.append('%s: nlink %s, wanted %s' % (show(path), two.nlink, one.nlink))
            if path in left and left[path] != right.get(path):
                out.append('%s: linked with %s, wanted %s' % (
                    show(path), ' '.join(map(show, sorted(right.get(path, ()))[:5])),
                    ' '.join(map(show, sorted(left[path])[:5]))))
        if xattrs and one.xattrs != two.xattrs:
            for key in sorted(set(one.xattrs) | set(two.xattrs)):
                a, b = one.xattrs.get(key), two.xattrs.get(key)
                if a != b and not (key == HOST_LABEL and a is None):
                    out.append('%s: xattr %s is %s, wanted %s' % (
                        show(path), show(key), short(b), short(a)))
    return out


def show(path):
    return path.decode('ascii', 'backslashreplace').encode('unicode_escape').decode()[:300]


def short(value):
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= 80 else text[:80] + '...'
