# SPDX-License-Identifier: GPL-2.0-or-later
"""TAP for tests in Python.

A test file defines functions, each marked with @test('R1: options after the operand'), and
ends with main(). A function fails by raising Failure (or AssertionError), is left out by
raising Skip. T='R5 V1:' picks tests by parts of their names, T='field 7:,field 9' by phrases.
"""
import os
import sys
import time
import traceback

_tests = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


class Tap:
    """Numbers and prints results; many results may come from one function."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def line(self, good, name, note=''):
        self.count += 1
        if not good:
            self.failed += 1
        print('%sok %d - %s' % ('' if good else 'not ', self.count, name.replace('#', '')))
        for text in str(note).splitlines() if note else ():
            print('# ' + text[:1000])
        sys.stdout.flush()

    def skip(self, name, why):
        self.count += 1
        print('ok %d - %s # SKIP %s' % (self.count, name.replace('#', ''), why))
        sys.stdout.flush()

    def done(self):
        print('1..%d' % self.count)
        sys.exit(1 if self.failed else 0)


def skip_all(why):
    print('1..0 # SKIP ' + why)
    sys.exit(0)


def test(name):
    def note(function):
        _tests.append((name, function))
        return function
    return note


def main():
    tap = Tap()
    words = os.environ.get('T', '')
    words = words.split(',') if ',' in words else words.split()
    for name, function in _tests:
        if words and not any(word.lower() in name.lower() for word in words):
            continue
        start = time.monotonic()
        try:
            function()
        except Skip as why:
            tap.skip(name, why)
        except (Failure, AssertionError) as why:
            where = traceback.extract_tb(sys.exc_info()[2])[-1]
            tap.line(False, name, '%s\n(%s:%d)' % (why, os.path.basename(where.filename),
                                                    where.lineno))
        except Exception:
            tap.line(False, name, 'the test itself broke:\n' + traceback.format_exc())
        else:
            tap.line(True, name)
        if os.environ.get('TIMES'):
            print('# %.2f s' % (time.monotonic() - start))
    tap.done()


def check(good, *what):
    if not good:
        raise Failure(' '.join(str(w) for w in what))


def is_(got, wanted, what=''):
    if got != wanted:
        raise Failure('%s: got %r, wanted %r' % (what, got, wanted))
