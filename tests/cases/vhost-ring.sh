#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# /dev/vhost-blk driven by a program that is hypervisor and guest: what it
# promises, with a disk, a file and a disk that holds requests behind it; and
# what it makes of a guest that breaks the rules. SEED=N for another fuzz.
#~ timeout 400
#~ soak
set -u
all_cpus=1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"
# shellcheck source=../vhost/lib.sh
. "$top/tests/vhost/lib.sh"

# null_disk NAME ATTRIBUTE=VALUE…: /dev/NAME of 64 MiB
null_disk()
{
	local dir=/sys/kernel/config/nullb/$1 word
	mkdir "$dir" || return
	shift
	for word in size=64 memory_backed=1 "$@" power=1; do echo "${word#*=}" >"$dir/${word%%=*}" || return; done
}

inside()
{
	vduse_ready
	vhost_ready
	mount -t ext4 /dev/vdb /mnt || { fail mount "an error" "a file system on vdb"; return; }
	truncate -s 64M /mnt/file
	program hostile /mnt/file "${SEED:-1}"
	dev_up held || { fail device "no programmable disk" "one"; return; }
	modprobe null_blk nr_devices=0
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
	null_disk of-4k blocksize=4096 discard=1
	null_disk no-trim discard=0
	await 10 test -b /dev/no-trim
	if [ -z "$SOAK" ]; then
		VBLK_LOG=$log VBLK_CTL="$device_bin/vblk-device --ctl $sock" program ring /dev/vda /mnt/file "/dev/$disk" /dev/of-4k /dev/no-trim
	fi
	dev_down
	umount /mnt
	took	# told in the programs' lines
	works unload rmmod vhost_blk
}

host()
{
	need_tool vdpa iproute2
	need_vhost_blk
	guard_refuses
	mkdir -p "$work/share"
	mkfs.ext4 -q "$(tmpimg fs 192M)"
	guest "${splats[@]}" --timeout $((360 + ${SOAK:-0} * 60)) --env "VHOST_BLK=$VHOST_BLK" --env "VHOST_OPTIONS=${VHOST_OPTIONS:-}" --env "SEED=${SEED:-1}" --append no_timer_check \
		--disk "raw:$(tmpimg disk 64M),discard" --disk "raw:$work/fs,discard" -- inside
}

case_main "$@"
