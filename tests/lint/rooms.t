#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A room includes only rooms before it, the disk layout stays with those that decode it, and tools
# see public headers and lib/cli/ alone (style.md, "The tree").

. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.." || exit 1

# What a file of the room may include from other rooms. codec needs base alone, so meta and map, which
# check what images say of codecs, come after it.
allowed()
{
	case $1 in
	base) echo base ;;
	diag) echo base diag ;;
	image) echo base diag image ;;
	disk) echo base disk ;;
	meta) echo base diag image disk codec meta ;;
	map) echo base diag image disk codec meta map ;;
	codec) echo base codec ;;
	engine) echo base diag image meta map codec engine ;;
	sink) echo base diag image meta map codec engine sink ;;
	walk) echo base diag image meta map codec engine sink walk ;;
	check) echo base diag image meta map codec engine sink walk check ;;
	extract) echo base diag image meta map codec engine sink walk extract ;;
	archive) echo base diag image meta map codec engine sink walk archive ;;
	verify) echo base diag image meta map codec engine sink walk verify ;;
	write) echo base diag disk image meta map codec engine sink walk archive verify write ;;
	cli) echo base cli ;;
	fsck | dump | mkfs) echo cli ;;
	*) ;;
	esac
}

# FILE ROOM: lines "FILE includes X"
strangers()
{
	sed -n 's/^[ 	]*#[ 	]*include[ 	]*"\([^"]*\)".*/\1/p' "$1" | while read -r name; do
		case $name in
		config.h) continue ;;
		*/*) from=${name%%/*} ;;
		*) from=$2; test -e "${1%/*}/$name" || from="nowhere" ;;
		esac
		test "$from" = "$2" && continue
		case " $(allowed "$2") " in
		*" $from "*) ;;
		*) echo "$1 includes \"$name\"" ;;
		esac
	done
}

for room in lib/* fsck dump mkfs; do
	files=$(find "$room" -name '*.[ch]' 2>/dev/null)
	test -n "$files" || continue
	found=$(for file in $files; do strangers "$file" "${room##*/}"; done)
	is "$found" "" "$room includes only rooms before it"
	test -n "$(allowed "${room##*/}")" || not_ok "$room is a room known to this test"
done

is "$(grep -lE '#[ 	]*include' include/erofs/*.h | xargs grep -nE '#[ 	]*include[ 	]*"' )" "" \
	"public headers include no private ones"
is "$(grep -rnE '^[ 	]*#[ 	]*(if|elif|ifdef|ifndef).*HAVE_' lib --include='*.[ch]' |
	grep -vE '^lib/(codec/codec\.c|image/|base/)')" "" \
	"#if HAVE_ stands in codec/codec.c, image/ and base/ only"
is "$(ls lib/*/*.c | sed 's,.*/,,' | sort | uniq -d)" "" "file names are unique among lib/*/*.c"
done_testing
