# SPDX-License-Identifier: GPL-2.0-or-later
"""The tools under test and how they are run: paths, limits, scratch folders, other users.

Environment: FSCK, DUMP, MKFS (paths), PEER (folder of a released fsck.erofs and mkfs.erofs),
CORPUS, WORKERS, SAMPLE, JOBS, TIMEOUT, INSTRUMENT (words put before each tool), TMPDIR.
"""
import ctypes
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from tap import Failure, Skip, skip_all

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SRCDIR = os.environ.get('srcdir') or os.path.dirname(TESTS)
NOBODY = 65534
ROOT = os.geteuid() == 0


def _find(variable, name, room):
    path = os.environ.get(variable)
    if path:
        return os.path.abspath(path)
    tops = [os.environ.get('top_builddir'), '.', 'build', SRCDIR, os.path.join(SRCDIR, 'build')]
    for top in filter(None, tops):
        for below in ('', room):
            path = os.path.join(top, below, name)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return os.path.abspath(path)
    return None


FSCK = _find('FSCK', 'fsck.erofs', 'fsck')
DUMP = _find('DUMP', 'dump.erofs', 'dump')
MKFS = _find('MKFS', 'mkfs.erofs', 'mkfs')
PEER = os.environ.get('PEER')
WORKERS = os.environ.get('WORKERS', '1 2 percpu').split()
CORPUS = os.environ.get('CORPUS') or os.path.join(SRCDIR, '..', 'shared', 'corpus')
SAMPLE = int(os.environ.get('SAMPLE', '1'))
JOBS = int(os.environ.get('JOBS', '0')) or min(4, len(os.sched_getaffinity(0)))
INSTRUMENT = shlex.split(os.environ.get('INSTRUMENT', ''))


def need(tool, name):
    if not tool:
        skip_all('%s not found (set %s)' % (name, name.split('.')[0].upper()))


def binary(path):
    """The program behind a libtool wrapper script."""
    real = os.path.join(os.path.dirname(path), '.libs', os.path.basename(path))
    if os.path.exists(real):
        with open(path, 'rb') as file:
            if file.read(2) == b'#!':
                return real
    return path


def _sanitized():
    for path in filter(None, (FSCK, DUMP, MKFS)):
        names = [binary(path)]
        libs = os.path.join(os.path.dirname(path), '.libs')
        if os.path.isdir(libs):
            names += [os.path.join(libs, n) for n in os.listdir(libs) if '.so' in n]
        for name in names:
            with open(name, 'rb') as file:
                data = file.read()
            if b'__asan_init' in data or b'__tsan_init' in data or b'__msan_init' in data:
                return True
    return False


SANITIZED = _sanitized()
SLOW = SANITIZED or bool(INSTRUMENT)
TIMEOUT = float(os.environ.get('TIMEOUT') or (120 if SLOW else 20))
MEMORY = 200 << 20
# Bytes that one run may add to the scratch file system before it is stopped.
QUOTA = 3 << 30


class Result:
    """Status (negative: signal), outputs, seconds and peak memory of one run."""

    def __init__(self, argv, status, out, err, seconds, rss, killed):
        self.argv, self.status, self.out, self.err = argv, status, out, err
        self.seconds, self.rss, self.killed = seconds, rss, killed

    @property
    def text(self):
        return self.err.decode('utf-8', 'backslashreplace')

    def __str__(self):
        words = ' '.join(shlex.quote(os.fsdecode(a)) for a in self.argv)
        text = '$ %s\nstatus %s%s, %.2f s' % (words, self.status, ' (%s)' % self.killed
                                              if self.killed else '', self.seconds)
        if self.out:
            text += '\nstdout: %r' % self.out[:600]
        if self.err:
            text += '\nstderr: ' + self.text[:1200]
        return text


