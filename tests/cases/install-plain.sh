#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make install puts every file where it belongs, below DESTDIR and PREFIX and
# nowhere else; make uninstall takes every one of them away and nothing else.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

mk() { make -C "$top" -s --no-print-directory O="$work/build" DESTDIR="$work/root" "$@" 2>&1; }
files() { (cd "$work/root" && find . -type f | sort | paste -sd' '); }

# A build's results, by name only: what is in them doesn't matter here.
pretend_build()
{
	local f
	for f in 6.6.1-a/virtio_blk.ko 6.6.1-a/virtblk_uring.ko 6.12.3+x-b/virtio_blk.ko 6.12.3+x-b/virtblk_uring.ko \
		t/io_uring-vblk fio/fio-vblk.so; do
		mkdir -p "$work/build/$(dirname "$f")"
		echo "$f" >"$work/build/$f"
	done
}

man_pages() { local f; for f in "$top"/man/*.[1-9]; do echo "$1/share/man/man${f##*.}/${f##*/}"; done; }

wanted()	# PREFIX
{
	local p=$1
	# shellcheck disable=SC2046 # a list of words
	printf '.%s\n' /lib/modules/{6.6.1-a,6.12.3+x-b}/updates/{virtio_blk,virtblk_uring}.ko \
		/lib/udev/rules.d/60-virtio-blk-uring.rules "$p"/sbin/virtblk-move "$p"/bin/io_uring-vblk \
		"$p"/lib/virtio-blk-uring/fio-vblk.so "$p"/include/linux/virtio_blk_uring.h \
		"$p"/include/virtblk_uring_helpers.h $(man_pages "$p") \
		"$p"/share/doc/virtio-blk-uring/examples/{61-virtblk-move.rules,virtio-blk-uring.conf} | sort | paste -sd' '
}

round()	# NAME PREFIX [VARIABLE]
{
	works "$1-install" mk install "${@:3}"
	check "$1-every-file" "$(files)" "$(wanted "$2")"
	check "$1-version" "$("$work/root$2/sbin/virtblk-move" --version)" "virtblk-move $(cat "$top/VERSION")"
	check "$1-recipe-path" "$(grep -o 'RUN.*virtblk-move' "$work/root$2"/share/doc/virtio-blk-uring/examples/61-virtblk-move.rules | sort -u)" \
		"RUN+=\"$2/sbin/virtblk-move"
	check "$1-module-is-its-own" "$(cat "$work/root/lib/modules/6.12.3+x-b/updates/virtblk_uring.ko")" 6.12.3+x-b/virtblk_uring.ko
	mkdir -p "$work/root$2/lib/virtio-blk-uring"
	echo else >"$work/root/lib/modules/6.6.1-a/updates/other.ko"
	echo else >"$work/root$2/lib/virtio-blk-uring/other"
	works "$1-uninstall" mk uninstall "${@:3}"
	check "$1-only-foreign-files-left" "$(files)" \
		"$(printf '.%s\n' /lib/modules/6.6.1-a/updates/other.ko "$2/lib/virtio-blk-uring/other" | sort | paste -sd' ')"
	rm -rf "$work/root"
}

host()
{
	local out
	mkdir "$work/build"
	out=$(mk install)
	works nothing-built-says-so grep -q 'Nothing is built yet: run make first' <<<"$out"
	check nothing-built-installs-nothing "$(find "$work/root" -type f 2>/dev/null)" ""
	pretend_build
	round default /usr/local
	round prefix /opt/x PREFIX=/opt/x
}

case_main "$@"
