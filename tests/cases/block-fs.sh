#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#~ soak
#
# File systems live on our block side: made, filled, remounted, checked here and
# once more by the host, which knows nothing of our driver. The long form lets
# stress-ng at them, on the in-tree driver as well: the same has to come of it. So do
# other people's tests where they are: $FSSTRESS and $FSX name the programs of xfstests,
# $BLKTESTS the folder of blktests.
set -u
all_cpus=1
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

sums() { (cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2); }

fill()
{
	local i
	mkdir -p "$1/small" "$1/deep/er"
	for i in 1 2 3 4 5 6; do head -c $((i * 17000)) /dev/urandom >"$1/small/$i"; done
	cp "$top"/drivers/block/*.c "$top"/Makefile "$1/deep/er"
	dd if=/dev/urandom of="$1/direct" bs=256k count=8 oflag=direct status=none
	dd if=/dev/urandom of="$1/holes" bs=4k count=3 seek=100 conv=fsync status=none
	fallocate -l 4M "$1/preallocated"
	fallocate -p -o 4096 -l 131072 "$1/direct"
	rm "$1/small/3"
}

one()	# TYPE DEVICE MKFS-OPTIONS…
{
	local type=$1 dev=$2 before name
	shift 2
	name=$type-${dev#/dev/}
	modprobe "$type"
	mkdir -p /mnt/d
	works "$name-make" "mkfs.$type" -q "$@" "$dev"
	mount "$dev" /mnt/d || { fail "$name-mount" "an error" "success"; return; }
	works "$name-fill" fill /mnt/d
	before=$(sums /mnt/d)
	umount /mnt/d
	echo 3 >/proc/sys/vm/drop_caches
	mount "$dev" /mnt/d
	check "$name-remount" "$(sums /mnt/d)" "$before"
	works "$name-trim" fstrim /mnt/d
	check "$name-after-trim" "$(echo 3 >/proc/sys/vm/drop_caches; sums /mnt/d)" "$before"
	umount /mnt/d
	case $type in
	ext4) works "$name-check" e2fsck -fn "$dev" ;;
	xfs) works "$name-check" xfs_repair -n "$dev" ;;
	esac
	echo "$before" >"$VM_SCRATCH/sums-${dev#/dev/}"
}

inside()
{
	one ext4 /dev/vda
	one ext4 /dev/vdb -b 4096
	one xfs /dev/vdc
	one xfs /dev/vdd
}

# What changes files, names and their extents, and looks whether that is so
stressors=(hdd dentry filename rename dir link symlink fallocate fpunch seek copy-file readahead file-ioctl xattr chmod utime)

# stress TYPE DEVICE SECONDS: a line "TYPE STRESSOR STATUS" for each
stress()
{
	local type=$1 dev=$2 each=$3 s
	modprobe "$type"
	mkdir -p /mnt/d
	"mkfs.$type" -q "$dev"
	mount -o discard "$dev" /mnt/d || { echo "$type mount $?"; return; }
	for s in "${stressors[@]}"; do
		# One that hangs is the guest's time-out.
		(cd /mnt/d && exec stress-ng --temp-path . --seed 7 --verify --oomable --timeout "$each" "--$s" 2) >/tmp/stress 2>&1
		echo "$type $s $?"
		grep -E 'stress-ng: (fail|error)' /tmp/stress | head -n 5 >&2
	done
	umount /mnt/d
}

run_fsstress() { mkdir /mnt/d/fsstress && "$FSSTRESS" -d /mnt/d/fsstress -p 4 -n 2000 -s 7; }
run_fsx() { "$FSX" -N 20000 -S 7 -P /tmp /mnt/d/fsx; }

other()	# TYPE PROGRAM: says "TYPE PROGRAM STATUS"
{
	"run_$2" >/tmp/others 2>&1
	echo "$1 $2 $?"
	tail -n 3 /tmp/others >&2
}

# What of xfstests there is, on a file system of TYPE
others()	# TYPE DEVICE MKFS-OPTION
{
	[ -n "$FSSTRESS$FSX" ] || return
	"mkfs.$1" -q "$3" "$2"
	mount "$2" /mnt/d || { echo "$1 mount $?"; return; }
	[ -z "$FSSTRESS" ] || other "$1" fsstress
	[ -z "$FSX" ] || other "$1" fsx
	umount /mnt/d
}

# blktests writes beside itself: its folder is copied. A line for each test, without its time
blktests()
{
	[ -n "$BLKTESTS" ] || return
	cp -r "$BLKTESTS" /tmp/blktests
	echo 'TEST_DEVS=(/dev/vda)' >/tmp/blktests/config
	(cd /tmp/blktests && ./check block) >/tmp/others 2>&1
	echo "blktests check $?"
	sed -n 's/^\(block[^ ]*\).*\[\(.*\)\]$/blktests \1 \2/p' /tmp/others
}

stressed()
{
	local each=$((SOAK * 60 / 2 / 2 / ${#stressors[@]}))
	{
		stress ext4 /dev/vda $((each > 0 ? each : 1))
		stress xfs /dev/vdb $((each > 0 ? each : 1))
	} >"$VM_SCRATCH/stress-$DRIVER"
	{
		others ext4 /dev/vda -F
		others xfs /dev/vdb -f
		blktests
	} >"$VM_SCRATCH/others-$DRIVER"
}

stress_on()
{
	rm -f "$work"/stress-*.img
	truncate -s 1G "$work"/stress-{ext4,xfs}.img
	guest --timeout $((SOAK * 60 + 300)) --env "FSSTRESS=${FSSTRESS:-}" --env "FSX=${FSX:-}" --env "BLKTESTS=${BLKTESTS:-}" \
		--disk "raw:$work/stress-ext4.img,queues=2,discard" \
		--disk "raw:$work/stress-xfs.img,queues=2,packed,discard" -- stressed || return
	works "stress-$DRIVER-host-ext4" e2fsck -fn "$work/stress-ext4.img"
	works "stress-$DRIVER-host-xfs" xfs_repair -n -f "$work/stress-xfs.img"
}

long()
{
	need_tool stress-ng stress-ng
	DRIVER=ours stress_on
	with_stock stress_on
	works stress-same-on-both diff "$work/share/stress-stock" "$work/share/stress-ours"
	if [ -s "$work/share/others-stock" ]; then
		works others-same-on-both diff "$work/share/others-stock" "$work/share/others-ours"
	fi
	check stress-statuses "$(awk '{ print $NF }' "$work/share/stress-ours" | sort | uniq -c | tr -s ' \n' ' ')" " $((2 * ${#stressors[@]})) 0 "
}

host()
{
	need_tool mkfs.xfs xfsprogs
	if [ -n "${SOAK:-}" ]; then
		long
		return
	fi
	tmpimg ext4 64M >/dev/null
	tmpimg ext4-4k 64M >/dev/null
	tmpimg xfs 320M >/dev/null
	tmpimg xfs-4k 320M >/dev/null
	guest --disk "raw:$work/ext4,qsize=16,queues=1,discard" --disk "raw:$work/ext4-4k,bs=4096,packed,discard" \
		--disk "raw:$work/xfs,queues=2,discard" --disk "raw:$work/xfs-4k,bs=4096,legacy,discard" -- inside || return
	works host-ext4 e2fsck -fn "$work/ext4"
	works host-ext4-4k e2fsck -fn "$work/ext4-4k"
	works host-xfs xfs_repair -n -f "$work/xfs"
	works host-xfs-4k xfs_repair -n -f "$work/xfs-4k"
	# The very bytes, read without mounting: debugfs takes the file from the image.
	check host-ext4-file "$(debugfs -R 'cat /small/5' "$work/ext4" 2>/dev/null | sha256sum | cut -d' ' -f1)" \
		"$(awk '$2 == "./small/5" { print $1 }' "$work/share/sums-vda")"
}

case_main "$@"
