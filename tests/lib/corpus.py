# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the corpus: every healthy image against its manifest, every damaged one against its row.

One TAP line for each image and worker setting, and one that compares the settings.
"""
import concurrent.futures
import glob
import hashlib
import os
import re
import resource
import traceback

import mkimg
import tools
import tree
from tap import Tap, skip_all

GOOD = os.path.join(tools.CORPUS, 'good')
BAD = os.path.join(tools.CORPUS, 'bad')
OFFSETS = {'kinds-offset': 12288}

# Status by row where 4 (damage) is not the only right answer; cli.md section 3.
WORLD = {8}
EITHER = {4, 8, 12}
STATUS = dict.fromkeys(
    'sb-magic sb-blkszbits-17 sb-blkszbits-31 sb-blkszbits-255 sb-incompat trunc-0 trunc-1024 '
    'trunc-1100 not-an-image all-zero cfg-algorithm dev-missing'.split(), WORLD)
# What format.md calls UNSUPP, or what may be either damage or something newer.
STATUS.update(dict.fromkeys(
    'cfg-lzma-format cfg-zstd-format cfg-deflate-window cfg-lz4-pcluster cfg-zstd-window '
    'cfg-lzma-dict sb-devices sb-devslot inode-layout-5 inode-layout-6 '
    'inode-layout-7 inode-format chunk-format z-algorithm-15 z-clusterbits ext-format ext4-format '
    'ext-plen-huge ext4-plen-huge'.split(), EITHER))
# Rows whose valid data is so large that writing it would test the disk.
BIG = ('bomb-zstd-8g', 'bomb-names', 'bomb-dsize')


def extra_devices(folder, name):
    parts = glob.glob(os.path.join(folder, glob.escape(name) + '.part*.blob'))
    one = os.path.join(folder, name + '.blob')
    found = sorted(parts) + ([one] if os.path.exists(one) else [])
    return ['--device=' + path for path in found]


def words_for(folder, name):
    words = extra_devices(folder, name)
    if name in OFFSETS:
        words.append('--offset=%d' % OFFSETS[name])
    return words


class Row:
    """Results of one image: (good, name, note), printed in order by the main thread."""

    def __init__(self):
        self.lines = []

    def add(self, name, faults):
        self.lines.append((not faults, name, '\n'.join(map(str, faults[:12]))))


def spread(items, work):
    """Run work(item) for all, several at a time, and print in the order of the items."""
    tap = Tap()
    sample = items[::tools.SAMPLE]

    def safely(item):
        try:
            return work(item)
        except Exception:
            row = Row()
            row.add(str(item), ['the test itself broke:', traceback.format_exc()])
            return row

    with concurrent.futures.ThreadPoolExecutor(tools.JOBS) as pool:
        for row in pool.map(safely, sample):
            for line in row.lines:
                tap.line(*line)
    if tools.SAMPLE > 1:
        tap.skip('%d of %d images' % (len(items) - len(sample), len(items)), 'SAMPLE=%d'
                 % tools.SAMPLE)
    tap.done()


def prepare(folder):
    if not tools.FSCK:
        skip_all('fsck.erofs not found (set FSCK)')
    if not os.path.isdir(folder):
        skip_all('the corpus is not at %s (set CORPUS)' % tools.CORPUS)
    tools.fsck('-V')    # a libtool wrapper may want to relink once


# Healthy images ------------------------------------------------------------------------

def hole_faults(image, words, got):
    """Chunk holes must not be allocated: compare with the chunk map."""
    offset = 0
    if words and words[-1].startswith('--offset='):
        offset = int(words[-1][9:])
    picture = mkimg.Image.load(image)
    picture.data = picture.data[offset:]
    faults = []
    for path, entry in got.items():
        if entry.kind != 'file' or not entry.size:
            continue
        inode = picture.find(path[2:])
        if inode.layout != mkimg.CHUNK:
            continue
        chunk, blocks = inode.chunks()
        pages = set()
        for number, block in enumerate(blocks):
            if block is not mkimg.HOLE:
                end = min((number + 1) * chunk, entry.size)
                pages.update(range(number * chunk // 4096, -(-end // 4096)))
        if entry.blocks * 512 > len(pages) * 4096:
            faults.append('%s: %d bytes allocated, %d hold data' % (
                tree.show(path), entry.blocks * 512, len(pages) * 4096))
    return faults


def wanted_tree(mtree):
    wanted = tree.manifest(mtree)
    if not tools.has_xattrs():
        for entry in wanted.values():
            entry.xattrs = {}
    if not tools.ROOT:
        wanted = tree.for_user(wanted, os.getuid(), os.getgid(), UMASK)
    return wanted


UMASK = os.umask(0)
os.umask(UMASK)


def check_good(name):
    row = Row()
    image = os.path.join(GOOD, name + '.erofs')
    words = words_for(GOOD, name)
    wanted = wanted_tree(os.path.join(GOOD, name + '.mtree'))
    holes = name.startswith(('sparse-', 'over4g-', 'small-chunk'))
    box = tools.fresh('good', make=True)
    for workers in tools.WORKERS:
        faults = []
        setting = '--workers=' + workers
        target = os.path.join(box, 'x')
        plain = tools.fsck(setting, *words, image, cwd=box)
        runs = [plain]
        if plain.status or plain.out or plain.err:
            faults.append('check: wanted status 0 and silence\n%s' % plain)
        if workers == tools.WORKERS[0]:
            bare = tools.fsck(*words, image, cwd=box)
            runs.append(bare)
            if bare.status or bare.out or bare.err:
                faults.append('plain check: wanted status 0 and silence\n%s' % bare)
        xattrs = ['--xattrs'] if tools.has_xattrs() else []
        full = tools.fsck(setting, *words, '--extract=' + target, *xattrs, image, cwd=box,
                          watch=box)
        runs.append(full)
        faults += ['%s\n%s' % (tools.sane(r), r) for r in runs if tools.sane(r)]
        if full.status or full.out or tools.ROOT and full.err:
            faults.append('extraction: wanted status 0 and silence\n%s' % full)
        if os.path.isdir(target):
            got = tree.read(target, xattrs=tools.has_xattrs())
            faults += tree.compare(wanted, got, probe=box, nlink=tools.ROOT)
            if holes:
                faults += hole_faults(image, words, got)
        else:
            faults.append('nothing extracted')
        tree.remove(target)
        row.add('good/%s workers=%s' % (name, workers), faults)
    tree.remove(box)
    return row


def good():
    prepare(GOOD)
    names = sorted(os.path.basename(p)[:-6] for p in glob.glob(os.path.join(GOOD, '*.erofs')))
    spread(names, check_good)


# Damaged images ------------------------------------------------------------------------

def read_rows():
    with open(os.path.join(BAD, 'EXPECT.tsv'), encoding='utf-8') as file:
        head, *lines = file.read().splitlines()
    keys = head.split('\t')
    return [dict(zip(keys, line.split('\t'))) for line in lines]


def affected(row):
    text = row['affected']
    if text == '-':
        return []
    if text.endswith('..'):
        return ['/']
    return text.split(',')


def nids(row, paths):
    """nid of each affected path where the healthy image's manifest shows it."""
    if row['base'] == '-':
        return {}
    base = tree.manifest(os.path.join(BAD, 'base-%s.mtree' % row['base']))
    found = {}
    for path in paths:
        entry = base.get(b'.' if path == '/' else b'.' + path.encode())
        if entry:
            found[path] = entry.inode
    return found


