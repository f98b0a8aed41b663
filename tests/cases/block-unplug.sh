#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#~ timeout 600
#
# Disks that come and go under load, with slub_debug=FZPU watching: unbind,
# rmmod, hot-unplug of modern and legacy disks with open descriptors, hot-add,
# and a PCI Express slot that loses power. Cases V01, V02, V04, V07, V32.
set -u
all_cpus=1
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

# Load that ends by itself once its disk fails.
load()		# DEVICE
{
	local n
	for n in 1 2 3; do
		(while dd if="$1" of=/dev/null bs=128k count=8 skip="$n" iflag=direct status=none; do :; done) 2>/dev/null &
	done
	(while dd if=/dev/zero of="$1" bs=4k count=64 oflag=direct conv=notrunc,nocreat status=none; do :; done) 2>/dev/null &
	# At least one I/O has come back, more are on their way.
	await 20 moved "$1"
}

moved() { read -r reads _ _ _ writes _ <"/sys/block/${1#/dev/}/stat"; [ "$reads" -gt 4 ] && [ "$writes" -gt 4 ]; }
gone() { [ ! -e "/sys/block/${1#/dev/}" ]; }

# Processes that no signal reaches: what a removal that hangs leaves behind.
stuck() { ps -eo stat=,comm= | awk '$1 ~ /^D/ { print $2 }' | sort -u | tr '\n' ' '; }
nothing_stuck() { still=$(stuck); [ -z "$still" ]; }

ended()		# NAME: the load's processes are all gone, and nothing hangs
{
	await 30 nothing_stuck
	check "$1-nothing-stuck" "$still" ""
	# Loads whose disk did not go (a failure told already) would go on.
	# shellcheck disable=SC2046
	kill $(jobs -p) 2>/dev/null
	wait
}

unbind_rounds()
{
	local i dev
	dev=$(basename "$(realpath /sys/block/vda/device)")
	for i in 1 2 3 4 5; do
		load /dev/vda
		echo "$dev" >/sys/bus/virtio/drivers/virtio_blk/unbind
		gone /dev/vda || { fail V07-unbind "vda still there in round $i" "gone"; return; }
		wait
		echo "$dev" >/sys/bus/virtio/drivers/virtio_blk/bind
		await 10 test -b /dev/vda || { fail V07-bind "no vda in round $i" "vda"; return; }
	done
	pass V07-unbind-bind-under-load
	ended V07-unbind
}

reload_rounds()
{
	local i
	for i in 1 2 3 4 5 6 7 8 9 10; do
		reload "" || { fail V07-reload "an error in round $i" "success"; return; }
		dd if=/dev/vda of=/dev/null bs=4k count=1 iflag=direct status=none ||
			{ fail V07-reload "no data in round $i" "data"; return; }
	done
	pass V07-reload-10
	exec 5</dev/vda
	refused V07-rmmod-while-open rmmod virtio_blk
	exec 5<&-
}

# A descriptor that outlives its disk.
held()		# NAME
{
	refused "$1-held-read" dd if=/dev/fd/5 of=/dev/null bs=4k count=1 status=none
	python3 - "$1" <<-'EOF'
	import errno, fcntl, os, sys
	def attempt(what, fn):
	    try:
	        fn(); print(what, "succeeded")
	    except OSError as e:
	        if e.errno not in (errno.ENXIO, errno.ENODEV, errno.EIO, errno.EBADF): print(what, errno.errorcode[e.errno])
	buf = bytearray(16)
	attempt("HDIO_GETGEO", lambda: fcntl.ioctl(5, 0x0301, buf))
	# A disk that has gone has no bytes: the end of file is as good as an error.
	attempt("read", lambda: os.pread(5, 4096, 48 << 20) or os.pread(-1, 1, 0))
	attempt("open", lambda: os.open("/proc/self/fd/5", os.O_RDONLY))
	EOF
}

unplug()	# DISK NAME
{
	local dev=/dev/vd${letters:$1:1} said start
	load "$dev"
	start=$EPOCHSECONDS
	exec 5<"$dev"
	signal "unplug-$1"
	await 40 gone "$dev"
	check "$2-gone" "$(gone "$dev" && echo yes)" yes
	[ $((EPOCHSECONDS - start)) -lt 30 ] || fail "$2-time" "$((EPOCHSECONDS - start)) s" "less than 30 s"
	said=$(held "$2" | grep -v ^PASS)
	check "$2-held-descriptor" "$said" ""
	exec 5<&-
	ended "$2"
}

