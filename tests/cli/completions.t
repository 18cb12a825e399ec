#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 14: completions for bash, zsh and fish.

Lines are typed into real shells on a terminal, a tab behind them, and what the shell then calls is compared:
so it counts what a name means to the shell, however it was quoted.
"""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import mkimg  # noqa: E402
import sparse  # noqa: E402
import tools  # noqa: E402
from tap import Failure, Skip, check, is_, main, skip_all, test  # noqa: E402
from tools import DUMP, FSCK, MKFS, expect, fresh, run  # noqa: E402

tools.need(DUMP, 'dump.erofs')
BUILD = os.path.dirname(os.path.dirname(DUMP))
MADE = os.path.join(BUILD, 'completions')
if not os.path.exists(os.path.join(MADE, 'bash', 'dump.erofs')):
    skip_all('the completions are not built')
FILES = {'bash': 'bash/%s.erofs', 'zsh': 'zsh/_erofs', 'fish': 'fish/%s.erofs.fish'}
TOOLS = {name: path for name, path in (('fsck', FSCK), ('dump', DUMP), ('mkfs', MKFS)) if path}
NAMES = ['a b.txt', "it's", 'q"uote', 'dollar$x', 'back\\slash', 'star*', 'tick`s', '\xe9clair', 'x[am]',
         'm;colon', 'k=ual', 'co:lon', '#hash', '~tilde', 'new\nline']
_place = []


def place():
    """A folder with images and other files, where the shells run."""
    if _place:
        return _place[0]
    work = fresh('place', make=True)
    file = mkimg.File(b'x')
    root = mkimg.Dir({name: file for name in NAMES})
    root.entries['usr'] = mkimg.Dir({'share': mkimg.Dir({'only': file}), 'sbin': mkimg.Dir({'x': file})})
    root.entries['d i r'] = mkimg.Dir({'inner': file, "wh'at": mkimg.Dir({'deep file': file})})
    root.entries['link'] = mkimg.Link('usr -> x')
    data = mkimg.build(root)
    for name, content in (('image.erofs', data), ('alpha1', data), ('alpha2', b'text' * 2000), ('alpha3', b''),
                          ('beta.simg', sparse.build(data)), ('beta.txt', b'text'), ('two words', data),
                          ('embedded', bytes(8192) + data), ('plain', b'text'), ('outfile', b'')):
        with open(os.path.join(work, name), 'wb') as out:
            out.write(content)
    os.mkdir(os.path.join(work, 'outdir'))
    os.mkfifo(os.path.join(work, 'pipe'))
    os.mkdir(os.path.join(work, 'bin'))
    for tool, path in TOOLS.items():
        os.symlink(path, os.path.join(work, 'bin', tool + '.erofs'))
    with open(os.path.join(work, 'bin', 'args'), 'w') as out:
        out.write('#!/bin/sh\nprintf "%s\\0" "$@" >"$TOLD.new"\nmv "$TOLD.new" "$TOLD"\n')
    os.chmod(os.path.join(work, 'bin', 'args'), 0o755)
    _place.append(work)
    return work


def environment():
    work = place()
    env = {'PATH': os.path.join(work, 'bin') + ':' + os.environ['PATH'], 'HOME': os.path.join(work, 'outdir'),
           'TERM': 'xterm', 'LC_ALL': 'C.UTF-8', 'TOLD': os.path.join(work, 'told'), 'HISTFILE': '/dev/null',
           'XDG_CONFIG_HOME': work + '/config', 'XDG_DATA_HOME': work + '/data', 'XDG_CACHE_HOME': work + '/cache'}
    for name in ('ASAN_OPTIONS', 'LSAN_OPTIONS', 'UBSAN_OPTIONS', 'LD_LIBRARY_PATH'):
        if name in os.environ:
            env[name] = os.environ[name]
    return env


class Shell:
    START = {
        'bash': (['bash', '--norc', '--noprofile', '-i'],
                 'bind "set enable-bracketed-paste off"; set +H; ' +
                 ''.join('. "%s"; ' % os.path.join(MADE, FILES['bash'] % tool) for tool in TOOLS)),
        'zsh': (['zsh', '-f', '-i'],
                'fpath=("%s" $fpath); autoload -Uz compinit; compinit -u -D; unsetopt BANG_HIST AUTO_REMOVE_SLASH; ' %
                os.path.join(MADE, 'zsh')),
        'fish': (['fish', '--no-config', '-i'],
                 ''.join('source "%s"; ' % os.path.join(MADE, FILES['fish'] % tool) for tool in TOOLS)),
    }

    def __init__(self, name):
        if not shutil.which(name):
            raise Skip('no %s here' % name)
        words, start = self.START[name]
        self.name, self.seen = name, b''
        self.told = environment()['TOLD']
        self.pid, self.master = pty.fork()
        if not self.pid:
            os.chdir(place())
            os.execvpe(words[0], words, environment())
        self.wait(0.5)
        is_(self.call(start + 'args ready\r'), ['ready'], name)

    def wait(self, seconds, until=lambda: False):
        """Take what the terminal shows, so that the shell never waits for us."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            if select.select([self.master], [], [], 0.02)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    return

    def call(self, keys):
        self.seen = b''
        if os.path.exists(self.told):
            os.unlink(self.told)
        data = keys.encode()
        while data:
            os.write(self.master, data[:512])
            data = data[512:]
            self.wait(0.01)
        self.wait(5 if not tools.SLOW else 60, until=lambda: os.path.exists(self.told))
        check(os.path.exists(self.told), self.name, 'did not call anything; the screen:', self.seen[-500:])
        with open(self.told, 'rb') as file:
            return [os.fsdecode(word) for word in file.read().split(b'\0')[:-1]]

    def complete(self, line, behind=''):
        """The words of the line once the end of `line` was completed."""
        keys = line + behind + '\x02' * len(behind) + '\t'
        return self.call(keys + '\x01args \r')

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.master)
        os.waitpid(self.pid, 0)