def names_fault(row, result, sound=()):
    """report: each affected path (or its nid), with an offset, stands in one line.

    sound: paths that came out as the base has them. EXPECT.tsv names some that the kernel reads
    without an error too (/z of frag-data).
    """
    out = []
    paths = [p for p in affected(row) if p not in sound]
    numbers = nids(row, paths)
    for path in paths:
        word = r'(^|[\s:\'"])%s($|[\s:,\'"(])' % re.escape(path)
        if numbers.get(path) is not None:
            word += r'|\bnid %d\b' % numbers[path]
        lines = [l for l in result.text.splitlines() if re.search(word, l)]
        if not lines:
            out.append('no line names %s' % path)
        elif not any(re.search(r'@ 0x[0-9a-f]+', l) for l in lines):
            out.append('no offset beside %s' % path)
    return out


def sound_paths(row, target):
    """Affected files whose kernel reads are silent and whose contents are those of the base."""
    if row['base'] == '-' or not os.path.isdir(target):
        return ()
    base = tree.manifest(os.path.join(BAD, 'base-%s.mtree' % row['base']))
    got = tree.read(target, xattrs=False, data=64 << 20)
    out = []
    for path in affected(row):
        one, two = base.get(b'.' + path.encode()), got.get(b'.' + path.encode())
        if 'read %s ' % path not in row['kernel_6.18'] and one and two and one.kind == 'file' and \
                one.size and one.digest == two.digest and 'packed data' in row['what']:
            out.append(path)
    return out


_escapes = ('/tmp', '/')


def escaped(box):
    found = set()
    for place in _escapes:
        for name in os.listdir(place):
            if name.startswith(('corpus-escape', 'escape')):
                found.add(os.path.join(place, name))
    if box:
        found.update(n for n in os.listdir(box) if n != 'x')
    return found


def status_faults(row, result, what):
    kind, name = row['class'], row['name']
    fault = tools.sane(result)
    if fault:
        return ['%s: %s\n%s' % (what, fault, result)]
    status = result.status
    if kind == 'ok':
        wanted = {0}
    elif kind == 'safe':
        wanted = {0, 4, 8, 12}
    else:
        wanted = STATUS.get(name, {4})
    if status not in wanted:
        return ['%s: status %d, wanted %s\n%s' % (
            what, status, ' or '.join(map(str, sorted(wanted))), result)]
    if status and not result.err:
        return ['%s: status %d without a word' % (what, status)]
    if status and not re.search(r'^<E> erofs: .*' + re.escape(name), result.text, re.M):
        return ['%s: no error names the image\n%s' % (what, result)]
    return []


