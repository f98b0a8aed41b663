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
		6.12.3+x-b/vhost_blk.ko t/io_uring-vblk fio/fio-vblk.so; do
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
		/lib/modules/6.12.3+x-b/updates/vhost_blk.ko "$p"/include/linux/vhost_blk.h /lib/udev/rules.d/60-virtio-blk-uring.rules "$p"/sbin/virtblk-move "$p"/bin/io_uring-vblk \
		"$p"/lib/virtio-blk-uring/fio-vblk.so "$p"/include/linux/virtio_blk_uring.h \
		"$p"/include/virtblk_uring_helpers.h $(man_pages "$p") \
		"$p"/share/doc/virtio-blk-uring/examples/{61-virtblk-move.rules,dracut-virtio-blk-uring.conf,virtio-blk-uring.conf} | sort | paste -sd' '
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

# The two commands as README has them, without DESTDIR, in a view of the machine
# whose changes go to memory.
live()
{
	local rel
	mount -t tmpfs over "$1" && mkdir "$1/up" "$1/work" &&
		mount -t overlay -o "lowerdir=/usr,upperdir=$1/up,workdir=$1/work" over /usr || exit 77
	for rel in $(cd "$top/build" && printf '%s\n' *-*/virtblk_uring.ko | sed 's,/.*,,'); do
		[ -e "/lib/modules/$rel" ] && break
	done
	works live-install make -s -C "$top" install
	check live-modprobe-takes-ours "$(modinfo -k "$rel" -F filename virtio_blk)" "/lib/modules/$rel/updates/virtio_blk.ko"
	check live-beside-is-found "$(modinfo -k "$rel" -F filename virtblk_uring)" "/lib/modules/$rel/updates/virtblk_uring.ko"
	check live-no-other-alias "$(modprobe -S "$rel" -R virtio:d00000002v00001AF4)" virtio_blk
	check live-tool "$(io_uring-vblk --version | grep -c "$(cat "$top/VERSION")")" 1
	works live-example-is-built-by-what-was-installed \
		cc -Wall -Werror -o "$1/work/read-block" "$top/examples/read-block.c" -luring
	check live-manual-page "$(MANPATH=/usr/local/share/man man -w virtio_blk_uring 2>&1)" /usr/local/share/man/man4/virtio_blk_uring.4
	works live-uninstall make -s -C "$top" uninstall
	check live-in-tree-again "$(modinfo -k "$rel" -F filename virtio_blk | sed 's,.*/kernel/,,')" drivers/block/virtio_blk.ko
	check live-nothing-left "$(cd "$1/up" && find . \( -name '*virtblk*' -o -name '*virtio?blk*' -o -name '*uring*' -o -name 'fio-vblk*' \) -type f | paste -sd' ')" ""
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
	make -s -C "$top" module tool >"$work/log" 2>&1 || { fail live-build "$(tail -n 2 "$work/log")" "a build"; return; }
	mkdir "$work/over"
	unshare -m "$case_file" live "$work/over" || [ $? != 77 ] || skip live "needs root and an overlay over /usr"
}

case_main "$@"
