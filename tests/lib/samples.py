# SPDX-License-Identifier: GPL-2.0-or-later
"""Images that several tests use, and the tree that an image of mkimg holds."""
import functools
import hashlib
import os
import re
import stat

import mkimg
import tools
import tree
from tap import Failure

CAPABILITY = bytes.fromhex('0100000200200000000000000000000000000000')
ACL = bytes.fromhex('0200000001000700ffffffff02000500e803000004000500ffffffff'
                    '10000500ffffffff20000000ffffffff')


def contents(node, block):
    if node.chunks is not None:
        chunk = block << node.chunk_bits
        data = b''.join(bytes(chunk) if p is mkimg.HOLE else p.ljust(chunk, b'\0')
                        for p in node.chunks)
        return data[:node.size] if node.size is not None else data
    if node.runs is not None:
        if any(isinstance(raw, bytes) for raw, _ in node.runs):
            return b''      # ready-made streams: who makes them knows what they hold
        return b''.join(bytes([byte]) * (count * block) for byte, count in node.runs)
    return node.data


def picture(root, block=4096):
    """The tree of a mkimg root, as tree.read() would give it."""
    out, links, numbers = {}, {}, {}

    def visit(path, node):
        number = numbers.setdefault(id(node), len(numbers) + 1)
        links[number] = links.get(number, 0) + 1
        kind = tree.KINDS[stat.S_IFMT(node.mode)]
        entry = tree.Entry(kind=kind, mode=stat.S_IMODE(node.mode), uid=node.uid, gid=node.gid,
                           inode=number, time=node.time, device='', digest='',
                           xattrs={os.fsencode(k): v for k, v in node.xattrs.items()})
        if kind == 'file':
            data = contents(node, block)
            entry.size, entry.digest = len(data), hashlib.sha256(data).hexdigest()
        elif kind == 'link':
            entry.link = node.data
        elif node.rdev or kind in ('char', 'block'):
            entry.device = 'native,%d,%d' % (node.rdev >> 8 & 0xFFF, node.rdev & 0xFF |
                                             node.rdev >> 12 & 0xFFF00)
        out[path] = entry
        for name, child in node.entries.items():
            visit(path + b'/' + os.fsencode(name), child)

    visit(b'.', root)
    for entry in out.values():
        entry.nlink = links[entry.inode] if entry.kind != 'dir' else None
    return out


def same(root, target, wanted=None, **more):
    """Fail unless the folder target holds what root does."""
    wanted = wanted or picture(root)
    if not os.path.isdir(target):
        raise Failure('nothing extracted at %s' % target)
    faults = tree.compare(wanted, tree.read(target, xattrs=more.get('xattrs', True)),
                          probe=tools.scratch(), **more)
    if faults:
        raise Failure('\n'.join(faults[:15]))


def plain_root():
    """One of everything that needs no xattrs."""
    twice = mkimg.File(b'two names\n' * 500)
    return mkimg.Dir({
        'one': mkimg.File(b'hello\n', time=1600000000123456789),
        'first': twice, 'second': twice,
        'big': mkimg.File(bytes(range(256)) * 100),
        'runs': mkimg.Runs([(65, 16), (66, 8)]),
        'holes': mkimg.Chunked([mkimg.HOLE, b'A' * 8192, mkimg.HOLE], 1),
        'all-hole': mkimg.Chunked([mkimg.HOLE] * 4, 1),
        'empty': mkimg.File(),
        'dir': mkimg.Dir({'in': mkimg.File(b'inside\n', mode=0o600),
                          'deep': mkimg.Dir({'er': mkimg.File(b'deeper\n')}, mode=0o711)},
                         mode=0o750, time=1234567890987654321),
        'link': mkimg.Link('dir/in'),
        'dangling': mkimg.Link('/nowhere/at/all'),
        'fifo': mkimg.Special(stat.S_IFIFO, mode=0o620),
        'socket': mkimg.Special(stat.S_IFSOCK, mode=0o600),
        b'caf\xc3\xa9 \xff': mkimg.File(b'bytes\n'),
    })


