#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes configure and the Makefile template from a clone. Release tarballs have them already.

set -eu
cd "$(dirname "$0")"

missing=
for tool in autoconf automake aclocal pkg-config; do
	command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
command -v libtoolize >/dev/null 2>&1 || command -v glibtoolize >/dev/null 2>&1 ||
	missing="$missing libtool"
if [ -n "$missing" ]; then
	echo "autogen.sh: not here:$missing" >&2
	echo "autogen.sh: ./quickstart installs what is needed, or prints the command for it" >&2
	exit 1
fi

mkdir -p build-aux
autoreconf --install --force --warnings=all,no-portability "$@"
echo "Now run ./configure && make (or, out of tree: mkdir build && cd build && ../configure && make)."
