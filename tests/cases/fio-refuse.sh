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
images="plain readonly big bare swap parts hidden"

host() {
	local before after i
	need_tool sfdisk fdisk
	need_tool mkfs.ext4 e2fsprogs
	fio_host
	for i in $images; do truncate -s 32M "$share/$i"; done
	mkfs.ext4 -q -F "$share/plain"
	mkfs.ext4 -q -F "$share/hidden"
	mkswap -q "$share/swap"
	echo 'start=2048' | sfdisk -q "$share/parts"
	mkfs.ext4 -q -F -E offset=1048576 "$share/parts" 16M
	truncate -s 32M "$share/held"
	before=$(cd "$share" && for i in $images; do sum "$i"; done)

	fio_guest --disk "raw:$share/plain,discard" --disk "raw:$share/readonly,ro" \
		--disk "raw:$share/big,bs=4096" \
		--disk "raw:$share/bare,prop:discard=off,prop:write-zeroes=off,prop:write-cache=off,prop:config-wce=off" \
		--disk "raw:$share/swap" --disk "raw:$share/parts" \
		--disk "raw:$share/hidden" --disk "raw:$share/held" --disk null:32M \
		-- inside
	after=$(cd "$share" && for i in $images; do sum "$i"; done)
	check F01-F17-F23-nothing-was-written "$after" "$before"
}

nodes() {
	# alone, for fio's exit status
	fio_refused F01-block-node '/dev/vda: .*/dev/vdac0' \
		--filename=/dev/vda --rw=write
	echo data > /tmp/file
	together
	fio_refused F01-partition '/dev/vdf1: .*/dev/vdfc0' \
		--filename=/dev/vdf1 --rw=write
	fio_refused F01-file '/tmp/file: .*/dev/vdXc0' \
		--filename=/tmp/file --rw=write --size=4k
	fio_refused F01-other-char-device '/dev/null: .*/dev/vdXc0' \
		--filename=/dev/null --rw=write --size=4k
	fio_refused F01-missing '/dev/vdzc0: no such node; .*/dev/vdXc0' \
		--filename=/dev/vdzc0 --rw=write --size=4k
	apart
	check "F01-file-kept-$fio" "$(cat /tmp/file)" data
	check "F01-missing-not-created-$fio" "$(ls /dev/vdzc0 2>&-)" ""
}

# Somebody else who uses a disk, until the end of in_use
hold() {
	echo "$BASHPID" > /tmp/holding
	await 120 test -e /tmp/let-go
}

beside() {
	rm -f /tmp/holding
	"$@" bash "$(realpath "$0")" hold &
	await 60 test -s /tmp/holding || fail "F17-hold-$fio" nothing "$*"
}

users() {
	mount -o ro,noload /dev/vda /mnt/a
	mount -o ro,noload /dev/vdf1 /mnt/b
	swapon /dev/vde
	dmsetup create held --table "0 65536 linear /dev/vdh 0"
	rm -f /tmp/let-go
	modprobe -a md_mod raid0
	beside "$top/fio-engine/md-hold" /dev/vdi
	# a mount that only another mount namespace sees: the kernel knows
	# shellcheck disable=SC2016 # the shell's that unshare starts
	beside unshare -m sh -c 'mount -o ro,noload /dev/vdg /mnt/a && exec "$@"' -
}

# A loop device takes no exclusive hold
looped() {
	local loop
	modprobe loop
	loop=$(losetup --find --show /dev/vdf1)
	fio_refused F17-loop "/dev/vdf1 is held by ${loop#/dev/}" \
		--filename=/dev/vdfc0 --rw=write
	losetup --detach "$loop"
}

users_gone() {
	: > /tmp/let-go
	wait
	dmsetup remove held
	dmsetup remove prerun
	swapoff /dev/vde
	umount /mnt/a /mnt/b
}

# iolog NAME ENTRY: /tmp/NAME, which plays the entry on vda
iolog() {
	printf '%s\n' 'fio version 2 iolog' '/dev/vdac0 add' '/dev/vdac0 open' \
		"/dev/vdac0 $2" '/dev/vdac0 close' > "/tmp/$1"
}