def part_left(got):
    return ['left behind: ' + tree.show(p) for p in got
            if os.path.basename(p).startswith(b'.erofs-part-')]


def tree_faults(row, target, result):
    kind = row['class']
    if kind == 'reject':
        return ['target was made, though the image cannot be opened'] \
            if os.path.lexists(target) else []
    if kind == 'fail':
        return []
    if not os.path.isdir(target):
        if '/' in affected(row) or kind == 'safe' and result.status:
            return []
        return ['nothing extracted\n%s' % result]
    got = tree.read(target, xattrs=tools.has_xattrs(), data=64 << 20)
    faults = part_left(got)
    if row['base'] != '-':
        wanted = wanted_tree(os.path.join(BAD, 'base-%s.mtree' % row['base']))
        skip = [os.fsencode(p) for p in affected(row)]
        if not (kind == 'safe' and result.status and '/' not in affected(row)
                and len(got) <= 1):
            faults += tree.compare(wanted, got, skip=skip, probe=os.path.dirname(target))
    else:
        for name, entry in got.items():
            if name in (b'./z', b'./keep') and entry.digest != INTACT:
                faults.append('%s is not intact' % tree.show(name))
        whole = row['class'] in ('report', 'ok') and '/' not in affected(row)
        # dir-deep-3000 holds folders and nothing else
        if whole and row['name'].startswith('dir-') and row['name'] != 'dir-deep-3000' and \
                not any(e.digest == INTACT for e in got.values()):
            faults.append('the intact file is missing')
    return faults + special_faults(row['name'], got)


INTACT = hashlib.sha256(b'intact\n').hexdigest()


def special_faults(name, got):
    """What single rows promise beyond their class."""
    if name == 'dir-deep-3000' and max(p.count(b'/') for p in got) < 3000:
        return ['only %d levels of 3000' % max(p.count(b'/') for p in got)]
    if name == 'bomb-hole-1t':
        entry = got.get(b'./v')
        if not entry or entry.size != 1 << 40 or entry.blocks:
            return ['/v is not an empty hole of 1 TiB']
    if name == 'bomb-shared-plain' and sum(e.size == 16384 for e in got.values()) != 150:
        return ['not 150 files of 16 KiB']
    if name == 'inode-start-0' and (b'./c' not in got or got[b'./c'].size != 8192):
        return ['/c is missing or of a wrong size']
    if name == 'dirent-cycle-self' and any(p.startswith(b'./d/q/') for p in got):
        return ['something was made below the loop']
    return []


def check_bad(row):
    out = Row()
    name = row['name']
    image = os.path.join(BAD, name + '.erofs')
    words = []
    if row['base'] == 'blob' and name != 'dev-missing':
        words = ['--device=' + os.path.join(BAD, 'base-blob.blob')]
    if name == 'kinds-offset':
        words.append('--offset=12288')
    limits = ((resource.RLIMIT_FSIZE, 1 << 20),) if name in BIG else ()
    xattrs = ['--xattrs'] if tools.has_xattrs() else []
    box = tools.fresh('bad', make=True)
    target = os.path.join(box, 'x')
    texts = {}
    for workers in tools.WORKERS:
        faults = []
        setting = '--workers=' + workers
        before = escaped(None)
        check = tools.fsck(setting, '--extract', *words, image, cwd=box)
        faults += status_faults(row, check, 'check')
        full = tools.fsck(setting, '--extract=' + target, *xattrs, *words, image, cwd=box,
                          limits=limits, watch=box)
        faults += status_faults(row, full, 'extraction')
        if not faults and row['class'] == 'report':
            sound = sound_paths(row, target)
            for what, result in (('check', check), ('extraction', full)):
                faults += ['%s: %s\n%s' % (what, f, result)
                           for f in names_fault(row, result, sound)]
        faults += tree_faults(row, target, full)
        faults += ['escaped: %s' % p for p in sorted(escaped(box) - before)]
        tree.remove(target)
        texts[workers] = (check.status, check.err, full.status, full.err)
        out.add('bad/%s (%s) workers=%s' % (name, row['class'], workers), faults)
    if len(tools.WORKERS) > 1:
        first = tools.WORKERS[0]
        faults = []
        for workers in tools.WORKERS[1:]:
            if texts[workers] != texts[first]:
                faults += ['workers=%s: %r' % (w, texts[w]) for w in (first, workers)]
        out.add('bad/%s same report for every worker setting' % name, faults)
    tree.remove(box)
    return out


def bad():
    prepare(BAD)
    spread(read_rows(), check_bad)
