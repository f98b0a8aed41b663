#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Who may open /dev/vdXc0: the kernel's own node is root's; with the shipped
# rule it has the block node's group and mode, and links by serial and path.
#~ also 6.1
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

mode_of() { stat -L -c '%U:%G %a' "$1"; }

bare() { check U03-root-only-without-rule "$(mode_of /dev/vdac0)" 'root:root 600'; }

# The link by path of a node; not udev's deprecated second one.
path_of() { find /dev/disk/by-path -lname "*/$1" ! -name 'virtio-*' -printf '%f\n'; }

with_rule()
{
	mkdir -p /run/udev/rules.d
	cp "$top/packaging/60-virtio-blk-uring.rules" /run/udev/rules.d/
	udevadm control --reload
	udevadm trigger --action=add --subsystem-match=vblk-generic
	udevadm settle
	check U03-as-the-block-node "$(mode_of /dev/vdac0)" "$(mode_of /dev/vda)"
	check V26-link-by-serial "$(readlink -f /dev/disk/by-id/virtio-scratch-udev-c0)" /dev/vdac0
	check V26-link-by-path "$(path_of vdac0) $(path_of vdbc0)" "$(path_of vda)-c0 $(path_of vdb)-c0"
	check V26-no-link-without-serial "$(find /dev/disk/by-id -lname '*vdbc0' | wc -l)" 0

	# Replugged, the node is made anew and gets the same.
	local dev
	dev=$(basename "$(readlink -f /sys/block/vda/device)")
	echo "$dev" >/sys/bus/virtio/drivers/virtio_blk/unbind
	echo "$dev" >/sys/bus/virtio/drivers/virtio_blk/bind
	udevadm settle
	check U03-after-replug "$(mode_of /dev/vdac0)" "$(mode_of /dev/vda)"
	check V26-links-after-replug "$(readlink -f /dev/disk/by-id/virtio-scratch-udev-c0) $(path_of vdac0)" "/dev/vdac0 $(path_of vda)-c0"

	local -a run=("$top/build/t/io_uring-vblk" -b4096 -d1 -s1 -c1 -p0 -u1 --ios 8 /dev/vdac0)
	works U01-member-of-disk-reads setpriv --reuid 65534 --regid 65534 --groups disk "${run[@]}"
	works U01-others-cannot-open grep -i 'permission denied' <<<"$(
		setpriv --reuid 65534 --regid 65534 --clear-groups "${run[@]}" 2>&1)"
}

host()
{
	make -s -C "$top" tool >/dev/null || exit 1
	guest --disk null:64M -- bare
	guest --udev --disk null:64M,serial=scratch-udev --disk null:64M -- with_rule
}

case_main "$@"
