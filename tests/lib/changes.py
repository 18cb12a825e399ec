# SPDX-License-Identifier: GPL-2.0-or-later
"""A tree with one of everything, and the changes to it that a comparison must name, each as PATH, KEY, FOUND, WANTED:
an image of the unchanged tree is found, the changed one is wanted."""
import hashlib
import os
import shutil
import stat
import struct

import tools
from tap import Skip
from tools import fresh

TIME = 1500000000123456789
LABEL = b'u:object_r:vendor_file:s0\0'
CAPS = struct.pack('<IIIII', 0x02000001, 1 << 13, 0, 0, 0)
ACL = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *e) for e in (
    (1, 6, 0xffffffff), (2, 4, 1000), (4, 4, 0xffffffff), (0x10, 6, 0xffffffff), (0x20, 0, 0xffffffff)))


def write(path, data):
    with open(path, 'wb') as file:
        file.write(data)


def settle(top):
    """The same time for everything."""
    for folder, dirs, files in os.walk(top):
        for name in dirs + files + ['.']:
            os.utime(os.path.join(folder, name), ns=(TIME, TIME), follow_symlinks=False)


def big():
    """2.5 MB, every other block compressible: several ranges, several pclusters."""
    parts = []
    for i in range(40):
        parts.append(hashlib.sha256(b'%d' % i).digest() * 1024)
        parts.append(b''.join(hashlib.sha256(b'%d %d' % (i, k)).digest() for k in range(1024)))
    return b''.join(parts)


BIG = big()


def build(change=None, socket=False):
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('no extended attributes in the scratch folder')
    top = fresh('tree', make=True, mode=0o755)

    def at(*names):
        return os.path.join(top, *names)
    for name in ('etc', 'bin', 'bin/deep', 'empty', 'dev'):
        os.mkdir(at(name))
    write(at('big'), BIG)
    write(at('etc/small'), b'some text\n' * 30)
    write(at('etc/none'), b'')
    write(at('bin/tool'), b'#!/bin/sh\nexit 0\n')
    write(at('bin/deep/x'), b'x' * 5000)
    write(at('bin/we ird\n#\\name=*'), b'w')
    os.link(at('bin/tool'), at('bin/tool2'))
    os.link(at('bin/tool'), at('zlink'))
    write(at('etc/one'), b'one or two')
    write(at('etc/two'), b'one or two')
    os.link(at('etc/one'), at('etc/other'))
    os.symlink('../bin/tool', at('etc/sym'))
    os.symlink('t' * 300, at('etc/long'))
    os.mkfifo(at('dev/fifo'))
    os.mknod(at('dev/null'), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(at('dev/disk'), 0o660 | stat.S_IFBLK, os.makedev(8, 300))
    if socket:
        os.mknod(at('dev/sock'), 0o600 | stat.S_IFSOCK)
    os.chown(at('etc/small'), 1000, 70000)
    os.chown(at('etc/sym'), 12, 13, follow_symlinks=False)
    os.chmod(at('bin/tool'), 0o4755)
    os.chmod(at('empty'), 0o1777)
    os.setxattr(at('etc/small'), 'user.note', b'text')
    os.setxattr(at('etc/small'), 'user.raw', bytes(range(200)))
    os.setxattr(at('etc/small'), 'security.selinux', LABEL)
    os.setxattr(at('etc'), 'security.selinux', LABEL)
    os.setxattr(at('bin/deep/x'), 'security.capability', CAPS)
    os.setxattr(at('etc/two'), 'system.posix_acl_access', ACL)
    settle(top)
    if change:
        change(top)
        if not getattr(change, 'sets_time', False):
            settle(top)
    return top


def flip(path, place, bit=1):
    with open(path, 'r+b') as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ bit]))


CHANGES = []


def change(name, function, *wanted, sets_time=False):
    """wanted: (path, key) or (path, key, found, wanted)"""
    def apply(top):
        function(lambda *names: os.path.join(top, *names))
    apply.sets_time = sets_time
    CHANGES.append((name, apply, sorted(wanted)))


def other_type(at):
    os.unlink(at('etc/none'))
    os.mkfifo(at('etc/none'))


def swap_links(at):
    """zlink was bin/tool's, now it is a file of its own, and etc/two is etc/one's."""
    os.unlink(at('zlink'))
    shutil.copy(at('bin/tool'), at('zlink'))
    os.chmod(at('zlink'), 0o4755)


def retime(at):
    os.utime(at('etc/one'), ns=(TIME, TIME + 1))


def lose(at):
    shutil.rmtree(at('bin/deep'))


