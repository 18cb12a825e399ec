#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md sections 7 ("Android file formats") and 8: dump.erofs --extract --android-config=DIR; R23, X5, X6."""
import ctypes
import os
import re
import resource
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
from tools import DUMP, ROOT, dump, expect, fresh, save  # noqa: E402

tools.need(DUMP, 'dump.erofs')
FILES = ('vendor_fs_config', 'vendor_file_contexts')
WHITE = b' \t\n\v\f\r'


def label(name):
    return {'security.selinux': b'u:object_r:' + name + b':s0\0'}


def caps(mask, revision=2, effective=1, inheritable=0, rootid=None):
    words = [revision << 24 | effective, mask & 0xFFFFFFFF, inheritable]
    words += [mask >> 32, 0] if revision > 1 else []
    words += [] if rootid is None else [rootid]
    return {'security.capability': struct.pack('<%dI' % len(words), *words)}


def vendor_root():
    twice = mkimg.File(b'two', mode=0o640, uid=5, xattrs=label(b'twice'))
    return mkimg.Dir({
        'bin': mkimg.Dir({
            'ping': mkimg.File(b'p', mode=0o750, gid=2000, xattrs={**label(b'ping_exec'), **caps(0x3000)}),
            'wake': mkimg.File(b'w', mode=0o755, xattrs=caps(0x800000000)),
            'su': mkimg.File(b's', mode=0o4755, xattrs=label(b'su')),
        }, mode=0o751, gid=2000, xattrs=label(b'bin')),
        'a': twice, 'z': twice,
        'lib.so': mkimg.File(b'l', xattrs={'security.selinux': b'u:object_r:no_nul:s0'}),
        'link': mkimg.Link('bin/ping', uid=1, gid=4294967295),
        'null': mkimg.Special(stat.S_IFCHR, 1 << 8 | 3, mode=0o666, xattrs=label(b'null')),
        'sticky': mkimg.Dir(mode=0o1777),
    }, mode=0o755, gid=2000, xattrs=label(b'vendor'))


PLAIN = [b'vendor 0 2000 0755', b'vendor/a 5 0 0640', b'vendor/bin 0 2000 0751',
         b'vendor/bin/ping 0 2000 0750 capabilities=0x3000', b'vendor/bin/su 0 0 4755',
         b'vendor/bin/wake 0 0 0755 capabilities=0x800000000', b'vendor/lib.so 0 0 0644',
         b'vendor/link 1 4294967295 0777', b'vendor/null 0 0 0666', b'vendor/sticky 0 0 1777',
         b'vendor/z 5 0 0640']
LABELS = [b'/vendor vendor', b'/vendor/a twice', b'/vendor/bin bin', b'/vendor/bin/ping ping_exec',
          b'/vendor/bin/su su', b'/vendor/lib\\.so no_nul', b'/vendor/null null', b'/vendor/z twice']


def vendor():
    return save(mkimg.build(vendor_root()), 'vendor.img.')


def lines(folder, name):
    with open(os.path.join(folder, name), 'rb') as file:
        data = file.read()
    check(data == b'' or data.endswith(b'\n'), name, 'ends within a line')
    return data.split(b'\n')[:-1]


def short(contexts):
    return [re.sub(rb' u:object_r:(\w+):s0$', rb' \1', l) for l in contexts]


def config(picture, *words, status=0, patterns=(), folder=None, mount='--mount-point=/vendor', **more):
    """(folder of the files, folder of the tree, result)"""
    work = fresh(make=True)
    folder, target = folder or os.path.join(work, 'config'), os.path.join(work, 'tree')
    result = dump('--extract=' + target, '--android-config=' + folder, *filter(None, [mount]), picture,
                  *words, **more)
    return folder, target, expect(result, status, *patterns)


@test('X5, X6: owners, modes, capabilities and labels, line for line, as root and as an ordinary user')
def _():
    for more in ({}, tools.as_user()):
        folder, target, _ = config(vendor(), **more)
        is_(sorted(os.listdir(folder)), sorted(FILES))
        is_(lines(folder, FILES[0]), PLAIN)
        is_(short(lines(folder, FILES[1])), LABELS)
        check(os.path.isfile(os.path.join(target, 'bin', 'ping')), 'the tree is there too')


