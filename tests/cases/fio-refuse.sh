#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What fio must refuse by name before it writes anything, and that it did not
# write: the images are compared.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

# in the order in which they become vda, vdb, ...
images="plain readonly big bare swap parts"

host() {
	local before after i
	need_tool sfdisk fdisk
	need_tool mkfs.ext4 e2fsprogs
	fio_host
	for i in $images; do truncate -s 32M "$share/$i"; done
	mkfs.ext4 -q -F "$share/plain"
	mkswap -q "$share/swap"
	echo 'start=2048' | sfdisk -q "$share/parts"
	mkfs.ext4 -q -F -E offset=1048576 "$share/parts" 16M
	before=$(cd "$share" && for i in $images; do sum "$i"; done)

	fio_guest --disk "raw:$share/plain,discard" --disk "raw:$share/readonly,ro" \
		--disk "raw:$share/big,bs=4096" \
		--disk "raw:$share/bare,prop:discard=off,prop:write-zeroes=off,prop:write-cache=off,prop:config-wce=off" \
		--disk "raw:$share/swap" --disk "raw:$share/parts" \
		--disk null:32M -- inside
	after=$(cd "$share" && for i in $images; do sum "$i"; done)
	check F01-F17-F23-nothing-was-written "$after" "$before"
}

nodes() {
	fio_refused F01-block-node '/dev/vda: .*/dev/vdac0' \
		--filename=/dev/vda --rw=write
	fio_refused F01-partition '/dev/vdf1: .*/dev/vdfc0' \
		--filename=/dev/vdf1 --rw=write
	echo data > /tmp/file
	fio_refused F01-file '/tmp/file: .*/dev/vdXc0' \
		--filename=/tmp/file --rw=write --size=4k
	check "F01-file-kept-$fio" "$(cat /tmp/file)" data
	fio_refused F01-other-char-device '/dev/null: .*/dev/vdXc0' \
		--filename=/dev/null --rw=write --size=4k
	fio_refused F01-missing '/dev/vdzc0: no such node; .*/dev/vdXc0' \
		--filename=/dev/vdzc0 --rw=write --size=4k
	check "F01-missing-not-created-$fio" "$(ls /dev/vdzc0 2>&-)" ""
}

in_use() {
	mount -o ro,noload /dev/vda /mnt/a
	fio_refused F17-mounted '/dev/vda is mounted on /mnt/a; allow_mounted' \
		--filename=/dev/vdac0 --rw=write
	fio_refused F17-mounted-trim 'is mounted on /mnt/a' \
		--filename=/dev/vdac0 --rw=trim
	fio_works F17-mounted-read --filename=/dev/vdac0 --rw=read --size=1M
	umount /mnt/a

	mount -o ro,noload /dev/vdf1 /mnt/a
	fio_refused F17-partition-mounted '/dev/vdf1 is mounted on /mnt/a' \
		--filename=/dev/vdfc0 --rw=write
	umount /mnt/a

	swapon /dev/vde
	fio_refused F17-swap '/dev/vde is used as swap' \
		--filename=/dev/vdec0 --rw=write
	swapoff /dev/vde

	dmsetup create held --table "0 65536 linear /dev/vdg 0"
	fio_refused F17-dm '/dev/vdg is held by dm-0' \
		--filename=/dev/vdgc0 --rw=write
	fio_works F17-allow_mounted_write --filename=/dev/vdgc0 --rw=write \
		--size=1M --allow_mounted_write=1
	dmsetup remove held

	modprobe -a md_mod raid0
	"$top/fio-engine/md-hold" /dev/vdg bash "$(realpath "$0")" in_md "$fio"

	# a mount that only another mount namespace sees: the kernel knows
	mount -o ro,noload /dev/vda /mnt/a
	unshare -m sh -c 'umount /mnt/a && exec "$@"' - \
		bash "$(realpath "$0")" in_hidden_mount "$fio"
	umount /mnt/a
}

in_md() { FIOS=$1 each_fio -- md; }
md() {
	fio_refused F17-md '/dev/vdg is held by md' --filename=/dev/vdgc0 --rw=write
	check "F17-md-tool-says-$fio" "$("$top/build/t/io_uring-vblk" -u1 -p0 -W \
		--ios 1 /dev/vdgc0 2>&1 | grep -c 'in use: used by md')" 1
}

in_hidden_mount() {
	FIOS=$1 each_fio -- hidden_mount
}

hidden_mount() {
	fio_refused F17-hidden-mount 'has exclusive use of /dev/vda' \
		--filename=/dev/vdac0 --rw=write
}

