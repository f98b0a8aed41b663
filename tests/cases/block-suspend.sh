#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#~ soak
#
# Suspend and resume of the disk with I/O on its way: nothing lost, nothing
# doubled, nothing hung. Case V05. The root share's transport does not survive a
# suspend (it has no resume), so everything used then lies in memory.
set -u
all_cpus=1
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

rounds=$((${SOAK:-0} > 0 ? SOAK * 20 : 5))

inside()
{
	in_memory cycle dd cmp rmmod insmod
}

writer()	# writes the pattern over and over, verifying each time
{
	local n=0
	while [ ! -e /run/stop ]; do
		dd if=/run/pattern of="/dev/$1" bs=64k oflag=direct conv=notrunc status=none || { : >"/run/bad-$1"; return; }
		dd if="/dev/$1" of=/run/back-"$1" bs=16k count=128 iflag=direct status=none || { : >"/run/bad-$1"; return; }
		cmp -s /run/pattern "/run/back-$1" || { : >"/run/bad-$1"; return; }
		n=$((n + 1))
		echo "$n" >"/run/done-$1"
	done
}

more() { local n=0; read -r n <"/run/done-$1"; [ "$n" -gt "$2" ]; }

cycle()
{
	local i disk n pids=()
	dd if=/dev/urandom of=/run/pattern bs=64k count=32 status=none
	echo 0 >/sys/module/suspend/parameters/pm_test_delay
	[ -w /sys/power/pm_test ] || { skip V05 "the kernel has no CONFIG_PM_DEBUG"; return; }
	echo devices >/sys/power/pm_test
	for disk in vda vdb; do
		echo 0 >"/run/done-$disk"
		writer "$disk" & pids+=($!)
		await 30 more "$disk" 0 || fail "V05-start-$disk" "no I/O" "some"
	done
	for ((i = 1; i <= rounds; i++)); do
		echo freeze >/sys/power/state || { fail V05-suspend "an error in round $i" "success"; break; }
		for disk in vda vdb; do
			read -r n <"/run/done-$disk"
			await 60 more "$disk" "$n" || { fail "V05-resume-$disk" "no I/O after round $i" "I/O"; break 2; }
		done
	done
	[ "$i" -gt "$rounds" ] && pass "V05-$rounds-suspends"
	: >/run/stop
	wait "${pids[@]}"
	check V05-data "$(echo /run/bad-*)" "/run/bad-*"
	works V05-rmmod rmmod virtio_blk
	works V05-insmod insmod "$VM_MODULE"
}

host()
{
	tmpimg a 8M >/dev/null
	tmpimg b 8M >/dev/null
	guest --disk "raw:$work/a,queues=2" --disk "raw:$work/b,legacy,queues=1,qsize=16" -- inside
}

case_main "$@"