@test('--android-config: mode 0666 less the umask, a new folder 0777 less it')
def _():
    folder, _, _ = config(vendor(), umask=0o027)
    is_(stat.S_IMODE(os.stat(folder).st_mode), 0o750)
    for name in FILES:
        is_(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o640)


@test('A10: the same bytes for every worker setting')
def _():
    picture = tools.corpus('good', 'kinds-owners.erofs')
    seen = set()
    for workers in ('1', '2', 'percpu', 'unbound'):
        folder, target, _ = config(picture, '--workers=' + workers, status=(0, 1))
        seen.add(tuple(tuple(lines(folder, n)) for n in FILES))
        tree.remove(target)
    is_(len(seen), 1)


def facts_of(folder, names):
    """What the two files say of each path of an image: (uid, gid, mode, mask), label."""
    told, labels = {}, {}
    for line in lines(folder, FILES[0]):
        words = line.split(b' ')
        mask = int(words[4][len('capabilities='):], 16) if len(words) > 4 else 0
        check(len(words) < 5 or words[4].startswith(b'capabilities=0x'), line)
        told[words[0]] = (int(words[1]), int(words[2]), int(words[3], 8), mask)
    for line in lines(folder, FILES[1]):
        regex, _, text = line.partition(b' ')
        regex.decode('ascii')
        hits = [n for n in names if re.fullmatch(regex, n, re.S)]
        is_(len(hits), 1, 'names that %r matches' % regex)
        labels[hits[0]] = text
    return told, labels


