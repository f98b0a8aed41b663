#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What people's tools see of a disk is the same under the in-tree driver and under
# ours with its char node and udev rule: lsblk, blkid, udev's own database, LVM,
# multipath, growpart, udisks; and so for a disk that virtblk_uring was handed, but
# for its name. Case V26.
#~ timeout 900
#~ also 6.1
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/lib.sh"

# NAME COMMAND…: what it says goes to a file of that name, for the host to compare.
saw()
{
	local name=$1
	shift
	"$@" >"$VM_SCRATCH/$DRIVER/$name" 2>&1
	echo "status $?" >>"$VM_SCRATCH/$DRIVER/$name"
}

# The properties of the disk and its partitions, but not when they turned up.
udev_database()
{
	local node
	for node in "$a" "$a"?; do
		# the links in no order
		udevadm info --query=property "$node" | grep -v '^USEC_INITIALIZED=' |
			tr ' ' '\n' | sed 's/^DEVLINKS=//' | sort
	done
	find /dev/disk -type l -printf '%p %l\n' | grep -v -- '-c0 ' | sort
}

volumes()
{
	local -a how=(--config 'devices/use_devicesfile=0 activation { udev_sync=0 udev_rules=0 } backup { backup=0 archive=0 }')
	pvcreate -q "${how[@]}" --uuid 000000-0000-0000-0000-0000-0000-000000 --norestorefile "$b" &&
		vgcreate -q "${how[@]}" scratch "$b" &&
		lvcreate -q "${how[@]}" -y -Wn -L 16M -n volume scratch &&
		pvs "${how[@]}" --segments -o pv_name,pv_size,pv_uuid,vg_name,lv_name "$b"
	vgchange -q "${how[@]}" -an scratch
}

# Without the times.
multipath_words() { multipath -v3 -d 2>&1 | sed 's/^[0-9.]* | //; s/^[A-Z][a-z]* [0-9]* [0-9:]* | //'; }

grow()
{
	growpart "$a" 2
	cat "/sys/class/block/${a#/dev/}2/size"
	growpart "$a" 2
}

# The drives and block devices as udisks has them.
udisks()
{
	mkdir -p /run/dbus /run/udisks2
	dbus-daemon --system --fork || return
	/usr/libexec/udisks2/udisksd --no-debug >/run/udisksd.log 2>&1 &
	await 60 udisksctl status || { cat /run/udisksd.log; return 1; }
	udisksctl status
	udisksctl dump | grep -vE 'TimeDetected|TimeMediaDetected|SortKey'
	kill $! 2>/dev/null	# or one that dbus has started
	:
}

inside()
{
	mkdir -p /run/udev/rules.d "$VM_SCRATCH/$DRIVER"
	cp "$top/packaging/60-virtio-blk-uring.rules" /run/udev/rules.d/
	udevadm control --reload
	udevadm trigger --action=add
	udevadm settle
	a=/dev/vda b=/dev/vdb
	if [ "$DRIVER" = beside ]; then
		insmod "$BESIDE"
		works moves bash "$top/packaging/virtblk-move" vda vdb
		udevadm settle
		a=/dev/vua b=/dev/vub
	fi
	saw lsblk lsblk --json --output-all "$a" "$b"
	saw blkid blkid -o export -p "$a" "${a}1" "$b"
	saw udev udev_database
	modprobe -q dm-multipath
	saw multipath multipath_words
	saw multipath-path multipath -c "$a"
	saw udisks udisks
	saw LVM volumes
	saw growpart grow
	saw lsblk-afterwards lsblk --output NAME,SIZE,TYPE,FSTYPE,PTTYPE,SERIAL "$a" "$b"
}

# But for names, the numbers that each disk gets anew, udev's deprecated second link
# by path, and the model that udisks gives a disk for being called vd.
nameless()
{
	sed -E '/by-path\/virtio-/d
		s/\bvu([ab])/vd\1/g
		s,^((ID_)?PART_ENTRY_DISK|MAJOR|DISKSEQ|.*by-diskseq/|.*DeviceNumber: +|.*"maj:min": ")([=]?)[0-9]+,\1\3N,
		s/^VirtIO Disk/-/; s/VirtIO.Disk.?//' "$1" | tr -s ' ' | sed 's/ $//' | sort
}

# FILE PATTERN: the file shows that the tool did its work: two equal failures prove nothing.
shows()
{
	grep -q "$2" "$work/share/stock/$1" ||
		fail "$1-at-work" "$(cat "$work/share/stock/$1")" "a line with $2"
}

host()
{
	local image name rel variant
	for name in lvm2:lvm udisks2:udisksctl multipath-tools:multipath cloud-guest-utils:growpart dbus-daemon:dbus-daemon; do
		need_tool "${name#*:}" "${name%:*}"
	done
	image=$(tmpimg disk 256M)
	printf 'label: gpt\nlabel-id: 01234567-89ab-cdef-0123-456789abcdef\n%s\n%s\n' \
		'start=2048, size=65536, uuid=01234567-89ab-cdef-0123-000000000001, name=one' \
		'start=67584, size=65536, uuid=01234567-89ab-cdef-0123-000000000002, name=two' |
		sfdisk -q "$image" || exit 1
	mke2fs -q -t ext4 -L label -U 01234567-89ab-cdef-0123-000000000003 -E offset=1048576 "$image" 32M || exit 1
	rel=$(kernel_release "$top/build" virtblk_uring.ko)
	for variant in stock ours beside; do
		cp --sparse=always "$image" "$work/disk-$variant"
		DRIVER=${variant/beside/stock} guest --udev --env "DRIVER=$variant" --env "BESIDE=$top/build/$rel/virtblk_uring.ko" \
			--disk "raw:$work/disk-$variant,serial=tools" --disk "raw:$(tmpimg "other-$variant" 64M),serial=other" -- inside
	done
	shows lsblk vda1
	shows blkid UUID=01234567-89ab-cdef-0123-000000000003
	shows udev /dev/disk/by-id/virtio-tools-part1
	shows multipath 'vda'
	shows multipath-path DM_MULTIPATH_DEVICE_PATH=
	shows udisks virtio
	shows LVM volume
	shows growpart ^CHANGED
	for name in lsblk blkid udev multipath multipath-path udisks LVM growpart lsblk-afterwards; do
		check "V26-$name-as-in-tree" "$(diff "$work/share/stock/$name" "$work/share/ours/$name" 2>&1)" ''
		check "V26-$name-beside-as-in-tree" "$(diff <(nameless "$work/share/stock/$name") <(nameless "$work/share/beside/$name") 2>&1)" ''
	done
}

case_main "$@"