def extra(at):
    os.mkdir(at('bin/new'))
    write(at('bin/new/file'), b'1')


def device(at):
    os.unlink(at('dev/null'))
    os.mknod(at('dev/null'), 0o666 | stat.S_IFCHR, os.makedev(1, 5))


def target(at):
    os.unlink(at('etc/sym'))
    os.symlink('../bin/tooL', at('etc/sym'))
    os.chown(at('etc/sym'), 12, 13, follow_symlinks=False)


SMALL = b'some text\n' * 30
change('one bit in the middle of a large file', lambda at: flip(at('big'), 1500000, 4),
       ('/big', 'data', '0x%02x at byte 1500000' % BIG[1500000], '0x%02x' % (BIG[1500000] ^ 4)))
change('one bit in the last byte of a large file', lambda at: flip(at('big'), len(BIG) - 1),
       ('/big', 'data', '0x%02x at byte %d' % (BIG[-1], len(BIG) - 1), '0x%02x' % (BIG[-1] ^ 1)))
change('one bit in a small file', lambda at: flip(at('etc/small'), 150),
       ('/etc/small', 'data', '0x73 at byte 150', '0x72'))
change('a byte more', lambda at: write(at('etc/small'), SMALL + b'!'), ('/etc/small', 'size', '300', '301'))
change('an empty file that is not', lambda at: write(at('etc/none'), b'1'), ('/etc/none', 'size', '0', '1'))
change('a large file cut', lambda at: os.truncate(at('big'), 2000000),
       ('/big', 'size', str(len(BIG)), '2000000'))
change('mode', lambda at: os.chmod(at('bin/deep/x'), 0o600), ('/bin/deep/x', 'mode', '0644', '0600'))
change('mode of a folder', lambda at: os.chmod(at('empty'), 0o755), ('/empty', 'mode', '1777', '0755'))
change('owner', lambda at: os.chown(at('etc/one'), 5, 6), ('/etc/one', 'uid', '0', '5'),
       ('/etc/one', 'gid', '0', '6'), ('/etc/other', 'uid', '0', '5'), ('/etc/other', 'gid', '0', '6'))
change('owner of a symlink', lambda at: os.chown(at('etc/sym'), 12, 14, follow_symlinks=False),
       ('/etc/sym', 'gid', '13', '14'))
change('a nanosecond', retime, *((p, 'time', '1500000000.123456789', '1500000000.123456790')
                                 for p in ('/etc/one', '/etc/other')), sets_time=True)
change('label', lambda at: os.setxattr(at('etc'), 'security.selinux', b'u:object_r:x:s0\0'),
       ('/etc', 'xattr.security.selinux', r'u:object_r:vendor_file:s0\000', r'u:object_r:x:s0\000'))
change('label lost', lambda at: os.removexattr(at('etc'), 'security.selinux'),
       ('/etc', 'xattr.security.selinux', r'u:object_r:vendor_file:s0\000', 'none'))
change('capability', lambda at: os.setxattr(at('bin/deep/x'), 'security.capability',
                                            CAPS[:4] + b'\1' + CAPS[5:]),
       ('/bin/deep/x', 'xattr.security.capability'))
change('attribute added', lambda at: os.setxattr(at('big'), 'user.new', b'yes'),
       ('/big', 'xattr.user.new', 'none', 'yes'))
change('attribute changed', lambda at: os.setxattr(at('etc/small'), 'user.note', b'texT'),
       ('/etc/small', 'xattr.user.note', 'text', 'texT'))
change('ACL', lambda at: os.setxattr(at('etc/two'), 'system.posix_acl_access', ACL.replace(
    struct.pack('<HHI', 2, 4, 1000), struct.pack('<HHI', 2, 4, 1001))),
       ('/etc/two', 'xattr.system.posix_acl_access'))
change('a folder less, with what is in it', lose, ('/bin/deep', 'extra', 'directory', 'none'),
       ('/bin/deep/x', 'extra', 'regular', 'none'))
change('a folder more, with what is in it', extra, ('/bin/new', 'missing', 'none', 'directory'),
       ('/bin/new/file', 'missing', 'none', 'regular'))
change('a hard link that became a copy', swap_links, ('/zlink', 'hardlink', '/bin/tool', 'none'))
change('device number', device, ('/dev/null', 'device', '1:3', '1:5'))
change('target of a symlink', target, ('/etc/sym', 'link', '../bin/tool', '../bin/tooL'))
change('type', other_type, ('/etc/none', 'type', 'regular', 'fifo'))