def known_of(kernel):
    """The same of a mounted image."""
    told, labels, lost = {}, {}, 0
    for path, entry in kernel.items():
        full = b'/vendor' + path[1:]
        text = entry.xattrs.get('security.selinux'.encode(), b'').rstrip(b'\0')
        if text:
            labels[full] = text
        mask = 0
        raw = entry.xattrs.get(b'security.capability')
        if raw:
            word = struct.unpack('<%dI' % (len(raw) // 4), raw)
            mask = word[1] | word[3] << 32
            if word[2] or word[4] or not word[0] & 1 or any(word[5:]):
                mask, lost = 0, lost + 1
        if any(c in WHITE for c in full):
            lost += 1
        else:
            told[full[1:]] = (entry.uid, entry.gid, entry.mode, mask)
    return told, labels, lost


def compare_with_kernel(picture, *words, user=False):
    with tools.Mount('-t', 'erofs', '-o', 'loop,ro', picture) as mounted:
        kernel = tree.read(mounted, data=0)
    told, labels, lost = known_of(kernel)
    more = tools.as_user() if user else {}
    folder, target, result = config(picture, *words, status=(0, 1), **more)
    is_(result.status, 1 if lost else 0, str(result))
    names = [b'/vendor' + p[1:] for p in kernel]
    got, got_labels = facts_of(folder, names)
    is_(got, told, os.path.basename(picture))
    is_(got_labels, labels, os.path.basename(picture))
    is_(list(got), sorted(got, key=lambda p: p.split(b'/')), 'order')
    tree.remove(target)


@test('--android-config says what the kernel shows of the same image: corpus images, both users')
def _():
    for name in 'kinds-owners kinds-48bit kinds-metabox xattrs-plain xattrs-prefix names-lz4-zD'.split():
        picture = tools.corpus('good', name + '.erofs')
        for user in (False, True):
            compare_with_kernel(picture, user=user)


def made_image():
    """An image of the released mkfs.erofs, with capabilities and labels as the kernel stores them."""
    source = fresh(make=True)
    for name, mode in (('plain', 0o644), ('prog', 0o755), ('a b', 0o700), ('x[1].so', 0o4750)):
        path = os.path.join(source, name)
        with open(path, 'w') as file:
            file.write(name)
        os.chown(path, len(name), 1000)
        os.chmod(path, mode)
    try:
        os.setxattr(os.path.join(source, 'prog'), *caps(0x8000003000).popitem())
    except OSError as err:
        raise Skip('no capabilities here: %s' % err)
    rules = save(b'/vendor u:object_r:vendor_file:s0\n/vendor/.*\\.so u:object_r:lib:s0\n'
                 b'/vendor/prog u:object_r:prog_exec:s0\n/vendor/plain u:object_r:p:s0:c1,c2\n')
    return source, rules


@test('--android-config: an image of the released mkfs.erofs, against a kernel mount')
def _():
    tools.need_root()
    source, rules = made_image()
    picture = tools.mkfs(source, '--mount-point=/vendor', '--file-contexts=' + rules)
    compare_with_kernel(picture)
    folder, _, _ = config(picture, status=1)
    told, labels = (lines(folder, n) for n in FILES)
    check(b'vendor/prog 4 1000 0755 capabilities=0x8000003000' in told, told)
    check(b'/vendor/plain u:object_r:p:s0:c1,c2' in labels, labels)


ODD = ['lib.so', 'libxso', 'a b', 'a\tb', 'axb', 'b\\s', 'n\nl', 'x[1](){}*?+|^$', "d-,:~#@!%&=;<>'", '*', '.*',
       '..x']


def odd_root():
    names = [n.encode() for n in ODD] + [b'caf\xc3\xa9', b'\xff\xfe', b'x' * 255]
    return mkimg.Dir({n: mkimg.File(b'', xattrs=label(b'f%d' % k)) for k, n in enumerate(names)},
                     xattrs=label(b'root')), names


@test('file_contexts: the released mkfs.erofs gives the same labels back, whatever the names')
def _():
    tools.need_root()
    root, names = odd_root()
    folder, target, _ = config(save(mkimg.build(root)), status=1)
    rules = os.path.join(folder, FILES[1])
    is_(len(lines(folder, FILES[1])), len(names) + 1)
    picture = tools.mkfs(target, '--mount-point=/vendor', '--file-contexts=' + rules)
    again, _, _ = config(picture, status=1)
    with open(rules, 'rb') as one, open(os.path.join(again, FILES[1]), 'rb') as two:
        is_(two.read(), one.read())
    for k, name in enumerate(names):
        is_(os.path.exists(os.path.join(os.fsencode(target), name)), True, name)


@test('file_contexts: libselinux finds the label of each name, and none for others')
def _():
    try:
        lib = ctypes.CDLL('libselinux.so.1', use_errno=True)
    except OSError:
        raise Skip('no libselinux')

    class Option(ctypes.Structure):
        _fields_ = [('type', ctypes.c_int), ('value', ctypes.c_char_p)]

    root, names = odd_root()
    folder, _, _ = config(save(mkimg.build(root)), status=1)
    lib.selabel_open.restype = ctypes.c_void_p
    lib.selabel_lookup_raw.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p,
                                       ctypes.c_int]
    option = Option(3, os.fsencode(os.path.join(folder, FILES[1])))   # SELABEL_OPT_PATH
    handle = lib.selabel_open(0, ctypes.byref(option), 1)
    check(handle, 'selabel_open', ctypes.get_errno())

    def look(name):
        text = ctypes.c_char_p()
        return text.value if not lib.selabel_lookup_raw(handle, ctypes.byref(text), name, 0) else None
    for k, name in enumerate(names):
        is_(look(b'/vendor/' + name), b'u:object_r:f%d:s0' % k, name)
    for name in (b'a_b', b'zz', b'cafe', b'lib_so'):
        is_(look(b'/vendor/' + name), None, name)


@test('names with white space are named, their other file has them, status 1')
def _():
    root, names = odd_root()
    folder, _, result = config(save(mkimg.build(root)), status=1)
    plain = [n for n in names if not any(c in WHITE for c in n)]
    is_(len(lines(folder, FILES[0])), 1 + len(plain))
    for text in ('a b', 'a\\011b', 'n\\012l'):
        check(text + ': not in fs_config' in result.text, text, result)
    is_(result.text.count('not in fs_config'), len(names) - len(plain))
    samples.form_fault(result, 'dump.erofs')


@test('capabilities that no mask can say, labels that are no word: named, no more rights than before')
def _():
    odd = {'inherits': caps(1, inheritable=1), 'waits': caps(1, effective=0), 'none': caps(0),
           'ns': caps(1, revision=3, rootid=1000), 'future': caps(1, revision=4),
           'cut': {'security.capability': b'\1'}}
    fine = {'v1': caps(2, revision=1), 'v3': caps(4, revision=3, rootid=0)}
    words = {'blank': b'u:a b', 'empty': b'', 'nul': b'\0', 'line': b'u:a\nb', 'high': b'u:\xff'}
    root = mkimg.Dir({**{n: mkimg.File(b'', xattrs=x) for n, x in {**odd, **fine}.items()},
                      **{n: mkimg.File(b'', xattrs={'security.selinux': v}) for n, v in words.items()}})
    folder, _, result = config(save(mkimg.build(root)), status=1)
    for name in odd:
        check(name + ': its capabilities are not in fs_config' in result.text, name, result)
        check(b'vendor/%s 0 0 0644' % name.encode() in lines(folder, FILES[0]), name)
    for name in words:
        check(name + ': its label is not in file_contexts' in result.text, name, result)
    is_(lines(folder, FILES[1]), [])
    check(b'vendor/v1 0 0 0644 capabilities=0x2' in lines(folder, FILES[0]), lines(folder, FILES[0]))
    check(b'vendor/v3 0 0 0644 capabilities=0x4' in lines(folder, FILES[0]), lines(folder, FILES[0]))


@test('members, globs, --path and --strip-components narrow and shift the lines as they do the tree')
def _():
    picture = vendor()
    folder, _, _ = config(picture, 'bin/su', '--include=l*')
    is_([l.split(b' ')[0] for l in lines(folder, FILES[0])],
        [b'vendor', b'vendor/bin', b'vendor/bin/su', b'vendor/lib.so', b'vendor/link'])
    is_(short(lines(folder, FILES[1])), [LABELS[0], LABELS[2], LABELS[4], LABELS[5]])
    folder, _, _ = config(picture, '--exclude=bin', '--exclude=*z')
    is_(lines(folder, FILES[0]), [PLAIN[n] for n in (0, 1, 6, 7, 8, 9)])
    folder, target, _ = config(picture, '--path=/bin')
    is_(lines(folder, FILES[0]), [l.replace(b'vendor/bin', b'vendor') for l in PLAIN[2:6]])
    folder, target, _ = config(picture, '--strip-components=1')
    is_(lines(folder, FILES[0]), [l.replace(b'vendor/bin', b'vendor') for l in PLAIN[3:6]])
    is_(sorted(os.listdir(target)), ['ping', 'su', 'wake'])
    folder, _, _ = config(picture, 'bin/su', 'nowhere', status=1, patterns=['nowhere: nothing'])
    is_(lines(folder, FILES[0]), [PLAIN[0], PLAIN[2], PLAIN[4]])
    folder, _, _ = config(picture, '--path=/bin/su', status=2, patterns=['Not a directory'])
    check(not os.path.exists(folder), 'folder')


@test('--mount-point: any depth, / as well; without it the file name up to its first dot')
def _():
    picture = save(mkimg.build(mkimg.Dir({'f': mkimg.File(b'', xattrs=label(b'f'))}, xattrs=label(b'r'))))
    for word, first, name in (('vendor', 'vendor', 'vendor'), ('//vendor//', 'vendor', 'vendor'),
                              ('/system/ext', 'system/ext', 'ext'), ('/', '/', 'root')):
        folder, _, _ = config(picture, mount='--mount-point=' + word)
        is_(sorted(os.listdir(folder)), [name + '_file_contexts', name + '_fs_config'])
        below = first.encode() + b'/' if first != '/' else b''
        is_(lines(folder, name + '_fs_config'), [first.encode() + b' 0 0 0755', below + b'f 0 0 0644'])
        is_(short(lines(folder, name + '_file_contexts')),
            [(b'/' + below).rstrip(b'/') + b' r' if below else b'/ r', b'/' + below + b'f f'])
    for name in ('odm', 'odm.img', 'odm.erofs.img'):
        work = fresh(make=True)
        os.symlink(picture, os.path.join(work, name))
        folder, _, _ = config(os.path.join(work, name), mount=None)
        is_(sorted(os.listdir(folder)), ['odm_file_contexts', 'odm_fs_config'])


@test('a mount point that is none, options without their action: status 2, nothing made')
def _():
    picture = vendor()
    for word in ('', 'a b', '..', '/a/../b', '/a//b', '.', 'x' * 250):
        folder, target, _ = config(picture, mount='--mount-point=' + word, status=2,
                                   patterns=['no mount point'])
        check(not os.path.exists(folder) and not os.path.exists(target), word)
    work = fresh(make=True)
    os.symlink(picture, os.path.join(work, 'my image.img'))
    config(os.path.join(work, 'my image.img'), mount=None, status=2, patterns=['name it with --mount-point'])
    with open(picture, 'rb') as file:
        config('-', mount=None, status=2, patterns=['where is standard input mounted'], stdin=file)
    with open(picture, 'rb') as file:
        config('-', stdin=file)
    expect(dump('--android-config=x', picture), 2, '--android-config needs --extract')
    expect(dump('--android-config=x', '--to-tar=y', picture), 2, '--android-config needs --extract')
    expect(dump('--mount-point=x', '--extract=y', picture), 2, '--mount-point needs --android-config')
    expect(dump('--android-config=', '--extract=y', picture), 2, '--android-config= needs a folder')


@test('X1: the folder is made, its parents only with --mkdir-parents; no image: nothing is made')
def _():
    folder, _, _ = config(vendor(), folder=fresh() + '/a/b', status=2, patterns=['No such file'])
    folder, _, _ = config(vendor(), '--mkdir-parents', folder=fresh() + '/a/b')
    is_(lines(folder, FILES[0]), PLAIN)
    folder, target, _ = config(save(b'\0' * 8192), status=2)
    check(not os.path.exists(folder) and not os.path.exists(target), 'made')


@test('R23: older files are replaced when the new ones are whole; symlinks and marked leftovers too')
def _():
    folder, outside = fresh(make=True), save(b'precious')
    with open(os.path.join(folder, FILES[0]), 'w') as file:
        file.write('old\n' * 100000)
    os.symlink(outside, os.path.join(folder, FILES[1]))
    config(vendor(), folder=folder)
    is_(lines(folder, FILES[0]), PLAIN)
    is_(short(lines(folder, FILES[1])), LABELS)
    with open(outside, 'rb') as file:
        is_(file.read(), b'precious')
    is_(sorted(os.listdir(folder)), sorted(FILES))


def many_root(count=12000):
    return mkimg.Dir({'d%02d' % d: mkimg.Dir({'f%05d' % n: mkimg.File(uid=n) for n in range(count // 20)})
                      for d in range(20)})


@test('R23, R24: a full disk or a size limit: status 2, the old files stay, nothing is left behind')
def _():
    picture = save(mkimg.build(many_root()))
    folder = fresh(make=True)
    for name in FILES:
        with open(os.path.join(folder, name), 'w') as file:
            file.write('old\n')
    config(picture, '--exclude=d1*', folder=folder, status=2, patterns=['File too large'],
           limits=[(resource.RLIMIT_FSIZE, 65536)])
    is_([lines(folder, n) for n in FILES], [[b'old'], [b'old']])
    is_(sorted(os.listdir(folder)), sorted(FILES))
    if not ROOT:
        return
    with tools.tmpfs('128k') as small:
        config(picture, folder=small, status=2, patterns=['No space left'])
        is_(os.listdir(small), [])


@test('R21: stopped at random moments: none or both of the files, each whole')
def _():
    picture = save(mkimg.build(many_root()))
    whole = {n: lines(config(picture)[0], n) for n in FILES[:1]}
    check(len(whole[FILES[0]]) > 12000, 'lines')
    hit = 0
    for turn, number in enumerate((signal.SIGINT, signal.SIGTERM) * 4):
        work = fresh(make=True)
        folder = os.path.join(work, 'config')

        def during(process, number=number, folder=folder, turn=turn):
            until = time.monotonic() + 10
            while not os.path.isdir(folder) and time.monotonic() < until:
                time.sleep(0.0005)
            time.sleep(0.002 * turn)
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                pass
        result = dump('--extract=' + os.path.join(work, 'tree'), '--android-config=' + folder,
                      '--mount-point=vendor', picture, during=during)
        check(result.status in (0, -number), result)
        hit += result.status < 0
        names = sorted(os.listdir(folder))
        check(names in ([], sorted(FILES)), names)
        for name in names:
            is_(len(lines(folder, name)), len(whole.get(name, ())), name)
        tree.remove(work)
    check(hit, 'no run was stopped')


@test('damage in names and attributes is reported, the rest is told, status 1')
def _():
    for name in ('xattr-shared-id', 'dirent-slash', 'xattr-value-len'):
        picture = tools.corpus('bad', name + '.erofs')
        folder, _, result = config(picture, status=1, patterns=['<E>'])
        check(len(lines(folder, FILES[0])) > 1, name, lines(folder, FILES[0]))
        told = result.text.splitlines()
        is_(len(told), len(set(told)), 'told twice: %s' % result)


main()
