#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the node goes past, and what still sees it (contract.md, "What the node
# bypasses"): a limit of cgroups, the disk's statistics, a holder; the tracepoints.
# shellcheck disable=SC2317 # the functions are called by name
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

tool=$top/build/t/io_uring-vblk
cmd=$top/build/tests/device/node-cmd
group=/sys/fs/cgroup/limited
trace=/sys/kernel/tracing

seconds_of()	# COMMAND…: in hundredths, in the group
{
	local start=${EPOCHREALTIME/[.,]/}
	(echo "$BASHPID" >"$group/cgroup.procs" && exec "$@") >/run/out 2>&1 || echo "status $?: $(tail -n 1 /run/out)"
	echo $(((${EPOCHREALTIME/[.,]/} - start) / 10000))
}

# 20 reads a second: 60 of them take seconds by the block node, and 300 by the node
# are through before a quarter of the time the limit would ask for.
limits()
{
	local block node
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
	echo +io >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p "$group"
	if ! echo "$(cat /sys/block/vda/dev) riops=20" >"$group/io.max"; then
		skip cgroup-limit "this kernel has no io.max"
		return
	fi
	block=$(seconds_of "$tool" -u0 -p0 -d4 -s1 -c1 --ios 60 /dev/vda)
	node=$(seconds_of "$tool" -u1 -p0 -d4 -s1 -c1 --ios 300 /dev/vdac0)
	if [ "$block" -ge 150 ] 2>/dev/null; then pass cgroup-limit-holds-the-block-node; else
		fail cgroup-limit-holds-the-block-node "$block hundredths of a second" "150 or more"; fi
	if [ "$node" -lt 400 ] 2>/dev/null; then pass cgroup-limit-does-not-hold-the-node; else
		fail cgroup-limit-does-not-hold-the-node "$node hundredths of a second" "less than 400"; fi
}

statistics()
{
	local before own
	before=$(grep ' vda ' /proc/diskstats)
	own=$(cat /sys/class/vblk-generic/vdac0/stat)
	for _ in 1 2 3; do "$cmd" -l 4096 /dev/vdac0 in >/dev/null; done
	"$cmd" -l 4096 /dev/vdac0 out >/dev/null
	check diskstats-do-not-count "$(grep ' vda ' /proc/diskstats)" "$before"
	if [ "$own" != "$(cat /sys/class/vblk-generic/vdac0/stat)" ]; then pass own-stat-counts; else fail own-stat-counts "$own" "another"; fi
}

tracepoints()
{
	local event seen=''
	mountpoint -q "$trace" || mount -t tracefs tracefs "$trace"
	echo >"$trace/trace"
	for event in issue complete; do echo 1 >"$trace/events/block/block_rq_$event/enable"; done
	for _ in 1 2 3; do "$cmd" -l 4096 /dev/vdac0 in >/dev/null; done
	for event in issue complete; do
		echo 0 >"$trace/events/block/block_rq_$event/enable"
		seen+="$event $(grep -c "block_rq_$event: $(tr : , </sys/block/vda/dev)" "$trace/trace") "
	done
	check tracepoints-fire "$seen" "issue 3 complete 3 "
}

# Somebody holds the disk exclusively: the block node is refused, the node isn't.
holder()
{
	python3 - "$cmd" <<-'EOF'
		import errno, os, subprocess, sys
		held = os.open("/dev/vda", os.O_RDWR | os.O_EXCL)
		try:
		    os.open("/dev/vda", os.O_RDWR | os.O_EXCL)
		    print("a second holder")
		except OSError as e:
		    if e.errno != errno.EBUSY: print(e)
		print(subprocess.run([sys.argv[1], "-l", "4096", "/dev/vdac0", "out"], capture_output=True, text=True).stdout, end="")
	EOF
}

inside()
{
	echo none >/sys/block/vda/queue/scheduler
	limits
	statistics
	tracepoints
	check holder-is-not-asked "$(holder)" "res=0 result=0"
	skip device-cgroup "it takes a BPF program to forbid a device, and no loader for one is here"
}

host() { guest --disk "null:64M,queues=2" -- inside; }

case_main "$@"
