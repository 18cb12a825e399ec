#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkfs.erofs --json (cli.md 8, 9; R6, R10, R11, R21, E4): one object of what was built, by the installed schema."""
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import forest  # noqa: E402
import schema  # noqa: E402
import tools  # noqa: E402
from tap import check, is_, main, test  # noqa: E402
from tools import MKFS, dump, expect, fresh, fsck, make  # noqa: E402

tools.need(MKFS, 'mkfs.erofs')
tools.need(tools.FSCK, 'fsck.erofs')
tools.need(tools.DUMP, 'dump.erofs')
FIXED = ['-Uclear', '-T1700000000', '--mkfs-time']


def source():
    """Two directories, three files of 10007 bytes, of which one has two names, a symlink, a FIFO."""
    top = fresh('src', make=True, mode=0o755)
    forest.write(os.path.join(top, 'a'), b'a' * 10000)
    forest.write(os.path.join(top, 'd', 'b'), b'bbbbbbb')
    forest.write(os.path.join(top, 'd', 'empty'), b'')
    os.link(os.path.join(top, 'a'), os.path.join(top, 'd', 'link'))
    os.symlink('a', os.path.join(top, 'symlink'))
    os.mkfifo(os.path.join(top, 'fifo'))
    return top


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def built(*words, top=None, image=None):
    image = image or fresh('img')
    value = schema.report(expect(make(*FIXED, '--json', *words, image, top or source()), 0, silent=False).out)
    is_((value['tool'], value['image'], value['result'], value['exit']), ('mkfs.erofs', image, 'clean', 0), words)
    return value, image


@test('counts and sizes are those of the source and of the image')
def _():
    value, image = built()
    is_({k: v for k, v in value['build'].items() if k not in ('meta_blocks', 'deduplicated_bytes')},
        {'inodes': 7, 'files': 3, 'directories': 2, 'symlinks': 1, 'hard_links': 1, 'specials': 1,
         'bytes': 10007, 'image_bytes': os.path.getsize(image)}, 'build')
    is_(value['findings'], [], 'findings')
    for words in (['-zlz4'], ['-b512'], ['-Enoinline_data'], ['--android-sparse'], ['-b65536']):
        value, image = built(*words)
        is_(value['build']['image_bytes'], os.path.getsize(image), words)
    check('wall_ns' in value['times'] and 'workers' in value['engine'], 'figures')


@test('the superblock is what dump.erofs and fsck.erofs report of it')
def _():
    for words in ([], ['-zlz4', '-Efragments,ztailpacking', '-Lname'], ['-b512', '--offset=4096'],
                  ['--chunksize=4096', '--blobdev=' + fresh('blob')], ['--xattr-inode-digest']):
        value, image = built(*words)
        more = [w for w in words if w.startswith('--offset')]
        is_(value['superblock'], schema.report(dump('--json', *more, image).out)['superblock'], words)
        is_(value['superblock'], schema.report(fsck('--json', *more, image).out)['superblock'], words)


@test('R10: on stdout it replaces the text, also with --quiet; as FILE the text stays')
def _():
    value, _ = built('--quiet')
    target = os.path.join(fresh(make=True), 'report')
    result = expect(make(*FIXED, '--json=' + target, fresh('img'), source()), 0)
    check(b'Build completed' in result.out, 'the text', result)
    is_(schema.report(content(target))['build'], value['build'], 'FILE')
    is_(os.listdir(os.path.dirname(target)), ['report'], 'nothing left beside it')
    is_(result.err, b'', 'stderr')


@test('the image is the same with and without; the report, figures left out, for all workers (E4)')
def _():
    plain, top, seen = fresh('img'), source(), []
    expect(make(*FIXED, '-zlz4', plain, top), 0)
    for workers in ('1', '2', '7'):
        value, image = built('-zlz4', '--workers=' + workers, top=top)
        is_(content(image) == content(plain), True, workers)
        seen.append(json.dumps({k: v for k, v in value.items() if k not in ('times', 'engine', 'image')}))
    is_(len(set(seen)), 1, seen)


