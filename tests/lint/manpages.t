#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# --help, man page and parser know the same options (cli.md 14).

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1

# Long options of the option table, which are those that the parser takes: as the tool lists them.
in_table()
{
	"$top_builddir/$1/$1.erofs" --help=all | sed -n 's/^ \{1,\}\(-.*\)/\1/p' | sed 's/  .*//' |
		sed 's/--\[no-\]\([a-zA-Z0-9-]*\)/--\1 --no-\1/g' | grep -o -- '--[a-zA-Z0-9-]*' | sed 's/^--//' |
		LC_ALL=C sort -u
}

in_man()
{
	sed -n 's/\\-/-/g; s/\\f[BIR]/ /g; /^ *--\|, *--\|^ -[a-zA-Z], --/p' "$1" |
		grep -o -- '--[a-zA-Z0-9-]*' | sed 's/^--//' | LC_ALL=C sort -u
}

top_builddir=${top_builddir:-.}
for tool in fsck dump mkfs; do
	if ! [ -x "$top_builddir/$tool/$tool.erofs" ]; then
		skip "$tool.erofs and its man page" "the tool is not built"
		continue
	fi
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
