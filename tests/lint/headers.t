#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each public header compiles alone, as C99 and as C++, without a warning.

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1

compile()
{
	printf '#include <erofs/%s>\n' "$header" |
		$1 -x "$2" "-std=$3" -pedantic -Wall -Wextra -Werror -fsyntax-only -Iinclude - 2>&1
}

cc=${CC:-cc}
cxx=${CXX:-c++}
has_cxx=
echo 'int x;' | $cxx -x c++ -fsyntax-only - 2>/dev/null && has_cxx=1
for path in include/erofs/*.h; do
	header=${path##*/}
	is "$(compile "$cc" c c99)" "" "erofs/$header alone as C99"
	if [ -n "$has_cxx" ]; then
		is "$(compile "$cxx" c++ c++11)" "" "erofs/$header alone as C++11"
		is "$(compile "$cxx" c++ c++17)" "" "erofs/$header alone as C++17"
	else
		skip "erofs/$header alone as C++" "no C++ compiler"
	fi
done
done_testing
