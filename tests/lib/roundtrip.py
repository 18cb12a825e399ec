# SPDX-License-Identifier: GPL-2.0-or-later
"""From a source to an image and back: Linux, our tools and a released one must all show the source."""
import filecmp
import os
import subprocess

import tools
import tree
from tap import Failure, Skip

FIXED = ['-T1700000000', '--mkfs-time', '-Uclear', '--quiet']
PEER_FSCK = os.path.join(tools.PEER, 'fsck.erofs') if tools.PEER else None
PAGE = os.sysconf('SC_PAGESIZE')


def block_size(words):
    sizes = [int(w[2:]) for w in words if w.startswith('-b')]
    return sizes[-1] if sizes else 4096


def demand(faults, what):
    if faults:
        raise Failure('%s:\n%s' % (what, '\n'.join(faults[:10])))


def shown_by_linux(picture, words):
    if block_size(words) > PAGE:
        raise Skip('Linux mounts no blocks larger than pages')
    with tools.Mount('-t', 'erofs', '-o', 'loop,ro', picture) as mount:
        return tree.read(mount, xattrs=tools.has_xattrs())


def make_image(source, words, each=((), ()), timeout=300):
    """The image, made once for each list of words that must make no difference."""
    first = None
    for more in each:
        picture = tools.fresh('made')
        tools.expect(tools.make(*FIXED, *words, *more, picture, source, timeout=timeout), 0, silent=True)
        if not first:
            first = picture
            continue
        if not filecmp.cmp(first, picture, shallow=False):
            raise Failure('made with %s and with %s, the images differ' % (list(each[0]), list(more)))
        os.unlink(picture)
    return first


def check_ours(picture, wanted, timeout=None):
    tools.expect(tools.fsck('--workers=2', '--strict', picture, timeout=timeout), 0, silent=True)
    target = tools.fresh('out')
    xattrs = ['--xattrs'] if tools.has_xattrs() else []
    tools.expect(tools.fsck('--workers=2', '--extract=' + target, *xattrs, picture, timeout=timeout), 0)
    got = tree.read(target, xattrs=bool(xattrs))
    tree.remove(target)
    demand(tree.compare(wanted, got, probe=tools.fresh('probe', make=True), owner=tools.ROOT,
                        xattrs=bool(xattrs) and tools.ROOT, mode=tools.ROOT), 'extracted')


def check_peer(picture, words, timeout=300):
    if not PEER_FSCK:
        return
    if block_size(words) > 4096:
        return      # a released build takes blocks up to the page size of its builder
    done = subprocess.run([PEER_FSCK, '-d0', '--extract', picture], capture_output=True, timeout=timeout)
    if done.returncode:
        raise Failure('fsck.erofs of %s: %s' % (tools.PEER, done.stderr.decode()[-500:]))


def run(source, words, each=((), ()), wanted=None, timeout=300):
    """All of it. Return: why Linux was not asked, or nothing."""
    wanted = wanted or tree.read(source, xattrs=tools.has_xattrs())
    picture = make_image(source, words, each, timeout)
    try:
        check_ours(picture, wanted, timeout)
        check_peer(picture, words, timeout)
        shown = shown_by_linux(picture, words)
    except Skip as why:
        return 'not mounted: %s' % why
    finally:
        if not os.environ.get('KEEP'):
            os.unlink(picture)
    demand(tree.compare(wanted, shown, xattrs=tools.has_xattrs()), 'mounted')
    return ''


def report(tap, title, *args, **more):
    try:
        note = run(*args, **more)
    except (Failure, OSError, subprocess.TimeoutExpired) as why:
        tap.line(False, title, why)
    else:
        tap.line(True, title + (' (%s)' % note if note else ''))
