# SPDX-License-Identifier: GPL-2.0-or-later
"""One implementation, two entrances (cli.md 4): tests that hold for both reading tools.

@both('X3: ...') makes a test for each tool there is; the function gets its Entrance.
"""
import samples
import tools
from tap import test


class Entrance:
    """A tool and its ways to say the same: status numbers, words of its messages."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        self.is_fsck = name == 'fsck.erofs'
        self.usage = 16 if self.is_fsck else 2

    def run(self, *words, **more):
        return tools.run(tools.INSTRUMENT + [self.path, *words], **more)

    def status(self, fsck, dump=None):
        """fsck: a number or several; dump: the other tool's, default 1 in place of 4, 8 and 12."""
        if self.is_fsck:
            return fsck
        if dump is not None:
            return dump
        if isinstance(fsck, int):
            return {0: 0, 16: 2}.get(fsck, 1)
        return {s for one in fsck for s in ({0}, {1, 2})[one > 0]}

    def decode(self):
        """The option that decodes everything: without writing it where the tool can."""
        return '--extract' if self.is_fsck else '--extract=' + tools.fresh()

    def form_fault(self, result):
        samples.form_fault(result, self.name)


def entrances():
    return [Entrance(n, p) for n, p in (('fsck.erofs', tools.FSCK), ('dump.erofs', tools.DUMP)) if p]


def both(name):
    def note(function):
        for entrance in entrances():
            test('%s (%s)' % (name, entrance.name))(lambda tool=entrance: function(tool))
        return function
    return note
