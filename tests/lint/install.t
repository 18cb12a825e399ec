#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# cli.md 14: where things are installed, with links in sbin and in section 8.

. "$(dirname "$0")/../lib/tap.sh"
build=${top_builddir:-.}
test -e "$build/Makefile" || skip_all "no Makefile in $build (set top_builddir)"
test -x "$build/dump/dump.erofs" || skip_all "the tools are not built"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status_is 0 "make install" env -u MAKEFLAGS -u MAKELEVEL -u T make -s -C "$build" install DESTDIR="$work" \
	prefix=/p exec_prefix=/p bindir=/p/bin sbindir=/p/sbin datarootdir=/p/share mandir=/p/share/man
cd "$work/p" || exit 1
for name in bin/fsck.erofs bin/dump.erofs bin/mkfs.erofs \
	share/man/man1/fsck.erofs.1 share/man/man1/dump.erofs.1 share/man/man1/mkfs.erofs.1 \
	share/bash-completion/completions/fsck.erofs share/bash-completion/completions/dump.erofs \
	share/bash-completion/completions/mkfs.erofs share/zsh/site-functions/_erofs \
	share/fish/vendor_completions.d/fsck.erofs.fish share/fish/vendor_completions.d/dump.erofs.fish \
	share/fish/vendor_completions.d/mkfs.erofs.fish; do
	is "$(test -f "$name" && test -s "$name" && echo there)" there "$name"
done
for tool in fsck mkfs; do
	is "$(readlink sbin/$tool.erofs)" ../bin/$tool.erofs "sbin/$tool.erofs is a link"
	is "$(readlink share/man/man8/$tool.erofs.8)" ../man1/$tool.erofs.1 "$tool.erofs.8 is a link"
done
cd / || exit 1
status_is 0 "make uninstall" env -u MAKEFLAGS -u MAKELEVEL -u T make -s -C "$build" uninstall DESTDIR="$work" \
	prefix=/p exec_prefix=/p bindir=/p/bin sbindir=/p/sbin datarootdir=/p/share mandir=/p/share/man
is "$(find "$work/p" ! -type d)" "" "make uninstall leaves nothing"
done_testing