_shells = {}


def shell(name):
    if name not in _shells:
        _shells[name] = Shell(name)
    return _shells[name]


def forget(name):
    """After a failure the line may be anything."""
    if name in _shells:
        _shells.pop(name).close()


def typed(name, cases):
    faults = []
    for line, wanted, *behind in cases:
        if name == 'fish' and behind:
            continue        # it does not tell what stands behind the cursor
        started = shell(name)
        try:
            got = started.complete(line, *behind)
        except Failure as error:
            got = str(error)
        if got != wanted:
            faults.append('%s: %s\\t -> %r, wanted %r' % (name, line, got, wanted))
            forget(name)
    check(not faults, '\n'.join(faults))


D, F, M = 'dump.erofs', 'fsck.erofs', 'mkfs.erofs'

for sh in FILES:
    @test('%s: options and the words they take' % sh)
    def _(sh=sh):
        cases = [
            (D + ' --blk', [D, '--blkid-udev']), (D + ' --recu', [D, '--recursive']),
            (F + ' --xattr-ino', [F, '--xattr-inode-digest']),
            (D + ' --workers=unb', [D, '--workers=unbound']), (F + ' --workers unb', [F, '--workers', 'unbound']),
            (D + ' --page-policy=k', [D, '--page-policy=kernel']), (D + ' --stats=js', [D, '--stats=json']),
            (D + ' --help=', [D, '--help=all']), (F + ' --offset=a', [F, '--offset=auto']),
            (D + ' --xattrs-include=sec', [D, '--xattrs-include=security.*']),
        ]
        if MKFS:
            cases += [(M + ' --hard', [M, '--hard-dereference']), (M + ' -U cl', [M, '-U', 'clear']),
                      (M + ' -Ucl', [M, '-Uclear']), (M + ' -E nosbcrc,noinl', [M, '-E', 'nosbcrc,noinline_data'])]
        typed(sh, cases)

    @test('%s: images by content, sparse ones too, not by name; folders on the way' % sh)
    def _(sh=sh):
        typed(sh, [(D + ' al', [D, 'alpha1']), (F + ' bet', [F, 'beta.simg']), (D + ' tw', [D, 'two words']),
                   (D + ' -s --nid 3 ima', [D, '-s', '--nid', '3', 'image.erofs']),
                   (D + ' -- ima', [D, '--', 'image.erofs']),
                   (F + ' outd', [F, 'outdir/']),
                   (D + ' --offset=8192 emb', [D, '--offset=8192', 'embedded']),
                   (D + ' pl', [D, 'pl']), (D + ' pip', [D, 'pip'])])

    @test('%s: files and folders as arguments' % sh)
    def _(sh=sh):
        typed(sh, [(D + ' --extract=out', [D, '--extract=outdir/']), (F + ' --extract=out', [F, '--extract=outdir/']),
                   (D + ' --files-from=pl', [D, '--files-from=plain']), (D + ' --device pl', [D, '--device', 'plain']),
                   (D + ' --to-tar=outf', [D, '--to-tar=outfile'])])

    @test('%s: --path= names what is in the image, directory by directory, also behind the cursor' % sh)
    def _(sh=sh):
        typed(sh, [(D + ' image.erofs --path=/us', [D, 'image.erofs', '--path=/usr/']),
                   (D + ' image.erofs --path=us', [D, 'image.erofs', '--path=usr/']),
                   (D + ' image.erofs --path /usr/sh', [D, 'image.erofs', '--path', '/usr/share/']),
                   (D + ' image.erofs --path=/usr/share/', [D, 'image.erofs', '--path=/usr/share/only']),
                   (D + ' --cat --path=/usr/sb', [D, '--cat', '--path=/usr/sbin/', 'image.erofs'], ' image.erofs'),
                   (F + ' --path=/usr/sb', [F, '--path=/usr/sbin/', 'alpha1'], ' alpha1'),
                   (D + ' two\\ words --path=/us', [D, 'two words', '--path=/usr/']),
                   (D + ' "two words" --path=/li', [D, 'two words', '--path=/link']),
                   (D + ' --offset=8192 embedded --path=/us', [D, '--offset=8192', 'embedded', '--path=/usr/']),
                   (D + ' beta.simg --path=/us', [D, 'beta.simg', '--path=/usr/']),
                   (D + ' plain --path=/us', [D, 'plain', '--path=/us']),
                   (D + ' pipe --path=/us', [D, 'pipe', '--path=/us'])])

    @test('%s: names with blanks, quotes and other letters of the shell mean themselves' % sh)
    def _(sh=sh):
        cases = []
        for name in NAMES:
            if sh == 'fish' and '\n' in name:
                continue        # its candidates are lines
            begin = re.match(r'~|#|\w', name).group()
            escaped = '\\' + begin if begin in '~#' else begin
            cases += [(D + ' image.erofs --path=/' + begin, [D, 'image.erofs', '--path=/' + name]),
                      (D + ' image.erofs --path ' + escaped, [D, 'image.erofs', '--path', name])]
            if '\n' not in name:
                for quote in '"\'':
                    cases.append((D + ' image.erofs --path %s/%s' % (quote, begin),
                                  [D, 'image.erofs', '--path', '/' + name]))
        cases += [(D + ' image.erofs --path=/d\\ i', [D, 'image.erofs', '--path=/d i r/']),
                  (D + ' image.erofs --path=/d\\ i\\ r/in', [D, 'image.erofs', '--path=/d i r/inner']),
                  (D + ' image.erofs --path=/d\\ i\\ r/wh\\\'at/', [D, 'image.erofs', "--path=/d i r/wh'at/deep file"]),
                  (D + ' image.erofs --path="/d i r/wh\'at/', [D, 'image.erofs', "--path=/d i r/wh'at/deep file"])]
        # "d" alone has two answers
        typed(sh, [c for c in cases if not re.search(r'[/ "\']d$', c[0])] +
              [(D + ' image.erofs --path=/do', [D, 'image.erofs', '--path=/dollar$x'])])

    @test('%s: members; what is special in a glob is escaped; --path is where they begin' % sh)
    def _(sh=sh):
        typed(sh, [(D + ' --ls image.erofs us', [D, '--ls', 'image.erofs', 'usr/']),
                   (D + ' --extract=x image.erofs usr/share usr/sb',
                    [D, '--extract=x', 'image.erofs', 'usr/share', 'usr/sbin/']),
                   (D + ' --to-tar image.erofs d\\ i\\ r/in', [D, '--to-tar', 'image.erofs', 'd i r/inner']),
                   (D + ' --ls image.erofs sta', [D, '--ls', 'image.erofs', 'star\\*']),
                   (D + ' --ls image.erofs x', [D, '--ls', 'image.erofs', 'x\\[am]']),
                   (D + ' --ls image.erofs bac', [D, '--ls', 'image.erofs', 'back\\\\slash']),
                   (D + ' --include=usr/sh', [D, '--include=usr/share/', 'image.erofs'], ' image.erofs'),
                   (D + ' --ls --path=/usr image.erofs sh', [D, '--ls', '--path=/usr', 'image.erofs', 'share/']),
                   (F + ' image.erofs us', [F, 'image.erofs', 'us'])])


