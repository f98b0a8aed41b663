#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#
# A disk that grows and shrinks while it is used: capacity, uevent, I/O past the
# old end. Case V24.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

rounds=20

sectors() { read -r got <"/sys/block/$1/size"; [ "$got" = "$2" ]; }

# How many bytes can be read there.
megabyte_at() { dd if="$1" bs=1M skip="$2" count=1 iflag=direct status=none 2>/dev/null | wc -c; }

# Reads that never stop tell whether a resize disturbs them.
reader()
{
	while [ ! -e /run/stop ]; do
		dd if=/dev/vda of=/dev/null bs=64k count=16 iflag=direct status=none || : >/run/reader-failed
	done
}

inside()
{
	local i pid watcher want
	udevadm monitor --kernel --property --subsystem-match=block >/run/events 2>&1 & watcher=$!
	await 20 grep -q KERNEL /run/events
	reader & pid=$!
	check V24-before "$(cat /sys/block/vda/size)" 16384
	check V24-past-the-end "$(megabyte_at /dev/vda 8)" 0
	for ((i = 1; i <= rounds; i++)); do
		want=$((i % 2 ? 32768 : 16384))
		signal "want-$i"
		await 30 sectors vda "$want" || { fail V24-resize "$got sectors in round $i" "$want"; break; }
		if [ "$want" = 32768 ]; then
			[ "$(megabyte_at /dev/vda 15)" = 1048576 ] || fail V24-new-end "no data in round $i" "data"
		fi
	done
	[ "$i" -gt "$rounds" ] && pass "V24-$rounds-resizes"
	: >/run/stop
	wait "$pid"
	check V24-reader-undisturbed "$(ls /run/reader-failed 2>/dev/null)" ""
	check V24-4k-blocks "$(signal want-4k; await 30 sectors vdb 131072; cat /sys/block/vdb/size)" 131072
	check V24-4k-new-end "$(megabyte_at /dev/vdb 63)" 1048576
	await 10 test "$(grep -c '^RESIZE=1' /run/events)" -ge $((rounds + 1))
	check V24-uevents "$(grep -c '^RESIZE=1' /run/events)" $((rounds + 1))
	kill "$watcher"
	check V24-words "$(dmesg | grep -cE 'virtio_blk.*new size')" $((rounds + 1))
}

beside()
{
	local i
	for ((i = 1; i <= rounds; i++)); do
		await_signal "want-$i" || exit 1
		qmp block_resize node-name=img0 size=$((i % 2 ? 16777216 : 8388608)) >/dev/null || exit 1
	done
	await_signal want-4k || exit 1
	qmp block_resize node-name=img1 size=67108864 >/dev/null
}

host()
{
	tmpimg a 8M >/dev/null
	tmpimg b 32M >/dev/null
	guest_with beside --disk "raw:$work/a,queues=2" --disk "raw:$work/b,bs=4096" -- inside
}

case_main "$@"
