#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# virtblk_uring.ko beside the in-tree driver, as module and built in: it takes a
# disk that is handed to it and no other, under names of its own; virtblk-move,
# the udev links and the udev recipe.
#~ also 6.1
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

tool=$top/build/t/io_uring-vblk
drivers=/sys/bus/virtio/drivers
move() { bash "$top/packaging/virtblk-move" "$@"; }
device() { basename "$(readlink -f "/sys/block/$1/device")"; }
disks() { local d; for d in /sys/block/v*; do basename "$d"; done | paste -sd' '; }
by_hand() { echo "$2" >"$drivers/$1"; }
sum() { dd if="$1" iflag=direct bs=64k status=none | sha256sum; }
passthrough() { "$tool" -b4096 -d1 -s1 -c1 -p0 -u1 --ios 8 "$1"; }

# A disk without a driver stays without one, however the bus is probed.
never_by_itself()
{
	local dev
	dev=$(device vdb)
	check loads-and-takes-nothing "$(disks)" "vda vdb"
	check no-alias "$(modinfo -F alias "$BESIDE")" ""
	by_hand virtio_blk/unbind "$dev"
	check free-disk-is-not-taken "$(disks)" "vda"
	rmmod virtblk_uring
	insmod "$BESIDE"
	check nor-at-load "$(disks)" "vda"
	echo "$dev" >/sys/bus/virtio/drivers_probe
	check probed-goes-in-tree "$(disks)" "vda vdb"
	refused bound-disk-is-busy by_hand virtblk_uring/bind "$dev"
	refused unknown-device by_hand virtblk_uring/bind virtio99
	refused other-device by_hand virtblk_uring/bind "$(other_device)"
	refused unbind-of-others by_hand virtblk_uring/unbind "$dev"
}

