#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Who calls mkfs.erofs, with the words they use (cli.md 10: C19 to C27), and the recipes of the README.
Programs that are here are run themselves: systemd-repart, fakeroot, pseudo, kiwi. Else what they call.
"""
import os
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import tools  # noqa: E402
from tap import Skip, check, is_, main, test  # noqa: E402
from tools import FSCK, MKFS, ROOT, expect, fresh, fsck, make, save  # noqa: E402

tools.need(MKFS, 'mkfs.erofs')
tools.need(FSCK, 'fsck.erofs')

UUID = '01234567-89ab-cdef-0123-456789abcdef'
ZERO = '00000000-0000-0000-0000-000000000000'
# the words of --verify-only in the README, where times are not compared
WHAT = 'names,type,mode,owner,size,data,link,hardlink,device,xattr'


def version():
    return expect(make('--version'), 0).out.decode()


def source(linked=True):
    top = fresh('src', make=True, mode=0o755)
    forest.write(os.path.join(top, 'bin/tool'), b'some text that packs well, ' * 4000)
    forest.write(os.path.join(top, 'bin/same'), b'some text that packs well, ' * 4000)
    forest.write(os.path.join(top, 'etc/conf'), b'1\n')
    forest.write(os.path.join(top, 'etc/noise'), os.urandom(20000))
    forest.write(os.path.join(top, 'boot/vmlinuz-6.1'), b'kernel' * 3000)
    os.symlink('tool', os.path.join(top, 'bin/link'))
    if linked:
        os.link(os.path.join(top, 'etc/conf'), os.path.join(top, 'etc/too'))
    os.chmod(os.path.join(top, 'bin/tool'), 0o4755)
    return top


def path():
    """A PATH with the tools of this build in front, under their names."""
    folder = fresh('bin', make=True, mode=0o755)
    for name, tool in (('mkfs.erofs', MKFS), ('fsck.erofs', FSCK)):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\nprintf "%%s\\n" "%s $*" >>%s/calls\nexec %s "$@"\n' %
                       (name, folder, shlex.quote(os.path.abspath(tool))))
        os.chmod(file.name, 0o755)
    return folder


def calls(folder):
    with open(os.path.join(folder, 'calls'), encoding='utf-8') as file:
        return file.read().splitlines()


def shell(text, folder, **env):
    """Run as a user would, with a time limit."""
    done = subprocess.run(['sh', '-ec', text], capture_output=True, timeout=tools.TIMEOUT, check=False,
                          env={**os.environ, **env, 'PATH': folder + ':' + os.environ['PATH']})
    return done.returncode, (done.stdout + done.stderr).decode('utf-8', 'replace')


def bytes_of(name):
    with open(name, 'rb') as file:
        return file.read()


def holds(image, top, *words, what=WHAT):
    expect(fsck('--workers=2', '--verify=dir:' + top, '--verify-only=' + what, *words, image), 0, silent=True)


# ---- the command lines, word for word; OUT and DIR stand for the operands ----

LINES = {
    'C21: systemd-repart': (
        '-U %s --quiet OUT DIR' % UUID, '-U %s --quiet -zzstd,level=5 OUT DIR' % UUID, '-U %s --quiet -zlz4hc OUT DIR' % UUID,
        '-U %s OUT DIR --quiet' % UUID, '-U %s --quiet OUT DIR --verify' % UUID,
        '-U %s --quiet OUT DIR -Efragments,ztailpacking -C65536' % UUID),
    'C23: osbuild': (
        'OUT DIR --quiet', 'OUT DIR --quiet -z lz4hc,9', 'OUT DIR --quiet -z zstd,8 -E dedupe,all-fragments -C 65536'),
    'C23: lorax': ('OUT DIR -z zstd,8 -Ededupe,all-fragments -C 65536',),
    'C23: kiwi': ('-z zstd,level=21 -L LIVE --exclude-regex=^foo$ --exclude-regex=^run/.*$ OUT DIR', 'OUT DIR/'),
    'C23: archiso': ('-U %s -zlzma,109 -E ztailpacking -- OUT DIR' % ZERO,
                     '--quiet -U %s -zlzma,109 -E ztailpacking -- OUT DIR' % ZERO),
    'C25: stacker': ('OUT DIR',),
    'C26: microvm.nix': ('-zlz4hc -Eztailpacking -Efragments -T 0 --mount-point=/nix/store OUT DIR',),
    'C27: Flatcar': ('-zlz4hc,12 -C65536 -Efragments,ztailpacking -U%s OUT DIR' % ZERO,),
    'C27: kata': ('-zlz4hc -Enoinline_data OUT DIR',),
    'C27: Yocto': ('OUT DIR', '-zlz4 OUT DIR', '-zlz4hc OUT DIR', '-zlz4hc --verify OUT DIR'),
    'C27: Buildroot': (
        'OUT DIR', '-zlz4hc,9 OUT DIR', '-zlz4hc,9 -T 1700000000 -U %s -C65536 -Ededupe -Efragments OUT DIR' % ZERO,
        '-zlz4hc,9 -C65536 -Eall-fragments OUT DIR'),
    'C31: gVisor': ('-T0 -E noinline_data OUT DIR',),
}


def try_line(line, top):
    image = fresh('img')
    words = [w.replace('OUT', image).replace('DIR', top) for w in line.split()]
    result = expect(make(*words), 0)
    is_(result.text, '', line)
    is_(bool(result.out), '--quiet' not in words, line)
    holds(image, top)
    check('Processing' not in result.out.decode())


for caller, lines in LINES.items():
    @test(caller + ': its lines; the image holds the tree')
    def _(lines=lines):
        top, here = source(), version()
        done = 0
        for line in lines:
            algorithm = next((w[2:] for w in line.replace('-z ', '-z').split() if w.startswith('-z')), '')
            if algorithm and algorithm.split(',')[0] not in here:
                continue
            try_line(line, top)
            done += 1
        if not done:
            raise Skip('built without the compressors of these lines')


@test('C23: exclusions of osbuild (two words, anywhere in the path) and of kiwi (whole paths)')
def _():
    top, image = source(), fresh('img')
    expect(make(image, top, '--quiet', '--exclude-regex', '^etc', '--exclude-regex', 'vmlinuz-.*'), 0, silent=True)
    shutil.rmtree(os.path.join(top, 'etc'))
    os.unlink(os.path.join(top, 'boot/vmlinuz-6.1'))
    holds(image, top)
    top = source()
    expect(make('-L', 'LIVE', '--exclude-regex=^boot$', '--exclude-regex=^et$', '--exclude-regex=^etc/.*$', image, top), 0)
    shutil.rmtree(os.path.join(top, 'boot'))
    for name in ('conf', 'too', 'noise'):
        os.unlink(os.path.join(top, 'etc', name))
    holds(image, top)


@test('C22: dracut: its output in the folder that is excluded; a compressor that there is not, then none; unpacked in place')
def _():
    top = source()
    forest.write(os.path.join(top, 'squash_root/init'), b'outside')
    image = os.path.join(top, 'squash_root/erofs-root.img')
    words = ['--exclude-path=squash_root', '-C', '65536', '-E', 'fragments', '-x', '-1', '-U', ZERO, '-T', '0']
    expect(make(*words, '-z', 'nosuch', image, top, env={'SOURCE_DATE_EPOCH': '77'}), 1)
    check(not os.path.exists(image))
    for more in [[]] + [['-z', name] for name in ('lz4', 'zstd,level=15', 'lzma,6') if name.split(',')[0] in version()]:
        expect(make(*words, *more, image, top, env={'SOURCE_DATE_EPOCH': '77'}), 0)
        there = fresh('initramfs', make=True)
        shutil.copy(image, there)
        for _ in range(2):
            expect(fsck('--extract=.', '--overwrite', 'erofs-root.img', cwd=there), 0, silent=True)
        os.unlink(os.path.join(there, 'erofs-root.img'))
        is_(sorted(os.listdir(there)), ['bin', 'boot', 'etc'])
        is_(os.stat(os.path.join(there, 'etc/conf')).st_mtime, 77.0)
        holds(save(bytes_of(image)), there, what=WHAT if ROOT else WHAT.replace('mode,owner,', ''))


# ---- the recipes of the README ----

def grow_target(top):
    """What build systems do before they call mkfs.erofs. Pseudo ends with links to files it did not see made."""
    return '''
        cd %s; echo 1 >etc/two; ln etc/two etc/too; chown -h -R 0:0 .; chown 0:5 etc/conf; chmod 1777 etc; mkdir -p dev
        mknod dev/console c 5 1; chown 0:100 dev/console; mknod dev/loop0 b 7 0; mkfifo dev/initctl
        ''' % top


def wanted(image):
    found = expect(tools.dump('--ls', '--recursive', '--long', image), 0).out.decode().splitlines()
    found = {line.split()[-1]: line.split()[:3] for line in found}
    is_(found['/etc/two'][1], '0/0')
    is_([found['/etc/conf'][1], found['/etc'][0], found['/bin/tool'][0], found['/bin/tool'][1]],
        ['0/5', 'drwxrwxrwt', '-rwsr-xr-x', '0/0'])
    is_([found['/dev/' + name][:3] for name in ('console', 'loop0')],
        [['crw-r--r--', '0/100', '5,1'], ['brw-r--r--', '0/0', '7,0']])
    is_(found['/dev/initctl'][0][0], 'p')


def build_root(wrap, top, images, folder, more):
    """As Buildroot and Yocto build: all in one session of the wrapper, the tar archive too."""
    script = grow_target(top) + '''
        mkfs.erofs %s %s/rootfs.erofs .
        find . -mindepth 1 -print0 | LC_ALL=C sort -z | tar -cf %s/rootfs.tar --null --no-recursion -T - --numeric-owner
        ''' % (more, images, images)
    status, text = shell('exec %s sh -ec %s' % (wrap, shlex.quote(script)), folder)
    if status and ('LD_PRELOAD' in text or 'mknod' in text):
        raise Skip('%s does not work here: %s' % (wrap.split()[0], text.strip()[:100]))
    is_(status, 0, text)


def under(program, wrap, more):
    if not shutil.which(program):
        raise Skip('no ' + program)
    if tools.SANITIZED:
        raise Skip('a sanitizer wants to be loaded before ' + program)
    if not shutil.which('tar'):
        raise Skip('no tar')
    top, images, folder = source(linked=False), fresh('images', make=True), path()
    build_root(wrap, top, images, folder, more)
    wanted(images + '/rootfs.erofs')
    if 'libarchive, which is not there' in make('--tar', fresh(), '/dev/null').text:
        raise Skip('built without libarchive')
    status, text = shell('fsck.erofs --verify=tar:$BINARIES_DIR/rootfs.tar --verify-only=%s $BINARIES_DIR/rootfs.erofs' % WHAT,
                         folder, BINARIES_DIR=images)
    is_((status, text), (0, ''))


@test('README: Buildroot: mkfs.erofs under fakeroot, then fsck.erofs with the tar archive, outside')
def _():
    under('fakeroot', 'fakeroot --', '-T 1700000000 -U %s -Efragments --quiet --verify' % ZERO)


@test('README: Yocto: mkfs.erofs --verify under pseudo')
def _():
    wrap = 'env PSEUDO_LOCALSTATEDIR=%s pseudo' % fresh('pseudo', make=True)
    try:
        under('pseudo', wrap, '--quiet --verify')
    finally:
        # its server would stay
        shell('! command -v pseudo >/dev/null || %s -S' % wrap, '/')


@test('README: AOSP: build_image, then fsck.erofs with the same files')
def _():
    out, folder = fresh('out', make=True, mode=0o755), path()
    top = os.path.join(out, 'vendor')
    forest.write(os.path.join(top, 'bin/svc'), b'service' * 999)
    forest.write(os.path.join(top, 'build.prop'), b'ro.x=1\n')
    config = save(b'vendor/ 0 2000 0755\nvendor/bin 0 2000 0751\nvendor/bin/svc 1000 2000 0755 capabilities=0x3000\n'
                  b'vendor/build.prop 0 0 0600\n', 'fs_config')
    contexts = save(b'/vendor(/.*)?  u:object_r:vendor_file:s0\n/vendor/bin/svc  u:object_r:svc_exec:s0\n', 'file_contexts')
    image = os.path.join(out, 'vendor.img')
    line = ('mkfs.erofs -b 4096 --mount-point vendor --product-out %s --fs-config-file %s --file-contexts %s'
            ' -T 1230768000 -U %s --block-list-file %s/vendor.map %s %s' % (out, config, contexts, UUID, out, image, top))
    status, text = shell(line, folder)
    if 'libselinux, which is not there' in text:
        raise Skip('built without libselinux')
    is_(status, 0, text)
    recipe = ('fsck.erofs --verify=dir:$OUT/vendor --verify-only=$WHAT --mount-point=/vendor'
              ' --fs-config-file=$CONFIG --file-contexts=$CONTEXTS ')
    env = {'OUT': out, 'WHAT': WHAT, 'CONFIG': config, 'CONTEXTS': contexts}
    is_(shell(recipe + image, folder, **env), (0, ''))
    expect(fsck('--extract', image), 0, silent=True)
    if shutil.which('img2simg'):
        is_(shell('img2simg %s %s.s && %s%s.s' % (image, image, recipe, image), folder, **env), (0, ''))
    forest.write(os.path.join(top, 'build.prop'), b'ro.x=2\n')
    status, text = shell(recipe + image, folder, **env)
    is_(status, 4)
    check('/build.prop: data' in text, text)


def repart(folder, top, definition, *words, **env):
    definitions = fresh('repart.d', make=True, mode=0o755)
    for number, text in enumerate(definition):
        with open('%s/%d0.conf' % (definitions, number + 1), 'w', encoding='utf-8') as file:
            file.write('[Partition]\n' + text.replace('DIR', top))
    disk = fresh('disk')
    status, text = shell('systemd-repart --no-pager --definitions=%s --empty=create --size=auto --dry-run=no'
                         ' --seed=%s %s %s' % (definitions, UUID, ' '.join(words), disk), folder, **env)
    for why in ("unrecognized option '--offline", "Don't know how to create", 'libcryptsetup', 'libfdisk'):
        if status and why in text:
            raise Skip('this systemd-repart cannot: ' + text.strip().splitlines()[-1])
    is_(status, 0, text)
    return disk


def has_repart():
    if not shutil.which('systemd-repart'):
        raise Skip('no systemd-repart')
    tools.need_root()


@test('C21, README: systemd-repart itself: plain, minimized and compressed, with options from its environment')
def _():
    has_repart()
    top, folder = source(), path()
    plain = 'Type=root\nFormat=erofs\nCopyFiles=DIR:/\n'
    for definition in ([plain + 'SizeMinBytes=16M\n'], [plain + 'Minimize=best\n'],
                       [plain + 'Minimize=best\nCompression=lz4hc\nCompressionLevel=9\n'] * ('lz4hc' in version())):
        disk = repart(folder, top, definition, '--offline=yes', SYSTEMD_REPART_MKFS_OPTIONS_EROFS='--verify')
        # it adds attributes of its own to the root
        holds(disk, top, '--offset=auto', what=WHAT.replace(',xattr', ''))
        check(calls(folder)[-1].endswith('--verify'))


@test('C21: systemd-repart itself: a data partition with its verity hashes')
def _():
    has_repart()
    top, folder = source(), path()
    disk = repart(
        folder, top, ['Type=root\nFormat=erofs\nCopyFiles=DIR:/\nMinimize=best\nVerity=data\nVerityMatchKey=r\n',
                      'Type=root-verity\nVerity=hash\nVerityMatchKey=r\nMinimize=best\n'], '--offline=yes')
    holds(disk, top, '--offset=auto', what=WHAT.replace(',xattr', ''))


@test('C23: kiwi itself')
def _():
    code = ('from kiwi.filesystem import FileSystem; from kiwi.storage.device_provider import DeviceProvider; import sys;'
            'FileSystem.new("erofs", DeviceProvider(), sys.argv[2] + "/", custom_args={"create_options":'
            ' ["-Ededupe,all-fragments", "-C", "65536"], "compression": sys.argv[3]}).create_on_file('
            'sys.argv[1], label="LIVE", exclude=["boot", "run/*"])')
    if subprocess.run([sys.executable, '-c', 'import kiwi.filesystem.erofs'], capture_output=True, check=False).returncode:
        raise Skip('no kiwi with erofs')
    top, image, folder = source(), fresh('img'), path()
    algorithm = next((a for a in ('zstd,level=21', 'lz4hc,9') if a.split(',')[0] in version()), '')
    is_(shell('%s -c %s %s %s %s' % (sys.executable, shlex.quote(code), image, top, shlex.quote(algorithm)), folder)[0], 0)
    shutil.rmtree(os.path.join(top, 'boot'))
    holds(image, top)


main()
