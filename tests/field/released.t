#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Field reports 1 to 21: what the released tools get wrong on inputs that take seconds to make."""
import os
import re
import signal
import stat
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import samples  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import DUMP, FSCK, ROOT, dump, expect, fresh, fsck, mkfs, save  # noqa: E402

tools.need(FSCK, 'fsck.erofs')


def source(files):
    folder = fresh('source', make=True, mode=0o755)
    for name, data in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(data)
    return folder


def content(*parts):
    with open(os.path.join(*parts), 'rb') as file:
        return file.read()


def full_disk(picture, size, name):
    for workers in tools.WORKERS:
        with tools.tmpfs(size) as where:
            target = os.path.join(where, 'x')
            result = expect(fsck('--extract=' + target, '--workers=' + workers, picture), 8,
                            r'%s.*(?i:no space)' % name)
            samples.form_fault(result)
            check(name not in os.listdir(target), 'a short %s is left' % name, result)


@test('field 1: full disk, plain file: ENOSPC named with the path, no short file')
def _():
    full_disk(mkfs(source({'large': os.urandom(1000000)}), '-Enoinline_data'), '900k', 'large')


@test('field 1: full disk, plain file, without a released mkfs')
def _():
    root = mkimg.Dir({'large': mkimg.File(os.urandom(1000000), inline=False)})
    full_disk(save(mkimg.build(root)), '900k', 'large')


@test('field 1: full disk, compressed file')
def _():
    full_disk(mkfs(source({'large': b'a' * 60000}), '-zlz4', '-C65536'), '40k', 'large')


@test('field 2: truncated plain image: check and extraction fail, no zeros in place of data')
def _():
    data = mkimg.build(mkimg.Dir({'a': mkimg.File(os.urandom(1000000), inline=False),
                                  'z': mkimg.File(b'fine\n')}))
    picture = save(data[:200000])
    expect(fsck(picture), 4)
    expect(fsck('--extract', picture), 4, r'/a\b.*0x[0-9a-f]+')
    target = fresh()
    expect(fsck('--extract=' + target, picture), 4, r'/a\b.*0x[0-9a-f]+')
    is_(os.listdir(target), ['z'], 'files')


@test('field 4: capabilities, owner 0 and 1000, survive --extract --xattrs')
def _():
    tools.need_root()
    if not tools.has_xattrs():
        raise Skip('the scratch file system has no user attributes')
    target = fresh()
    expect(fsck('--extract=' + target, '--xattrs', samples.xattrs()[0]), 0, silent=True)
    samples.same(samples.xattrs()[1], target)


@test('field 5: an empty xattr value does not hide the rest')
def _():
    if not tools.has_xattrs():
        raise Skip('the scratch file system has no user attributes')
    target = fresh()
    expect(fsck('--extract=' + target, '--xattrs', '--path=/empty', samples.xattrs()[0]), 0)
    got = {k: os.getxattr(target, k) for k in os.listxattr(target) if k.startswith('user.')}
    is_(got, {'user.a': b'1', 'user.empty': b'', 'user.z': b'3'}, 'attributes')


def deep(levels, name='d'):
    node = mkimg.Dir({'end': mkimg.File(b'end\n')})
    for _ in range(levels):
        node = mkimg.Dir({name: node})
    return node


@test('field 6: 1,900 nested folders; and paths longer than PATH_MAX')
def _():
    import resource
    for levels, name in ((1900, 'd'), (500, 'n' * 200)):
        root = deep(levels, name)
        builder = mkimg.Builder(root)
        picture = save(builder.build())
        for workers in tools.WORKERS:
            for words in ([], ['--extract']):
                expect(fsck(*words, '--workers=' + workers, picture,
                            limits=[(resource.RLIMIT_STACK, 1 << 20)]), 0, silent=True)
            target = fresh()
            expect(fsck('--extract=' + target, '--workers=' + workers, picture), 0)
            got = tree.read(target)
            end = b'.' + (b'/' + name.encode()) * levels + b'/end'
            is_(len(got), levels + 2, 'names')
            is_(got[end].size, 4, 'the file at the end')
            tree.remove(target)