# A virtio device that is no disk
other_device() { local d; for d in /sys/bus/virtio/devices/*; do [ "$(cat "$d/device")" = 0x0002 ] || { basename "$d"; return; }; done; }

handed_over()
{
	local dev
	dev=$(device vdb)
	by_hand virtio_blk/unbind "$dev"
	works U07-bind-by-hand by_hand virtblk_uring/bind "$dev"
	check U07-names "$(disks) $(ls /sys/class/vblk-uring)" "vda vua vuac0"
	check majors-apart "$(cut -d: -f1 /sys/block/vda/dev /sys/block/vua/dev | sort -u | wc -l)" 2
	check data-block "$(sum /dev/vua)" "$(sum "$VM_SCRATCH/data")"
	works U07-data-passthrough passthrough /dev/vuac0
	check counted "$(cut -d' ' -f1 /sys/class/vblk-uring/vuac0/stat)" 8
	works unbind-by-hand by_hand virtblk_uring/unbind "$dev"
	check both-gone "$(ls /dev/vua /dev/vuac0 2>/dev/null)" ""
	by_hand virtio_blk/bind "$dev"
	check U07-back-in-tree "$(disks)" "vda vdb"
}

prefixes()
{
	local p dev
	dev=$(device vdb)
	rmmod virtblk_uring
	for p in vdx xvd Vu v vu1 toolongaprefix; do
		refused "prefix-'$p'" insmod "$BESIDE" "prefix=$p"
	done
	works prefix-of-choice insmod "$BESIDE" prefix=fast
	by_hand virtio_blk/unbind "$dev"
	by_hand virtblk_uring/bind "$dev"
	check prefix-names "$(ls /dev/fasta /dev/fastac0 2>&1)" $'/dev/fasta\n/dev/fastac0'
	rmmod virtblk_uring
	by_hand virtio_blk/bind "$dev"
	insmod "$BESIDE"
}

moved()
{
	local out
	check move-list "$(move --list | awk '{ print $2, $3, $4 }' | paste -sd,)" "virtio_blk vda ,virtio_blk vdb "
	check move-says "$(move /dev/vdb)" "/dev/vdb is now /dev/vua, passthrough node /dev/vuac0"
	works move-again-is-fine move vua
	check move-data "$(sum /dev/vua)" "$(sum "$VM_SCRATCH/data")"
	check move-back-says "$(move --back vua)" "/dev/vua is now /dev/vdb${IN_TREE_NODE:-}"

	mkfs.ext4 -q /dev/vda && mkdir -p /run/mnt && mount /dev/vda /run/mnt
	out=$(move vda 2>&1)
	check mounted-refused "$? $out" "1 virtblk-move: /dev/vda stays with virtio_blk: /dev/vda is mounted on /run/mnt"
	umount /run/mnt
	exec 9</dev/vdb
	works open-refused grep -q 'has it open' <<<"$(move vdb 2>&1)"
	exec 9<&-
	works no-such-disk grep -q 'there is no disk vdz' <<<"$(move vdz 2>&1)"
	works no-module-says-so grep -q "can't be loaded" <<<"$(rmmod virtblk_uring; move vdb 2>&1)"
	check and-leaves-it "$(disks)" "vda vdb"
	insmod "$BESIDE"
}

inside()
{
	insmod "$BESIDE" || { fail loads "an error" "success"; return 1; }
	never_by_itself
	handed_over
	prefixes
	moved
}

# What is built in isn't replaced: both say so, and the disks stay.
inside_builtin()
{
	works insmod-refused grep -q 'Invalid parameters' <<<"$(insmod "$REPLACE" 2>&1)"
	works and-the-log-says-why grep -q 'virtio_blk: module is already loaded' <<<"$(dmesg)"
	works modprobe-refused grep -q 'FATAL: Module virtio_blk is builtin' <<<"$(modprobe -r virtio_blk 2>&1)"
	check disks-stay "$(disks) $(sum /dev/vdb)" "vda vdb $(sum "$VM_SCRATCH/data")"
	inside
}

# A diskseq is a new one by its meaning.
links() { (cd /dev/disk && find . -lname "*/$1*" ! -lname '*c0' | sed 's,by-diskseq/[0-9]*,by-diskseq/N,' | sort); }

# A disk with a partition and a file system keeps its links; the recipe moves it.
linked()
{
	local link
	insmod "$BESIDE"
	mkdir -p /run/udev/rules.d
	cp "$top/packaging/60-virtio-blk-uring.rules" /run/udev/rules.d/
	udevadm control --reload
	echo 'size=8M' | sfdisk -q /dev/vdb && udevadm settle && mkfs.ext4 -q -U 6f7c3a52-0f0e-4c3b-9d2f-3a5d8a0c1b11 /dev/vdb1
	udevadm settle
	links vdb >/run/before
	works links-move move vdb
	udevadm settle
	links vua >/run/after
	# by-path/virtio-pci-… is udev's deprecated second name for vd* only.
	check links-all-there "$(grep -v 'by-path/virtio-' /run/before | comm -23 - /run/after)" ""
	check link-of-node "$(readlink -f /dev/disk/by-id/virtio-data-1-c0)" /dev/vuac0
	check link-of-node-by-path "$(cd /dev/disk/by-path && find . -lname '*/vuac0')" "$(cd /dev/disk/by-path && find . -lname '*/vua')-c0"
	check node-mode "$(stat -c '%U:%G %a' /dev/vuac0)" "$(stat -c '%U:%G %a' /dev/vua || echo no disk)"
	works links-back move --back vua
	udevadm settle
	link=$(readlink -f /dev/disk/by-uuid/6f7c3a52-0f0e-4c3b-9d2f-3a5d8a0c1b11)
	check links-back-again "$link" /dev/vdb1

	sed -n "s,^#\(.*serial.*\)/usr/sbin/virtblk-move,\1$top/packaging/virtblk-move,p" \
		"$top/packaging/61-virtblk-move.rules" >/run/udev/rules.d/61-virtblk-move.rules
	udevadm control --reload
	echo add >/sys/block/vdb/uevent
	await 20 test -e /dev/disk/by-id/virtio-data-1-c0
	udevadm settle
	check recipe-moves "$(disks)" "vda vua"
}

host()
{
	local kernel=${KERNEL:-6.12} rel
	make -s -C "$top" tool >/dev/null || exit 1
	rel=$(kernel_release "$top/build" virtblk_uring.ko)
	mkdir -p "$work/share"
	head -c 4M /dev/urandom >"$work/share/data"
	cp "$work/share/data" "$work/disk"
	DRIVER=stock guest --env "BESIDE=$top/build/$rel/virtblk_uring.ko" \
		--disk "raw:$(tmpimg first 16M)" --disk "raw:$work/disk" -- inside
	DRIVER=stock guest --udev --env "BESIDE=$top/build/$rel/virtblk_uring.ko" \
		--disk null:64M --disk "raw:$(tmpimg links 64M),serial=data-1" -- linked
	[[ $kernel == 6.12* ]] || return
	if [ ! -e "$top/build/builtin/vmlinux" ]; then
		skip builtin "no kernel with the driver built in: make debug-kernel KIND=builtin"
	elif ! make -s -C "$top" module KVER=builtin >"$work/log" 2>&1; then
		fail builtin-module "$(tail -n 3 "$work/log")" "a module for it"
	else
		KERNEL=builtin DRIVER=none guest --env "BESIDE=$top/build/builtin/virtblk_uring.ko" \
			--env "REPLACE=$top/build/builtin/virtio_blk.ko" --disk "raw:$work/first" --disk "raw:$work/disk" -- inside_builtin
	fi
}

case_main "$@"
