#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the built library shows: exactly the functions marked EROFS_API, names of one form, nothing
# that changes outside handles.

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1
build=${top_builddir:-.}
archive=$build/lib/.libs/libprivate.a
shared=$build/lib/.libs/liberofs.so
tab=$(printf '\t')

marked=$(grep -hv '^#' include/erofs/*.h | tr '\n\t' '  ' | sed 's,/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/, ,g' |
	grep -oE 'EROFS_API [^(;]*\(' | grep -oE '[a-z0-9_]+ *\($' | tr -d ' (' | LC_ALL=C sort)
mapped=$(sed -n '/^global:/,/^local:/s/^[ '"$tab"']*\([a-z0-9_]*\);.*/\1/p' lib/liberofs.map | LC_ALL=C sort)
is "$mapped" "$marked" "lib/liberofs.map lists what the headers mark with EROFS_API"

if ! command -v nm >/dev/null; then
	skip "symbols of the built library" "no nm"
elif [ -n "${INSTRUMENTED:-}" ]; then
	skip "symbols of the built library" "the compiler adds its own in this build ($INSTRUMENTED)"
else
	if [ -e "$shared" ]; then
		is "$(nm -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
			LC_ALL=C sort)" "$marked" "the shared library exports these and nothing else"
	else
		skip "the shared library exports these and nothing else" "built without a shared library"
	fi
	if [ -e "$archive" ]; then
		is "$(nm --defined-only "$archive" | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' |
			grep -v '^erofs_' | LC_ALL=C sort -u)" "" "every non-static name begins with erofs_"
		# .data.rel.ro is constant after loading
		is "$(nm -f sysv --defined-only "$archive" | awk -F'|' '{ gsub(/ /, ""); }
			$7 ~ /^\.t?(data|bss)(\.[^r].*)?$/ || $7 == "*COM*" { print $1 " in " $7 }')" "" \
			"nothing that changes is global or static"
	else
		skip "names in the archive" "no libprivate.a in $build (set top_builddir)"
	fi
fi
done_testing