inside()
{
	unbind_rounds
	reload_rounds
	unplug 0 V02-unplug-modern
	unplug 1 V32-unplug-legacy
	unplug 2 V01-unplug-throttled
	signal add
	await 30 test -b /dev/vda
	check V04-hot-add-takes-first-name "$(ls /dev/vda)" /dev/vda
	check V04-hot-add-size "$(cat /sys/block/vda/size)" 131072
	works V04-hot-add-works dd if=/dev/vda of=/dev/null bs=1M count=8 iflag=direct status=none
	works V07-final-rmmod rmmod virtio_blk
}

beside()
{
	local n
	for n in 0 1 2; do
		await_signal "unplug-$n" 300 || exit 1
		qmp --wait DEVICE_DELETED device_del "id=disk$n" >/dev/null || exit 1
	done
	await_signal add 300 || exit 1
	qmp blockdev-add driver=null-co node-name=late size=67108864 read-zeroes=true >/dev/null &&
		qmp device_add driver=virtio-blk-pci id=late drive=late bus=spare0 >/dev/null
}

# A slot that loses its power tells nobody beforehand.
pull_slot()	# PORT'S PCI ADDRESS
{
	local slot=/sys/bus/pci/devices/$1/config cap control
	# The capability list: find PCI Express (0x10); its slot control is 0x18 on.
	cap=$(od -An -tu1 -j 52 -N1 "$slot")
	while [ "$((cap))" != 0 ] && [ "$(($(od -An -tu1 -j "$((cap))" -N1 "$slot")))" != 16 ]; do
		cap=$(od -An -tu1 -j "$((cap + 1))" -N1 "$slot")
	done
	control=$(($(od -An -tu2 -j "$((cap + 24))" -N2 "$slot")))
	# Power controller (0x400) and indicator (0x300) off: QEMU takes the card out.
	# Then on again, or pciehp would think that it had taken it out itself; its
	# interrupts (0x20) stay off in between.
	write16 "$slot" $((cap + 24)) $(((control | 0x700) & ~0x20))
	write16 "$slot" $((cap + 24)) "$control"
}

# In one write: QEMU looks at what is written, not at the register.
write16()	# FILE OFFSET VALUE
{
	# shellcheck disable=SC2059 # the bytes are the format
	printf "\\x$(printf %02x $(($3 & 255)))\\x$(printf %02x $(($3 >> 8)))" |
		dd of="$1" bs=2 seek=$(($2 / 2)) conv=notrunc status=none
}

# Reads by the node, behind each other on a slow disk; each says how it ended. (QEMU ends
# what it holds back before the card goes, so that few or none see -ENODEV.)
node_reads()
{
	local i poll
	for i in 0 1 2 3 4 5 6 7; do
		for poll in '' -p; do
			# shellcheck disable=SC2086 # a word or none
			"$top/build/tests/device/node-cmd" $poll -s $((i * 4096)) -l 4096 /dev/vdac0 in >"/run/read$poll$i" 2>&1 &
		done
	done
	await 20 node_moved
}

node_moved() { read -r reads _ <"/sys/class/vblk-generic/vdac0/stat" && [ "$reads" -ge 16 ]; }

surprise()
{
	local port start
	# Where locks are proven, pciehp's own order of its reset_lock is found fault with.
	[ ! -e /proc/sys/kernel/prove_locking ] || echo 0 >/proc/sys/kernel/prove_locking
	exec 6<>/dev/vdac0
	port=$(basename "$(dirname "$(dirname "$(realpath /sys/block/vda/device)")")")
	load /dev/vda
	node_reads
	exec 5</dev/vda
	start=$EPOCHSECONDS
	pull_slot "$port"
	await 60 gone /dev/vda
	check V01-surprise-gone "$(gone /dev/vda && echo yes)" yes
	[ $((EPOCHSECONDS - start)) -lt 45 ] || fail V01-surprise-time "$((EPOCHSECONDS - start)) s" "less than 45 s"
	exec 5<&-
	ended V01-surprise
	check V01-surprise-node-commands-end-once "$(cat /run/read* | sed 's/res=0 .*\|res=-19 .*/ended/' | sort | uniq -c | tr -s ' ')" " 16 ended"
	refused V01-surprise-held-node python3 -c 'import fcntl; fcntl.ioctl(6, 0x1268, bytearray(4))'
	exec 6<&-
	works V01-surprise-rmmod rmmod virtio_blk
}

host()
{
	tmpimg a 64M >/dev/null
	guest_with beside --append "slub_debug=FZPU,kmalloc-*,request_queue" --disk "raw:$work/a,queues=2" --disk "null:64M,legacy" \
		--disk "null:64M,iops=20,queues=2" -- inside
	# Without ACPI's help the slot is driven by pciehp, as on real machines.
	guest --append "slub_debug=FZPU,kmalloc-*,request_queue" --params poll_queues=1 --qmp --qemu "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off" \
		--disk "null:64M,iops=20,queues=2" -- surprise
}

case_main "$@"
