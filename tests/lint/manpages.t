#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# cli.md 14: the man pages have the sections that people look for, every id of findings.def, and no
# warnings. Their options are compared with --help and the parser in tests/cli/options.t.

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1

build=${top_builddir:-.}
for tool in fsck dump mkfs; do
	page=$build/$tool/$tool.erofs.1
	if ! [ -e "$page" ]; then
		skip "$tool.erofs.1" "it is not built"
		continue
	fi
	sections='NAME SYNOPSIS DESCRIPTION OPTIONS EXIT_STATUS ENVIRONMENT COMPATIBILITY EXAMPLES SEE_ALSO'
	test $tool = mkfs || sections="$sections FINDINGS"
	is "$(for section in $sections; do
		grep -q "^\.SH $(echo $section | tr _ ' ')\$" "$page" || echo "$section"; done)" "" "$tool.erofs.1 has all sections"
	if [ $tool != mkfs ]; then
		is "$(awk '/^\.SH/ { on = $2 == "FINDINGS" } on && /[,.]$/ && !/ about:/' "$page" |
			sed -n 's/^\([a-z0-9\-]*\)\( (.*)\)*[,.]$/\1/p' | tr -d '\\')" \
			"$(sed -n 's/^FINDING(.*"\(.*\)")$/\1/p' lib/diag/findings.def)" "$tool.erofs.1 has all findings"
	fi
	is "$(grep -nE '@[A-Z]+@|^\.\\" FINDINGS' "$page")" "" "$tool.erofs.1 has nothing that was to be filled in"
	if command -v man >/dev/null; then
		is "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
			2>&1 >/dev/null)" "" "man --warnings is silent about $tool.erofs.1"
	else
		skip "man --warnings" "no man"
	fi
done
done_testing