def table(tool):
    """Options of --help=all, without those that are refused."""
    text = expect(run([TOOLS[tool], '--help=all']), 0).out.decode()
    text = re.sub(r'--\[no-\]([a-z-]+)', r'--\1, --no-\1', text)
    text = re.split(r'\nRefused:', text)[0]
    heads = re.findall(r'(?m)^ +(-.*?)(?:  .*)?$', text)
    return sorted({name for head in heads for name in re.findall(r'(?<![\w-])--?[A-Za-z0-9][A-Za-z0-9-]*', head)
                   for name in [name if name.startswith('--') else name[:2]]})


@test('bash: all options of --help are offered, and no others')
def _():
    for tool in TOOLS:
        script = '. "%s"; COMP_LINE="%s.erofs -" COMP_POINT=${#COMP_LINE}; COMP_POINT=${#COMP_LINE}; _erofs_%s; ' \
                 'printf "%%s\\n" "${COMPREPLY[@]}"' % (os.path.join(MADE, FILES['bash'] % tool), tool, tool)
        done = subprocess.run(['bash', '-c', script], env=environment(), capture_output=True, timeout=60)
        got = sorted({line.rstrip('=') for line in done.stdout.decode().split()})
        is_(got, table(tool), tool + done.stderr.decode())


@test('fish: all options of --help are offered, and no others')
def _():
    if not shutil.which('fish'):
        raise Skip('no fish here')
    for tool in TOOLS:
        got = set()
        for start in ('-', '--'):
            done = subprocess.run(['fish', '--no-config', '-c', 'source "%s"; complete -C "%s.erofs %s"' %
                                   (os.path.join(MADE, FILES['fish'] % tool), tool, start)],
                                  env=environment(), capture_output=True, timeout=60)
            got |= {line.split('\t')[0].rstrip('=') for line in done.stdout.decode().splitlines()}
        is_(sorted(got), table(tool), tool + done.stderr.decode())