def run(argv, timeout=None, cwd=None, env=None, stdin=None, stdout=None, user=None, umask=-1,
        preexec=None, limits=(), watch=None, quota=QUOTA, during=None, pass_fds=()):
    """Run argv; stdout and stderr are caught in files, so nothing can block on a pipe.

    limits: pairs (RLIMIT_..., value). user: uid and gid to become. watch: folder whose file
    system must not lose more than quota bytes. during: called with the process while it runs.
    """
    timeout = timeout or TIMEOUT
    full = dict(os.environ)
    for name in ('EROFS_WORKERS', 'EROFS_MAX_MEMORY', 'POSIXLY_CORRECT', 'SOURCE_DATE_EPOCH'):
        full.pop(name, None)
    full.update(env or {})
    full = {k: v for k, v in full.items() if v is not None}

    def before():
        for what, value in limits:
            resource.setrlimit(what, (value, value))
        if preexec:
            preexec()

    out = tempfile.TemporaryFile() if stdout is None else stdout
    err = tempfile.TemporaryFile()
    more = {}
    if user is not None:
        more = {'user': user, 'group': user, 'extra_groups': []}
    if umask >= 0:
        more['umask'] = umask
    start = time.monotonic()
    process = subprocess.Popen(argv, cwd=cwd, env=full, stdout=out, stderr=err,
                               stdin=subprocess.DEVNULL if stdin is None else stdin,
                               preexec_fn=before if limits or preexec else None,
                               pass_fds=pass_fds, **more)
    killed = []
    ended = threading.Event()

    def guard():
        free = _free(watch)
        while not ended.wait(0.05):
            if time.monotonic() - start > timeout:
                killed.append('killed after %g s' % timeout)
            elif watch and free - _free(watch) > quota:
                killed.append('killed: wrote more than %d MiB' % (quota >> 20))
            if killed:
                try:
                    os.kill(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                return

    thread = threading.Thread(target=guard, daemon=True)
    thread.start()
    try:
        if during:
            during(process)
    finally:
        _, status, usage = os.wait4(process.pid, 0)
        ended.set()
        thread.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    texts = []
    for file in (out, err):
        if stdout is not None and file is out:
            texts.append(b'')
            continue
        file.seek(0)
        texts.append(file.read())
        file.close()
    return Result(argv, process.returncode, texts[0], texts[1], seconds, usage.ru_maxrss * 1024,
                  killed[0] if killed else '')


def _free(path):
    if not path:
        return 0
    info = os.statvfs(path)
    return info.f_bavail * info.f_frsize


def fsck(*words, **more):
    return run(INSTRUMENT + [FSCK, *words], **more)


def dump(*words, **more):
    return run(INSTRUMENT + [DUMP, *words], **more)


def make(*words, **more):
    return run(INSTRUMENT + [MKFS, *words], **more)


def expect(result, status, *patterns, silent=False):
    """Check status (a number or several), and that stderr matches each pattern."""
    wanted = status if isinstance(status, (tuple, set, range, frozenset)) else (status,)
    if result.killed or result.status not in wanted:
        raise Failure('%s\nwanted status %s' % (result, ' or '.join(map(str, wanted))))
    for pattern in patterns:
        if not re.search(pattern, result.text, re.M):
            raise Failure('%s\nwanted in stderr: /%s/' % (result, pattern))
    if silent and (result.err or result.out):
        raise Failure('%s\nwanted no output' % result)
    return result


def sane(result):
    """What holds for every run whatever the input: no signal, in time, in memory."""
    if result.killed:
        return result.killed
    if result.status < 0:
        return 'killed by signal %d' % -result.status
    if b'Sanitizer' in result.err or b'runtime error' in result.err:
        return 'sanitizer report'
    if result.status & ~(4 | 8 | 16 | 32) or result.status > 60:
        return 'status %d is no sum of 4, 8, 16, 32' % result.status
    if not SLOW and result.rss > MEMORY:
        return 'peak memory %d MiB' % (result.rss >> 20)
    return ''


# Scratch space -----------------------------------------------------------------------

def _takes_xattrs(path):
    probe = os.path.join(path, 'probe')
    open(probe, 'w').close()
    try:
        os.setxattr(probe, 'user.erofs.probe', b'1')
        return True
    except OSError:
        return False
    finally:
        os.unlink(probe)


def _make_scratch():
    wishes = [os.environ.get('TMPDIR'), '/dev/shm', '/tmp', '.']
    fallback = None
    for wish in filter(None, wishes):
        try:
            path = tempfile.mkdtemp(prefix='erofs-test-', dir=wish)
        except OSError:
            continue
        if _takes_xattrs(path):
            if fallback:
                shutil.rmtree(fallback, ignore_errors=True)
            return path, True
        if fallback:
            shutil.rmtree(path, ignore_errors=True)
        else:
            fallback = path
    if not fallback:
        sys.exit('no folder to work in')
    return fallback, False


_scratch = None


def scratch():
    """A folder of this process, removed at its end; on tmpfs where that takes xattrs."""
    global _scratch
    if not _scratch:
        import atexit
        import tree
        path, _scratch_xattrs = _make_scratch()
        _scratch = (path, _scratch_xattrs)
        os.chmod(path, 0o777)
        owner = os.getpid()
        atexit.register(lambda: os.getpid() == owner and tree.remove(path))
    return _scratch[0]


def has_xattrs():
    scratch()
    return _scratch[1]


_number = [0]
_lock = threading.Lock()


def fresh(name='t', make=False, mode=0o777):
    """A path below the scratch folder that nobody used."""
    with _lock:
        _number[0] += 1
        path = os.path.join(scratch(), '%s%d' % (name, _number[0]))
    if make:
        os.mkdir(path)
        os.chmod(path, mode)
    return path


def save(data, name='image'):
    path = fresh(name)
    with open(path, 'wb') as file:
        file.write(data)
    return path


def nobody_runs(tool):
    """An ordinary user may not reach the build folder: then a Skip says so."""
    if not ROOT:
        return
    result = run([tool, '-V'], user=NOBODY)
    if result.status:
        raise Skip('an ordinary user cannot run ' + os.path.basename(tool))


def as_user():
    """Arguments of run() that make it an ordinary user's run."""
    nobody_runs(FSCK)
    return {'user': NOBODY} if ROOT else {}


def need_root():
    if not ROOT:
        raise Skip('needs root')


def corpus(*names):
    path = os.path.join(CORPUS, *names)
    if not os.path.exists(path):
        raise Skip('corpus is absent: %s not run' % '/'.join(names))
    return path


# Other programs ----------------------------------------------------------------------

def _version(text):
    found = re.search(r'(\d+)\.(\d+)(?:\.(\d+))?', text)
    return tuple(int(n or 0) for n in found.groups()) if found else (0, 0, 0)


_mkfs = []


def mkfs_tool():
    """A released mkfs.erofs (1.8 or newer), or a Skip."""
    if not _mkfs:
        names = [os.path.join(PEER, 'mkfs.erofs')] if PEER else []
        names += filter(None, [shutil.which('mkfs.erofs')])
        for name in names:
            try:
                text = subprocess.run([name, '-V'], capture_output=True, timeout=20)
            except OSError:
                continue
            if _version((text.stdout + text.stderr).decode()) >= (1, 8, 0):
                _mkfs.append(name)
                break
        else:
            _mkfs.append(None)
    if not _mkfs[0]:
        raise Skip('no released mkfs.erofs 1.8 or newer (set PEER)')
    return _mkfs[0]


def mkfs(source, *words, name='made'):
    image = fresh(name)
    result = run([mkfs_tool(), '--quiet', '-T1700000000', '--mkfs-time', *words, image, source],
                 timeout=300)
    if result.status:
        raise Skip('mkfs.erofs %s failed: %s' % (' '.join(words), result.text[:200]))
    return image


class Mount:
    """Context: something mounted on a fresh folder; a Skip where that is not allowed."""

    def __init__(self, *words, keep=None):
        need_root()
        self.words = words
        self.path = fresh('mount', make=True)

    def __enter__(self):
        done = subprocess.run(['mount', *self.words, self.path], capture_output=True)
        if done.returncode:
            raise Skip('cannot mount: ' + done.stderr.decode().strip()[:200])
        return self.path

    def __exit__(self, *_):
        # a program that another thread is just starting may still hold what we had open
        for _ in range(40):
            if not subprocess.run(['umount', self.path], capture_output=True).returncode:
                return
            time.sleep(0.05)
        subprocess.run(['umount', '-l', self.path], capture_output=True)


def tmpfs(size):
    return Mount('-t', 'tmpfs', '-o', 'size=' + size, 'tmpfs')


def refuse_calls(numbers, error=1):
    """A seccomp filter (x86-64) under which the numbered system calls fail with error."""
    def before():
        import struct
        libc = ctypes.CDLL(None, use_errno=True)
        code = [(0x20, 0, 0, 0)]                       # load the call's number
        for place, number in enumerate(numbers):
            code.append((0x15, len(numbers) - place, 0, number))
        code.append((0x06, 0, 0, 0x7fff0000))          # allow
        code.append((0x06, 0, 0, 0x00050000 | error))  # fail
        raw = b''.join(struct.pack('HBBI', *line) for line in code)
        buffer = ctypes.create_string_buffer(raw)

        class Program(ctypes.Structure):
            _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]

        program = Program(len(code), ctypes.addressof(buffer))
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
            raise OSError(ctypes.get_errno(), 'seccomp')
    if os.uname().machine != 'x86_64':
        raise Skip('call numbers are those of x86-64')
    return before