# bs ... against a logical block size of 512 (vda) and 4096 (vdc)
sizes() {
	local small=/dev/vdac0 big=/dev/vdcc0
	fio_works F23-512 --filename=$small --rw=read --bs=512 --size=64k
	fio_works F23-3k --filename=$small --rw=randread --bs=3k --size=96k
	fio_works F23-range --filename=$small --rw=randread --size=256k \
		--bsrange=1k-16k
	fio_refused F23-700 'bs=700 is not a multiple .* 512 bytes' \
		--filename=$small --rw=read --bs=700 --size=64k
	fio_refused F23-unaligned 'bs_unaligned' --filename=$small --rw=randread \
		--bsrange=1k-16k --bs_unaligned=1 --size=64k
	fio_works F23-4k-on-4096 --filename=$big --rw=read --bs=4k --size=64k
	fio_works F23-12k-on-4096 --filename=$big --rw=randread --bs=12k \
		--size=96k
	fio_refused F23-512-on-4096 'bs=512 is not a multiple .* 4096 bytes' \
		--filename=$big --rw=write --bs=512 --size=64k
	fio_refused F23-3k-on-4096 'bs=3072 is not a multiple' \
		--filename=$big --rw=write --bs=3k --size=64k
	fio_refused F23-bssplit-on-4096 'bssplit has 6144' --filename=$big \
		--rw=randread --bssplit=4k/50:6k/40:8k/10 --size=64k
	fio_refused F23-blockalign-on-4096 'blockalign=512' --filename=$big \
		--rw=randread --bs=4k --blockalign=512 --size=64k
	fio_refused F23-offset-on-4096 'offset=512' --filename=$big \
		--rw=read --bs=4k --offset=512 --size=64k
	fio_refused F23-too-large 'bs=2147479552 is more than .*max_bytes' \
		--filename=$small --rw=read --bs=2147479552 --size=100%
}

features() {
	fio_refused F19-hipri 'poll_queues=N' --filename=/dev/vdac0 --rw=read \
		--hipri=1
	fio_refused F06-no-discard 'VIRTIO_BLK_F_DISCARD' --filename=/dev/vddc0 \
		--rw=randtrim
	fio_refused F07-no-flush 'VIRTIO_BLK_F_FLUSH' --filename=/dev/vddc0 \
		--rw=write --fsync=8
	fio_refused F07-no-flush-end 'VIRTIO_BLK_F_FLUSH' --filename=/dev/vddc0 \
		--rw=write --end_fsync=1
	fio_refused read-only-disk 'the disk is read-only' \
		--filename=/dev/vdbc0 --rw=randrw
	fio_works read-only-disk-read --filename=/dev/vdbc0 --rw=read --size=1M
}

options() {
	local o
	for o in uncached=1 nowait=1 sync=1 sync_file_range=write:4 \
		write_hint=short; do
		fio_refused "F24-${o%%=*}" "${o%%=*}=.*: " \
			--filename=/dev/vdac0 --rw=write "--$o"
	done
	modern || return
	for o in fdp=1 md_per_io_size=64 pi_act=1 pi_act=0 pi_chk=GUARD \
		apptag=1 apptag_mask=1; do
		fio_refused "F24-$o" "${o%=*}=.*cmd_type=nvme only" \
			--filename=/dev/vdac0 --rw=read "--$o"
	done
	fio_refused F24-writefua 'writefua=1: virtio-blk has no FUA' \
		--filename=/dev/vdac0 --rw=write --writefua=1
	fio_refused F24-write_mode 'write_mode=uncor' \
		--filename=/dev/vdac0 --rw=write --write_mode=uncor
	fio_refused F24-verify_mode 'verify_mode=compare' --filename=/dev/vdac0 \
		--rw=write --verify=pattern --verify_pattern=1 \
		--verify_mode=compare
	fio_refused F24-deac 'deac=1 needs write_mode=zeroes' \
		--filename=/dev/vdac0 --rw=write --deac=1
	fio_refused F06-no-write-zeroes 'VIRTIO_BLK_F_WRITE_ZEROES' \
		--filename=/dev/vddc0 --rw=write --write_mode=zeroes
	fio_refused F06-too-many-ranges 'num_range=.*max_discard_seg' \
		--filename=/dev/vdac0 --rw=randtrim --num_range=60000 --bs=512
}

as_nobody() {
	local unprivileged=(setpriv --reuid=65534 --regid=65534 --clear-groups
		--inh-caps=-all --bounding-set=-all)
	chmod 666 /dev/vdac0
	rm -f "$fio_log"
	open_build
	(
		ulimit -l 64
		engine=${engine/"$top"/\/run}
		fio_cmd=("${unprivileged[@]}" "${fio_cmd[@]/#"$top"/\/run}")
		fio_refused F20-memlock 'RLIMIT_MEMLOCK.* is 64 KiB' \
			--filename=/dev/vdac0 --rw=randread --fixedbufs=1 \
			--iodepth=32 --bs=4k
		fio_works F20-without-fixedbufs --filename=/dev/vdac0 \
			--rw=randread --iodepth=32 --bs=4k --size=1M
		chmod 600 /dev/vdac0
		fio_refused U01-no-permission '/dev/vdac0: cannot open: Permis' \
			--filename=/dev/vdac0 --rw=randread
	)
}

inside() {
	mkdir -p /mnt/a
	each_fio nodes -- in_use sizes features options as_nobody
}

case_main "$@"