@test('each word that an option is said to take is taken')
def _():
    path = os.path.join(MADE, FILES['bash'] % 'dump')
    with open(path) as file:
        rows = re.findall(r'(?m)^(--\S+) (?:req|opt) ([^|]+)\|', file.read())
    words = [(option, word) for option, words in rows for word in words.split() if re.match('[a-z^]', word)]
    check(('--workers', 'percpu-hipri') in words, words)
    for option, word in words:
        result = run([DUMP, '%s=%s' % (option, word), os.path.join(place(), 'image.erofs')])
        check(not re.search('is not|is neither|--help', result.text), option, word, result)


@test('bash: nothing on the line is run, whatever it says')
def _():
    mark = os.path.join(place(), 'mark')
    lines = ['--path=/`touch %s`' % mark, '$(touch %s) --path=/u' % mark, '--path=$(touch %s)' % mark,
             '"$(touch %s)" us' % mark, '<(touch %s) --path=/u' % mark]
    for line in lines:
        script = '. "%s"; COMP_LINE=$1; COMP_POINT=${#COMP_LINE}; _erofs_dump; printf "%%s\\n" "${COMPREPLY[@]}"' % \
            os.path.join(MADE, FILES['bash'] % 'dump')
        subprocess.run(['bash', '-c', script, 'bash', D + ' ' + line], env=environment(), cwd=place(), timeout=60,
                       capture_output=True)
        check(not os.path.exists(mark), line)


try:
    main()
finally:
    for name in list(_shells):
        forget(name)