@functools.lru_cache(None)
def plain():
    """(path of an image, its mkimg root)."""
    root = plain_root()
    return tools.save(mkimg.build(root), 'plain'), root


def xattr_root():
    return mkimg.Dir({
        'cap': mkimg.File(b'#!/bin/true\n', mode=0o755,
                          xattrs={'security.capability': CAPABILITY, 'user.a': b'1'}),
        'cap1000': mkimg.File(b'x', mode=0o755, uid=1000, gid=1000,
                              xattrs={'security.capability': CAPABILITY}),
        'empty': mkimg.File(b'y', xattrs={'user.a': b'1', 'user.empty': b'', 'user.z': b'3'}),
        'locked': mkimg.File(b'z', mode=0o444, xattrs={'user.ro': b'yes'}),
        'trusted': mkimg.File(b't', xattrs={'trusted.t': b'\0\1'}),
        'acl': mkimg.File(b'acl', mode=0o750, xattrs={'system.posix_acl_access': ACL}),
        'dir': mkimg.Dir({}, mode=0o555, xattrs={'user.d': b'dir'}),
    })


@functools.lru_cache(None)
def xattrs():
    root = xattr_root()
    return tools.save(mkimg.build(root), 'xattrs'), root


def damaged_builder(count=20, bad=('f05',)):
    """count compressed files, the first pcluster of each bad one spoilt."""
    root = mkimg.Dir({'f%02d' % n: mkimg.Runs([(65 + n, 8), (97, 8)])
                      for n in range(1, count + 1)})
    builder = mkimg.Builder(root)
    image = mkimg.Image(builder.build())
    for name in bad:
        at = root.entries[name].pclusters[0]
        image.data[at:at + 4096] = b'\xff' * 4096
    return bytes(image.data), root


@functools.lru_cache(None)
def damaged(bad=('f05',)):
    data, root = damaged_builder(bad=bad)
    return tools.save(data, 'damaged'), root


@functools.lru_cache(None)
def long_run():
    """An image that takes seconds: 100 files of 64 MiB that share one chunk of 1 MiB."""
    piece = bytes(os.urandom(4096)) * 256
    root = mkimg.Dir({'f%03d' % n: mkimg.Chunked([piece] * 64, 8) for n in range(100)})
    return tools.save(mkimg.build(root), 'long'), root


@functools.lru_cache(None)
def devices():
    """(image, [two device files], root): chunks on two extra devices."""
    piece = [b'first device\n'.ljust(4096, b'1'), b'second device'.ljust(4096, b'2')]
    root = mkimg.Dir({'a': mkimg.Chunked([b'x' * 4096], 0), 'b': mkimg.Chunked([b'y' * 4096], 0)})
    builder = mkimg.Builder(root, incompat=4)
    image = mkimg.Image(builder.build())
    for number, name in enumerate('ab'):
        inode = image.find(name)
        form = image.get(inode.at + 16, 'H')
        at = mkimg.up(inode.end, 8)
        # The 4-byte entry becomes an 8-byte one; the slot of 32 bytes has room for it.
        image.put(inode.at + 16, 'H', form | 0x20)
        image.put(at, 'H', 0).put(at + 2, 'H', number + 1).put(at + 4, 'I', 0)
        slot = 1024 + 256 + 128 * number
        image.put(slot + 64, 'I', 1).put(slot + 68, 'I', 0x10000 * (number + 1))
        root.entries[name].chunks = [piece[number]]
    image.put(1024 + 80, 'I', image.get(1024 + 80, 'I') | 8)
    image.put(1024 + 86, 'H', 2).put(1024 + 88, 'H', (1024 + 256) // 128)
    image.seal()
    return (tools.save(bytes(image.data), 'devices'),
            [tools.save(p, 'device') for p in piece], root)


def form_fault(result, tool='fsck.erofs'):
    """R13: each line of stderr is a message, or the hint to --help."""
    for line in result.text.splitlines():
        if not re.match(r"<[EWID]> erofs: |Try '%s --help' for more information\.$" % tool, line):
            raise Failure('%s\nno message line: %r' % (result, line))
