#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# --help, man page and parser know the same options (cli.md 14).

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1

# Long options of the option table, which are those that the parser takes.
in_table()
{
	{
		sed -n 's/^	{ OPT_[A-Z0-9_]*, "\([a-z0-9-]\{1,\}\)".*/\1/p' "$1/options.c"
		sed -n 's/^	{ CLI_[A-Z_]*, "\([a-z0-9-]\{1,\}\)".*/\1/p' lib/cli/cli.h
	} | LC_ALL=C sort -u
}

in_man()
{
	sed -n 's/\\-/-/g; s/\\f[BIR]/ /g; /^ *--\|, *--\|^ -[a-zA-Z], --/p' "$1" |
		grep -o -- '--[a-z0-9-]*' | sed 's/^--//' | LC_ALL=C sort -u
}

for tool in fsck dump; do
	page=$tool/$tool.erofs.1
	is "$(in_man "$page")" "$(in_table $tool)" "$page and the option table name the same options"
	if command -v man >/dev/null; then
		is "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
			2>&1 >/dev/null)" "" "man --warnings is silent about $page"
	else
		skip "man --warnings" "no man"
	fi
done
done_testing
