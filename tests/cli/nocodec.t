#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A build without a codec names it when an image needs it, and exits with 8. tests/matrix makes such
# builds; in a build that has all codecs there is nothing to see here.

. "$(dirname "$0")/../lib/tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
fsck=${FSCK:-$top/build/fsck/fsck.erofs}
corpus=${CORPUS:-$top/../shared/corpus}

test -x "$fsck" || skip_all "fsck.erofs not found (set FSCK)"
built=$("$fsck" -V | sed -n 's/^available decompressors: *//p' | tr ',' ' ')

for codec in lz4 lzma deflate zstd; do
	name="an image that needs $codec is refused by name"
	image=$corpus/good/data-$codec.erofs
	if [ $codec = lz4 ] && [ ! -e "$image" ]; then image=$top/tests/data/sample.erofs; fi
	case " $built " in
	*" $codec "*) skip "$name" "this build has $codec"; continue ;;
	esac
	if [ ! -e "$image" ]; then skip "$name" "no $image"; continue; fi
	status_is 8 "$name: status" "$fsck" --extract "$image"
	case $tap_err in
	*"$codec"*) ok "$name: message" ;;
	*) not_ok "$name: message"; echo "$tap_err" | sed 's/^/# /' ;;
	esac
done
done_testing
