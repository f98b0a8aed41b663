#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#
# What a user sees of a disk equals the in-tree driver's: sysfs, queues and
# their CPUs under every parameter, names, minors, serial, limits. Cases V04,
# V11, V16, V18, V26.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

# What differs by design: a parameter that in-tree has not, and our request
# time-out shows as io_timeout. What differs by chance: counters, diskseq.
uninteresting='/(stat|inflight|diskseq|io_timeout|wbt_lat_usec):|DISKSEQ=|/mq/.*/(active|busy|dispatched|queued|run):|/(bind|unbind|direct_descriptors):'

# "FILE:LINE" for every attribute of every disk and of the driver, and which
# CPUs submit to which queue.
dump()
{
	{
		cd /sys || return
		grep -s '' block/vd*/{,queue/,queue/iosched/,mq/*/}* bus/virtio/drivers/virtio_blk/* module/virtio_blk/parameters/*
		printf '%s\n' block/vd*/mq/*/cpu*
		cd - >/dev/null || return
	} | grep -vE "$uninteresting"
}

kinds=("" poll_queues=1 poll_queues=2 poll_queues=9 num_request_queues=1
	"num_request_queues=1 poll_queues=1" num_request_queues=3 queue_depth=8 "queue_depth=1000")

inside()
{
	local i cpu
	for i in "${!kinds[@]}"; do
		# shellcheck disable=SC2086 # parameters are words
		reload ${kinds[i]} || { fail "load-${kinds[i]// /-}" "insmod failed" "success"; continue; }
		dump >"$VM_SCRATCH/$DRIVER-$i"
		# A read from every CPU, whichever queue it maps to.
		for cpu in 0 1 2; do
			taskset -c "$cpu" dd if=/dev/vdb of=/dev/null bs=4k count=1 iflag=direct status=none ||
				fail "read-cpu$cpu-${kinds[i]// /-}" "an error" "data"
		done
	done
	grep -E 'virtio_blk virtio|vd[a-z]+:' <(dmesg) | sed 's/^\[[^]]*\] //' | sort >"$VM_SCRATCH/$DRIVER-words"
}

boot()
{
	guest --smp 3 --disk "raw:$work/a,queues=3,serial=a" \
		--disk "null:1G,queues=1,qsize=64,bs=4096,serial=12345678901234567890" \
		--disk "null:3T,ro,queues=8,qsize=1024,legacy,serial=123456789012345678901234567890123456" \
		--disk "null:1G,queues=2,pbs=4096,discard,prop:min_io_size=65536,prop:opt_io_size=1048576,prop:discard_granularity=65536" \
		--disk "null:1G,queues=2,prop:discard=off,prop:write-zeroes=off,prop:write-cache=off,prop:config-wce=off,prop:seg-max-adjust=off" \
		--disk "null:1G,packed,qsize=128,prop:max-discard-sectors=100,prop:max-write-zeroes-sectors=64,prop:cyls=10,prop:heads=4,prop:secs=8,prop:indirect_desc=off" \
		-- inside
}

host()
{
	local i name
	mkdir -p "$work/share"
	truncate -s 64M "$work/a"
	printf 'start=2048,size=2048\nstart=8192\n' | sfdisk -q "$work/a"
	boot || return
	with_stock boot || return
	for i in "${!kinds[@]}"; do
		name=${kinds[i]// /-}
		compare "attributes-${name:-default}" "$work/share/stock-$i" "$work/share/ours-$i"
	done
}

# The same lines, and enough of them to mean something.
compare()
{
	local lines
	lines=$(wc -l <"$2")
	if [ "$lines" -lt 200 ]; then
		fail "$1" "$lines attributes" "more than 200"
	else
		works "$1" diff "$2" "$3"
	fi
}

case_main "$@"
