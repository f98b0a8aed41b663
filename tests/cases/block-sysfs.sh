#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Queues, their CPUs and what sysfs says of them under the module's parameters:
# as with the in-tree driver. What needs no parameter is fidelity.sh's. Case V11.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

# What differs by design: a parameter that in-tree has not, and our request
# time-out shows as io_timeout. What differs by chance: counters.
uninteresting='/(io_timeout|wbt_lat_usec|direct_descriptors):|/mq/.*/(active|busy|dispatched|queued|run):'

# "FILE:LINE" for each attribute that a parameter may change, and which CPUs
# submit to which queue.
dump()
{
	{
		cd /sys || return
		grep -s '' block/vd*/{queue/,queue/iosched/,mq/*/}* module/virtio_blk/parameters/*
		printf '%s\n' block/vd*/mq/*/cpu*
		cd - >/dev/null || return
	} | grep -vE "$uninteresting"
}

# Fewer queues than CPUs, as many, more; polled queues some, more than there are,
# and the only one that is left; depths below and above the ring's.
kinds=(poll_queues=1 poll_queues=9 "num_request_queues=1 poll_queues=1" queue_depth=8 "queue_depth=1000 poll_queues=2")

# By the node, too; a polled one only where a queue is left to poll.
node_reads()	# NAME
{
	local d cpu poll said bad='' cmd=$top/build/tests/device/node-cmd
	[ "$DRIVER" = ours ] || return
	for d in a b c; do for cpu in 0 1 2; do for poll in '' -p; do
		# shellcheck disable=SC2086 # a word or none
		said=$(taskset -c "$cpu" "$cmd" $poll -l 4096 "/dev/vd${d}c0" in 2>&1)
		[ "$said" = "res=0 result=0" ] && continue
		[ "$said $poll" = "res=-95 status=0 -p" ] && "$cmd" "/dev/vd${d}c0" info | grep -qx poll_queues=0 && continue
		bad+="vd$d CPU $cpu $poll: $said, "
	done; done; done
	check "V11-node-on-every-cpu-$1" "$bad" ""
}

inside()
{
	local i cpu
	for i in "${!kinds[@]}"; do
		# shellcheck disable=SC2086 # parameters are words
		reload ${kinds[i]} || { fail "V11-load-${kinds[i]// /-}" "insmod failed" "success"; continue; }
		dump >"$VM_SCRATCH/$DRIVER-$i"
		# A read from every CPU, whichever queue it maps to.
		for cpu in 0 1 2; do
			taskset -c "$cpu" dd if=/dev/vda of=/dev/null bs=4k count=1 iflag=direct status=none ||
				fail "V11-read-cpu$cpu-${kinds[i]// /-}" "an error" "data"
		done
		node_reads "${kinds[i]// /-}"
	done
}

boot()
{
	guest --smp 3 --disk "null:1G,queues=3" --disk "null:1G,queues=1,qsize=64,bs=4096" \
		--disk "null:3T,ro,queues=8,qsize=1024,legacy" -- inside
}

host()
{
	local i name
	boot || return
	with_stock boot || return
	for i in "${!kinds[@]}"; do
		name=${kinds[i]// /-}
		compare "V11-attributes-$name" "$work/share/stock-$i" "$work/share/ours-$i"
	done
}

# The same lines, and enough of them to mean something.
compare()
{
	local lines
	lines=$(wc -l <"$2")
	if [ "$lines" -lt 150 ]; then
		fail "$1" "$lines attributes" "more than 150"
	else
		works "$1" diff "$2" "$3"
	fi
}

case_main "$@"
