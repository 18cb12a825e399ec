#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The first line of every file names its licence; a script has it behind the line of its interpreter.

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1

files=$(./.ci/dist-files 2>/dev/null)
test -n "$files" || skip_all "neither a git clone with files nor a release tarball"

library='SPDX-License-Identifier: GPL-2.0-or-later OR MIT'
rest='SPDX-License-Identifier: GPL-2.0-or-later'

# Names of files whose line is wrong. Files that cannot carry a line are listed in COPYING.
wrong=$(echo "$files" | while IFS= read -r file; do
	case $file in
	COPYING | LICENSES/* | *.erofs | *.sha256 | tests/fuzz/seeds/* | tests/fuzz/crashes/*) continue ;;
	lib/* | include/* | liberofs.pc.in) wanted=$library ;;
	*) wanted=$rest ;;
	esac
	test -f "$file" || continue
	head -n 2 "$file" | grep -aq "$wanted\$\|$wanted \*/\$\|$wanted -->\$\|$wanted\",\$" || echo "$file"
done)
is "$wrong" "" "each file begins with its SPDX line"
for licence in GPL-2.0-or-later MIT; do
	is "$(test -s LICENSES/$licence.txt && echo there)" there "the text of $licence is in LICENSES"
done
done_testing
