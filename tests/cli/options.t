#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cli.md section 14: man page, --help and parser know the same options (style.md: one table per tool)."""
import os
import re
import string
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import tools  # noqa: E402
from tap import Skip, check, is_, main, skip_all, test  # noqa: E402
from tools import expect, run  # noqa: E402

TOOLS = {name: path for name, path in (('fsck', tools.FSCK), ('dump', tools.DUMP), ('mkfs', tools.MKFS)) if path}
if not TOOLS:
    skip_all('no tools')


def spellings(text):
    """[(option, argument)] of "-x, --name[=ARG]": argument '' none, 'X' required, '[X]' optional."""
    found = []
    for word in re.split(r',? (?=-)', text.strip()):
        match = re.fullmatch(r'(--[A-Za-z0-9-]+)(?:=(\S+)|\[=(\S+)\])?|(-[A-Za-z0-9])(\S*)', word)
        check(match, 'cannot read', text)
        long, required, optional, short, attached = match.groups()
        found.append((long or short, '[%s]' % optional if optional else required or attached or ''))
    # the argument stands behind the last of those that share it
    if len(found) > 1 and found[-2][0][1] != '-' and found[-1][0][1] == '-':
        found[-2] = (found[-2][0], found[-1][1])
    return found


def in_page(tool):
    path = os.path.join(os.path.dirname(TOOLS[tool]), tool + '.erofs.1')
    if not os.path.exists(path):
        raise Skip('the page is not built')
    with open(path) as file:
        text = file.read()
    section = re.search(r'(?ms)^\.SH OPTIONS\n(.*?)^\.SH ', text).group(1)
    plain = re.sub(r'\\f[BIR]', '', section).replace(r'\-', '-')
    heads = re.findall(r'(?m)^\.TP\n(.*)', plain)
    # those that are refused are only named
    refused = re.search(r'(?ms)^\.SS Refused\n(.*)', plain)
    names = re.findall(r'(?m)^(--?[A-Za-z0-9-]+)[,.]$', refused.group(1)) if refused else []
    return dict(pair for head in heads for pair in spellings(head)), set(names), text


def in_help(tool):
    rows = expect(run([TOOLS[tool], '--help=all']), 0).out.decode()
    rows = re.sub(r'--\[no-\]([a-z-]+)', r'--\1, --no-\1', rows)
    heads = re.findall(r'(?m)^ +(-.*?)(?:  .*)?$', rows)
    return dict(pair for head in heads for pair in spellings(re.sub(r' (?=[^-]).*', '', head)))


def says(tool, *words):
    return run([TOOLS[tool], *words]).text


for tool in TOOLS:
    @test('%s.erofs: man page and --help=all name the same options with the same arguments' % tool)
    def _(tool=tool):
        page, refused, _ = in_page(tool)
        table = in_help(tool)
        is_(sorted(set(table) - set(page) - refused), [], 'not in the page')
        is_(sorted((set(page) | refused) - set(table)), [], 'not in --help')
        is_({k: v for k, v in table.items() if k not in refused}, page)
        check(len(page) > 15, page)

    @test('%s.erofs: the parser takes each option of the page, with such an argument' % tool)
    def _(tool=tool):
        for option, arg in in_page(tool)[0].items():
            alone = says(tool, option)
            check('unknown option' not in alone and 'ambiguous' not in alone, option, alone)
            is_('needs an argument' in alone, arg != '' and arg[0] != '[', option)
            if option.startswith('--') and not arg:
                check('takes no argument' in says(tool, option + '=x'), option, 'takes an argument')
            elif option.startswith('--'):
                check('takes no argument' not in says(tool, option + '=x'), option, 'takes none')

    @test('%s.erofs: the parser knows no option that --help does not' % tool)
    def _(tool=tool):
        table = in_help(tool)
        letters = {name[1] for name in table if name[1] != '-'}
        for letter in string.ascii_letters + string.digits:
            is_('unknown option' not in says(tool, '-' + letter), letter in letters, '-' + letter)
        # getopt says how many long names begin with a letter: none, one, more
        for letter in string.ascii_letters + string.digits:
            many = sum(name.startswith('--' + letter) for name in table)
            said = says(tool, '--' + letter)
            is_('unknown option' in said, many == 0, '--' + letter)
            if many < 2:
                check('ambiguous' not in said, letter, said)

    @test('%s.erofs: the page speaks of no option that is not there' % tool)
    def _(tool=tool):
        text = re.sub(r'\\f[BIRP]', '', in_page(tool)[2]).replace(r'\-', '-')
        known = {name for other in TOOLS for name in in_help(other)}
        foreign = {'--test', '--null'}      # of programs in examples
        named = set(re.findall(r'(?<![\w-])--[a-z][a-z0-9-]+', text))
        is_(sorted(named - known - foreign), [], 'unknown')


@test('--page-policy takes the words of its row, and no others')
def _():
    for tool in set(TOOLS) & {'fsck', 'dump'}:
        for word, good in (('caching', True), ('kernel', True), ('kern', False), ('', False), ('FILE', False)):
            is_('is not kernel or caching' in says(tool, '--page-policy=' + word, '--version'), not good, word)


main()