in_use() {
	users
	iolog mounted 'write 0 4096'
	together
	fio_refused F17-mounted '/dev/vda is mounted on /mnt/a; allow_mounted' \
		--filename=/dev/vdac0 --rw=write
	fio_refused F17-mounted-trim 'is mounted on /mnt/a' \
		--filename=/dev/vdac0 --rw=trim
	fio_works F17-mounted-read --filename=/dev/vdac0 --rw=read --size=256k
	fio_refused F17-partition-mounted '/dev/vdf1 is mounted on /mnt/b' \
		--filename=/dev/vdfc0 --rw=write
	fio_refused F17-swap '/dev/vde is used as swap' \
		--filename=/dev/vdec0 --rw=write
	fio_refused F17-dm '/dev/vdh is held by dm-0' \
		--filename=/dev/vdhc0 --rw=write
	fio_works F17-allow_mounted_write --filename=/dev/vdhc0 --rw=write \
		--size=256k --allow_mounted_write=1 --buffer_pattern="\"$fio\""
	fio_refused F17-md '/dev/vdi is held by md' --filename=/dev/vdic0 --rw=write
	fio_refused F17-hidden-mount 'has exclusive use of /dev/vdg' \
		--filename=/dev/vdgc0 --rw=write
	# these say so when fio opens the node, after all that is said of set-ups
	fio_refused F17-iolog '/dev/vda is mounted on /mnt/a' \
		--read_iolog=/tmp/mounted
	fio_refused F17-held-since-the-set-up '/dev/vdc is held by dm' \
		--filename=/dev/vdcc0 --rw=write --size=64k \
		--exec_prerun='dmsetup create prerun --table "0 65536 linear /dev/vdc 0"'
	apart
	check "F17-allow_mounted_write-in-the-image-$fio" \
		"$(head -c "${#fio}" "$VM_SCRATCH/held")" "$fio"
	check "F17-md-tool-says-$fio" "$("$top/build/t/io_uring-vblk" -u1 -p0 -W \
		--ios 1 /dev/vdic0 2>&1 | grep -c 'in use: used by md')" 1
	users_gone
	looped
}

wrote() { read -r _ _ n _ < /sys/class/vblk-generic/vdic0/stat; [ "$n" -gt "$1" ]; }

# Somebody comes while fio writes, and is seen when the next loop opens the node.
between_loops() {
	local n
	wrote 0
	{
		await 60 wrote "$n"
		await 60 dmsetup create late --table "0 65536 linear /dev/vdi 0"
	} &
	fio_refused F17-held-between-loops '(use of /dev/vdi|/dev/vdi is held)' \
		--filename=/dev/vdic0 --rw=write --size=64k --loops=1000000
	wait
	dmsetup remove late
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
	fio_refused F23-rw-N 'rw=..:N=700 is not a multiple .* 512 bytes' \
		--filename=$small --rw=write:700 --bs=512 --size=64k
	fio_refused F23-rw-minus-N 'rw=..:N=-700 is not' \
		--filename=$small --rw=write:-700 --bs=512 --size=64k
	fio_refused F23-zonesize 'zonesize=1500 is not' --filename=$small \
		--rw=write --bs=512 --zonemode=strided --zonesize=1500 --size=64k
	fio_refused F23-zonerange 'zonerange=1500 is not' --filename=$small \
		--rw=write --bs=512 --zonemode=strided --zonesize=1k \
		--zonerange=1500 --size=64k
	fio_refused F23-zoneskip 'zoneskip=700 is not' --filename=$small \
		--rw=write --bs=512 --zonemode=strided --zonesize=1k \
		--zoneskip=700 --size=64k
	fio_refused F23-too-large 'bs=2147479552 is more than .*max_bytes' \
		--filename=$small --rw=read --bs=2147479552 --size=100%
}

# An iolog leads to any byte, and says so only while it runs.
iologs() {
	local pattern='not whole logical blocks'
	iolog whole 'read 512 1024'
	iolog offset 'write 700 512'
	iolog length 'write 512 700'
	iolog trim 'trim 700 512'
	together
	fio_works F23-iolog --read_iolog=/tmp/whole
	fio_refused F23-iolog-offset "$pattern" --read_iolog=/tmp/offset
	fio_refused F23-iolog-length "$pattern" --read_iolog=/tmp/length
	if modern; then
		fio_refused F23-iolog-trim "$pattern" --read_iolog=/tmp/trim
	else
		skip "F23-iolog-trim-$fio" "this fio's iologs have no trims"
	fi
	apart
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
	fio_works read-only-disk-read --filename=/dev/vdbc0 --rw=read --size=256k
}

options() {
	local o
	for o in uncached=1 nowait=1 sync=1 sync_file_range=write:4 \
		write_hint=short; do
		fio_refused "F24-${o%%=*}" "${o%%=*}=.*: " \
			--filename=/dev/vdac0 --rw=write "--$o"
	done
	newer F24-nvme-only "fdp= and its like" || return
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
		--filename=/dev/vdac0 --rw=randtrim --num_range=256 --bs=512
}

# Without rights and with 64 KiB to lock: a node it may open, and one it may not
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
		together
		fio_refused U01-no-permission '/dev/vdcc0: cannot open: Permis' \
			--filename=/dev/vdcc0 --rw=randread
		# said when it starts, after all that is said of set-ups
		fio_refused F20-memlock 'RLIMIT_MEMLOCK.* is 64 KiB' \
			--filename=/dev/vdac0 --rw=randread --fixedbufs=1 \
			--iodepth=32 --bs=4k
		fio_works F20-without-fixedbufs --filename=/dev/vdac0 \
			--rw=randread --iodepth=32 --bs=4k --size=256k
		apart
		exit "$failed"
	) || failed=1
	chmod 600 /dev/vdac0
}

# What needs nothing but the disks
alone() {
	mv /dev/vdi /dev/unseen
	together
	fio_refused F17-cannot-tell 'cannot tell .* \(/dev/vdi: No such file' \
		--filename=/dev/vdic0 --rw=write --size=64k
	sizes
	features
	options
	fio_works F17-jobs-that-ask-at-once --filename=/dev/vdhc0 --rw=write \
		--offset=1M --size=64k --numjobs=8 --loops=4 --group_reporting=1
	apart
	mv /dev/unseen /dev/vdi
}

inside() {
	mkdir -p /mnt/a /mnt/b
	each_fio nodes in_use between_loops alone iologs as_nobody
}

case_main "$@"
