#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A release tarball is git's content and what autotools make of it, nothing else.

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1
build=${top_builddir:-.}

test -e .git || skip_all "no git clone"
files=$(./.ci/dist-files 2>/dev/null | LC_ALL=C sort)
test -n "$files" || skip_all "git has no files yet"
test -e "$build/Makefile" || skip_all "no Makefile in $build (set top_builddir)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status_is 0 "make distdir" env -u MAKEFLAGS -u MAKELEVEL -u T \
	make -s -C "$build" distdir distdir="$work/dist" am__remove_distdir=:
made=$(cd "$work/dist" && find . ! -type d | sed 's,^\./,,' | LC_ALL=C sort)
printf '%s\n' "$made" >"$work/made"
printf '%s\n' "$files" >"$work/files"
is "$(LC_ALL=C comm -13 "$work/made" "$work/files")" "" "the tarball has every file of git"
is "$(LC_ALL=C comm -23 "$work/made" "$work/files" |
	grep -vE '^(\.dist-files|Makefile\.in|aclocal\.m4|config\.h\.in|configure|build-aux/.*|m4/(libtool|lt.*)\.m4)$')" \
	"" "it has nothing else but what autotools make"
is "$(cd "$work/dist" && ./.ci/dist-files | LC_ALL=C sort)" "$files" "a tarball can make its tarball"
done_testing