@test('field 7: TMPDIR on a full disk changes nothing: no temporary files, no 200-fold time')
def _():
    files = {'d%02d/f%03d' % (n % 20, n): os.urandom(300) + b'%d ' % n * 900 for n in range(1200)}
    picture = mkfs(source(files), '-zlzma,6', '-C131072', '-Eall-fragments,fragdedupe=inode')
    target = fresh()
    plain = expect(fsck('--extract=' + target, picture), 0)
    tree.remove(target)
    with tools.tmpfs('64k') as where:
        with open(os.path.join(where, 'fill'), 'wb') as file:
            try:
                file.write(bytes(1 << 20))
            except OSError:
                pass
        result = expect(fsck('--extract=' + target, picture, env={'TMPDIR': where}), 0)
        is_(os.listdir(where), ['fill'], 'TMPDIR')
    check(result.seconds < 3 * plain.seconds + 2, plain, result)
    for name in ('d00/f000', 'd07/f007', 'd19/f1199'):
        is_(content(target, name), files[name], name)


@test('field 7: a small memory budget keeps the time in bounds')
def _():
    files = {'d%02d/f%03d' % (n % 20, n): os.urandom(300) + b'%d ' % n * 900 for n in range(1200)}
    picture = mkfs(source(files), '-zlzma,6', '-C131072', '-Eall-fragments,fragdedupe=inode')
    plain = expect(fsck('--extract', picture), 0)
    small = fsck('--extract', '--max-memory=12M', picture)
    if small.status == 8:
        check(re.search(r'(?i)memory', small.text), small)
        return
    expect(small, 0)
    check(small.seconds < 10 * plain.seconds + 3, plain, small)


@test('field 9: one damaged pcluster of 20 files: path, nid, offset; the other 19 extracted; 4')
def _():
    picture, root = samples.damaged()
    for workers in tools.WORKERS:
        target = fresh()
        result = expect(fsck('--extract=' + target, '--workers=' + workers, picture), 4,
                        r'/f05 \(nid \d+\) @ 0x[0-9a-f]+: ')
        wanted = samples.picture(root)
        del wanted[b'./f05']
        samples.same(root, target, wanted, owner=ROOT)
        is_(len(re.findall(r'/f\d\d', result.text)), 1, 'one line for one fault')


@test('field 9: as made by mkfs.erofs -zlz4hc')
def _():
    files = {'f%02d' % n: (b'%d line of text, %d\n' % (n, n * n)) * 4000 for n in range(1, 21)}
    picture = mkimg.Image.load(mkfs(source(files), '-zlz4hc'))
    inode = picture.find('f05')
    base = mkimg.up(inode.end, 8) + 8
    # Compact indexes without big pclusters: the address stands at the end of a pack of two.
    block = picture.get(base + 4, 'I') + 1
    at = block * 4096
    picture.data[at + 3900:at + 4000] = bytes(b ^ 0xFF for b in picture.data[at + 3900:at + 4000])
    target = fresh()
    result = fsck('--extract=' + target, save(bytes(picture.data)))
    if result.status == 0:
        raise Skip('the flipped bytes were literals')
    expect(result, 4, r'/f\d\d \(nid \d+\) @ 0x')
    named = set(re.findall(r'/(f\d\d) \(nid', result.text))
    is_(set(os.listdir(target)), set(files) - named, 'files')
    check(len(named) == 1, 'files named', named)


@test('field 10: a plain check passes by compressed data and says so; --workers decodes all')
def _():
    picture, _ = samples.damaged()
    result = expect(fsck('-d3', picture), 0)
    check(re.search(r'(?i)not (checked|decoded|verified|read)', result.text), result)
    expect(fsck('--workers=percpu', picture), 4, r'/f05')
    expect(fsck('--extract', picture), 4, r'/f05')


@test('field 12: --overwrite a second time, with hard links, and over a symlink')
def _():
    picture, root = samples.plain()
    target = fresh()
    for n in range(3):
        if n == 2:
            os.unlink(os.path.join(target, 'big'))
            os.symlink('one', os.path.join(target, 'big'))
        expect(fsck('--extract=' + target, '--overwrite', picture), 0)
        samples.same(root, target, owner=ROOT, mode=ROOT)


@test('field 13: --overwrite over a FIFO does not hang, nor write into a device')
def _():
    picture, root = samples.plain()
    target = fresh('there', make=True)
    os.mkfifo(os.path.join(target, 'one'))
    os.mkfifo(os.path.join(target, 'first'))
    if ROOT:
        os.mknod(os.path.join(target, 'big'), stat.S_IFCHR | 0o666, os.makedev(1, 7))
    expect(fsck('--extract=' + target, '--overwrite', picture, timeout=10), 0)
    samples.same(root, target, owner=ROOT, mode=ROOT)


