#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""X10, --salvage: every damaged image gives what can be read, and names what cannot.

class report: files that are not named as affected are those of the base; affected ones have the
bytes of the base outside the ranges that the report names, and zeros inside. All classes: no crash,
no hang, nothing outside the target, the same report and tree for every worker setting.
"""
import os
import re
import resource
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import corpus  # noqa: E402
import tools  # noqa: E402
import tree  # noqa: E402


# The inode's own length is wrong, so its inline tail is looked for in another place: plain bytes,
# in which nothing shows that. The inode is named.
MOVED = ('xattr-icount-1',)


def devices(row):
    if row['base'] == 'blob' and row['name'] != 'dev-missing':
        return ['--device=' + os.path.join(corpus.BAD, 'base-blob.blob')]
    return []


def named(result, path):
    """Ranges that the report calls zeros in path: (offset, end)."""
    text = r': %s \(nid \d+\) @ 0x([0-9a-f]+): (\d+) bytes cannot be read and are zeros' % \
        re.escape(path)
    return sorted((int(a, 16), int(a, 16) + int(n)) for a, n in re.findall(text, result.text))


def lost_faults(path, base, got, ranges):
    """Outside the ranges the bytes of the base, inside zeros."""
    faults = []
    with open(base, 'rb') as one, open(got, 'rb') as two:
        wanted = one.read()
        found = two.read(min(os.path.getsize(got), len(wanted)))
        masked = bytearray(wanted[:len(found)])
        for start, end in ranges:
            end = min(end, len(found))
            if start < end:
                masked[start:end] = bytes(end - start)
        if bytes(masked) != found:
            at = next(i for i, (a, b) in enumerate(zip(masked, found)) if a != b)
            faults.append('%s: differs at %d; named: %s' % (path, at, ranges[:8]))
        if any(start >= end for start, end in ranges):
            faults.append('%s: an empty range' % path)
    mark = os.getxattr(got, 'user.erofs.damaged') if ranges and tools.has_xattrs() else None
    if mark is not None and int(mark) != sum(e - s for s, e in ranges):
        faults.append('%s: marked %r, lost %r' % (path, mark, ranges))
    return faults


def report_faults(row, base, target, result):
    faults = []
    for path in corpus.affected(row):
        one, two = base + path, target + path
        if not os.path.isfile(one) or os.path.islink(one) or not os.path.isfile(two):
            continue
        ranges = named(result, path)
        faults += lost_faults(path, one, two, ranges)
    return faults


def sketch(target):
    if not os.path.isdir(target):
        return None
    return {p: (e.kind, e.size, e.digest, e.mode, e.xattrs.get(b'user.erofs.damaged'))
            for p, e in tree.read(target, xattrs=tools.has_xattrs(), data=64 << 20).items()}


def base_tree(row, box):
    image = os.path.join(corpus.BAD, 'base-%s.erofs' % row['base'])
    if not os.path.exists(image):    # interlaced has a manifest alone
        return None
    base = os.path.join(box, 'base')
    words = corpus.extra_devices(corpus.BAD, 'base-' + row['base'])
    tools.expect(tools.fsck('--extract=' + base, *words, image), 0)
    return base


def check_row(row):
    out = corpus.Row()
    image = os.path.join(corpus.BAD, row['name'] + '.erofs')
    box = tools.fresh('salvage', make=True)
    base = base_tree(row, box)
    limits = ((resource.RLIMIT_FSIZE, 1 << 20),) if row['name'] in corpus.BIG else ()
    os.mkdir(os.path.join(box, 'run'))
    target = os.path.join(box, 'run', 'x')
    xattrs = ['--xattrs'] if tools.has_xattrs() else []
    seen = []
    for workers in tools.WORKERS:
        before = corpus.escaped(None)
        result = tools.fsck('--workers=' + workers, '--salvage', '--extract=' + target, *xattrs,
                            *devices(row), image, cwd=os.path.join(box, 'run'), limits=limits,
                            watch=box)
        faults = corpus.status_faults(row, result, 'salvage')
        faults += corpus.tree_faults(row, target, result)
        if row['class'] == 'report' and base and row['name'] not in MOVED:
            faults += report_faults(row, base, target, result)
        faults += ['escaped: ' + p for p in
                   sorted(corpus.escaped(os.path.join(box, 'run')) - before)]
        seen.append((result.status, result.err, sketch(target)))
        tree.remove(target)
        if any(s != seen[0] for s in seen):
            faults.append('not the same as with workers=%s\n%s' % (tools.WORKERS[0], result))
        out.add('X10 salvage bad/%s (%s) workers=%s' % (row['name'], row['class'], workers), faults)
    tree.remove(box)
    return out


corpus.prepare(corpus.BAD)
corpus.spread(corpus.read_rows(), check_row)