@test('--verify: what was compared')
def _():
    value, _ = built('--verify')
    is_((value['verify'], value['differences']),
        ({'names': 8, 'bytes': 20007, 'differences': 0, 'complete': True}, []), 'verify')
    check('verify' not in built()[0], 'without --verify')


@test('--verify: a source that changes is "damaged", each difference an object, and no image is there')
def _():
    image, top, pipe = fresh('img'), source(), fresh('fifo')
    os.mkfifo(pipe)
    for i in range(3000):
        forest.write(os.path.join(top, 'many', '%050d' % i), b'')
    # the manifest, more than fits into a pipe, is of the complete image, and the source is compared behind it
    process = subprocess.Popen([MKFS, *FIXED, '--json', '--verify', '--manifest=' + pipe, image, top],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(pipe, 'rb') as file:
        file.read(1)
        forest.write(os.path.join(top, 'd', 'b'), b'BBBBBBB')
        file.read()
    out, err = process.communicate(timeout=60)
    value = schema.report(out)
    is_((process.returncode, value['result'], value['exit']), (1, 'damaged', 1), err)
    check([d for d in value['differences'] if d['path'] == '/d/b' and d['key'] == 'data'], 'differences: %s' % value['differences'])
    check('build' not in value and 'superblock' not in value, 'no image', value)
    check(not os.path.lexists(image), 'the image has its name')


@test('warnings and failures are findings of a whole object')
def _():
    top = source()
    image = os.path.join(top, 'image')
    expect(make(*FIXED, image, top), 0)
    value, _ = built(top=top, image=image)
    is_([(f['severity'], 'left out' in f['message']) for f in value['findings']], [('warning', True)], value)
    for words, text in (([fresh('img'), '/no/such'], 'no/such'), (['/no/such/folder/img', top], 'no/such'),
                        (['--workers=3', '-znonsense', fresh('img'), top], 'nonsense'),
                        (['--workers=nonsense', fresh('img'), top], 'nonsense')):
        result = expect(make(*FIXED, '--json', *words), 1, text)
        value = schema.report(result.out)
        is_((value['result'], value['exit']), ('failed', 1), words)
        check(any(text in f['message'] for f in value['findings']), words, value)
        check('build' not in value, words)


@test('R6: usage errors have no report; --json=FILE never falls on source, image or another output')
def _():
    top, image, note = source(), fresh('img'), fresh('note')
    for words in (['--json='], ['--json', '--print-digest'], ['--json', '--manifest=-'], ['--json=' + image],
                  ['--manifest=' + note, '--json=' + note], ['--json', '-b1000']):
        is_(expect(make(*words, image, top), 1, "Try 'mkfs").out, b'', words)
        check(not os.path.lexists(image), words)
    archive = fresh('tar')
    subprocess.run(['tar', '-C', top, '-cf', archive, '.'], check=True)
    before = content(archive)
    expect(make('--json=' + archive, '--tar=f', image, archive), 1, 'is the image or a part of it')
    expect(make(*FIXED, image, top), 0)
    link = fresh('link')
    os.symlink(image, link)
    expect(make('--json=' + link, image, top), 1, 'is the image or a part of it')
    is_((content(archive) == before, content(image)[1024:1028]), (True, b'\xe2\xe1\xf5\xe0'), 'nothing was touched')


@test('R11: a full disk is a failure with a message, on stdout and as FILE')
def _():
    with open('/dev/full', 'wb') as full:
        expect(make('--json', fresh('img'), source(), stdout=full), 1, 'No space left')
    expect(make('--json=/dev/full', fresh('img'), source()), 1, 'No space left')


@test('R21: SIGTERM: a whole report with "cancelled", and the process dies by the signal')
def _():
    image = fresh('img')
    process = subprocess.Popen([MKFS, '--json', '--tar=f', image, '-'], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.5 if not tools.SLOW else 5)
    process.send_signal(signal.SIGTERM)
    out = process.communicate(timeout=60)[0]
    value = schema.report(out)
    is_((process.returncode, value['result'], value['exit']),
        (-signal.SIGTERM, 'cancelled', 128 + signal.SIGTERM), value)
    check(not os.path.lexists(image), 'an image')


main()