@test('field 13: without --overwrite a FIFO in the way is an error, not a wait')
def _():
    target = fresh('there', make=True)
    os.mkfifo(os.path.join(target, 'one'))
    expect(fsck('--extract=' + target, samples.plain()[0], timeout=10), 8, r'/?one\b')


@test('field 16: terminal control bytes in names are escaped in error lines')
def _():
    root = mkimg.Dir({b'\x1b]0;x\x07\n': mkimg.Runs([(65, 8)])})
    picture = mkimg.Image(mkimg.Builder(root).build())
    at = next(iter(root.entries.values())).pclusters[0]
    picture.data[at:at + 4096] = b'\xff' * 4096
    result = expect(fsck('--extract', save(bytes(picture.data))), 4)
    check(not re.search(rb'[\x00-\x08\x0b-\x1f\x7f]', result.err), result)
    samples.form_fault(result)
    if DUMP:
        listing = expect(dump('--ls', save(mkimg.build(root))), 0)
        check(b'\x1b]0;x\x07\n' in listing.out, 'not byte-exact', listing)


@test('field 17: a stopped run leaves only whole files, and a second run completes')
def _():
    root = mkimg.Dir({'d%02d' % d: mkimg.Dir({'f%03d' % n: mkimg.Runs([(n % 250 + 1, 16)])
                                              for n in range(150)}) for d in range(40)})
    picture = save(mkimg.build(root))
    wanted = samples.picture(root)
    for workers in tools.WORKERS:
        target = fresh()

        def during(process):
            until = time.monotonic() + 5
            while time.monotonic() < until and not os.path.isdir(os.path.join(target, 'd05')):
                time.sleep(0.0005)
            os.kill(process.pid, signal.SIGTERM)

        result = fsck('--extract=' + target, '--workers=' + workers, picture, during=during)
        check(result.status in (0, 32), result)
        for path, entry in tree.read(target).items():
            if entry.kind == 'file':
                check(path in wanted and entry.digest == wanted[path].digest, 'short or strange',
                      path)
        expect(fsck('--extract=' + target, '--overwrite', '--workers=' + workers, picture), 0)
        samples.same(root, target, owner=ROOT)
        tree.remove(target)


@test('field 18: an Android sparse image, as long as it is not read: status 8, no crash')
def _():
    blocks = content(samples.plain()[0])
    head = struct.pack('<IHHHHIIII', 0xED26FF3A, 1, 0, 28, 12, 4096, len(blocks) // 4096, 1, 0)
    chunk = struct.pack('<HHII', 0xCAC1, 0, len(blocks) // 4096, 12 + len(blocks))
    result = fsck(save(head + chunk + blocks, 'sparse'))
    expect(result, {0, 8})


@test('field 18: an image at an offset in a file')
def _():
    expect(fsck('--extract', '--offset=65536', save(bytes(65536) + content(samples.plain()[0]))),
           0, silent=True)


@test('field 20: damaged xattrs are reported by --extract=DIR --xattrs')
def _():
    image = mkimg.Image.load(samples.xattrs()[0])
    inode = image.find('empty')
    image.data[inode.core + 12] = 255
    for words in ([], ['--extract'], ['--extract=' + fresh(), '--xattrs']):
        expect(fsck(*words, save(bytes(image.seal().data))), {4, 12}, r'/empty\b')


@test('field 21: a directory that holds itself: nothing below the loop is made')
def _():
    inner = mkimg.Dir({'a': mkimg.File(b'a')})
    root = mkimg.Dir({'d': mkimg.Dir({'q': inner, 'x': mkimg.File(b'x')}), 'z': mkimg.File(b'z')})
    image = mkimg.Image(mkimg.build(root))
    d = image.find('d')
    image.put(d.entries()[b'q'][2], 'Q', d.nid)
    target = fresh()
    expect(fsck('--extract=' + target, save(bytes(image.seal().data))), 4, r'/d/q|nid %d' % d.nid)
    check(not os.path.exists(os.path.join(target, 'd', 'q', 'q')), 'below the loop')
    is_(content(target, 'z'), b'z', 'the rest')
    is_(content(target, 'd', 'x'), b'x', 'beside the loop')


main()
