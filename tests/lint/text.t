#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a reader of the tree must not stumble over: absolute paths of one machine, work left undone,
# blanks at line ends, lines and functions that are too long.

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1

files=$(./.ci/dist-files 2>/dev/null | grep -vE '\.(erofs|sha256)$|^LICENSES/|^tests/fuzz/(seeds|crashes)/')
test -n "$files" || skip_all "neither a git clone with files nor a release tarball"
existing=$(for file in $files; do test -f "$file" && echo "$file"; done)
sources=$(echo "$existing" | grep '\.[ch]$')

# The patterns are written so that this file does not match itself.
is "$(grep -nIE '(^|[^A-Za-z0-9_.])/(wor[k]|tmp/[w]|roo[t]|hom[e])/' $existing)" "" \
	"no absolute path of a machine"
is "$(grep -nIE '\b(TOD[O]|FIXM[E]|XX[X])\b' $existing)" "" "nothing is marked as left to do"
is "$(grep -nIE '[ 	]+$' $existing | cut -c1-120)" "" "no blanks at line ends"
is "$(for file in $existing; do
	test -s "$file" && test -n "$(tail -c 1 "$file")" && echo "$file"; done)" "" \
	"every file ends with a newline"

if [ -n "$sources" ]; then
	# 100 columns is the aim of those who write; what is much wider does not fit beside anything.
	wide=$(for file in $sources; do expand "$file" |
		awk -v f="$file" 'length > 100 { print f ":" NR ": " length " columns" }'; done)
	test -z "$wide" || echo "# $(echo "$wide" | wc -l) lines are wider than 100 columns"
	is "$(echo "$wide" | awk '$2 > 120')" "" "no source line is wider than 120 columns"
	for file in $(wc -l $sources | awk '$2 != "total" && $1 > 500 { print $2 ":" $1 }'); do
		echo "# ${file%:*} has ${file#*:} lines: is there a wall to draw?"
	done
	# A function longer than 80 lines needs a comment above it; 120 is the end.
	is "$(awk '
	FNR == 1 { above = ""; start = 0 }
	/^{/ && !start { start = FNR; comment = above }
	/^}/ && start {
		lines = FNR - start + 1
		if (lines > 120)
			print FILENAME ":" start ": " lines " lines"
		else if (lines > 80 && comment !~ /\*\//)
			print FILENAME ":" start ": " lines " lines without a comment above that says why"
		start = 0
	}
	# above: the lines since the last empty one
	{ above = $0 == "" ? "" : above "\n" $0 }' $sources)" "" "functions are short, or say why not"
fi
done_testing
