#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Status bytes, slow answers and answers in another order.
#~ timeout 600
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

# STATUS ERROR-TEXT: a read and a write by the block side
block_status()
{
	ctl clear "rule sector=800 status=$1"
	is "read, status $1" "$(read4k 800)" "$2"
	is "write, status $1" "$(write4k 800)" "$2"
	is "the neighbour" "$(read4k 808)" ok
}

block_statuses()
{
	dev_up bs
	block_status 1 "Input/output error"
	block_status 2 "Operation not supported"
	block_status 7 "Input/output error"
	block_status 128 "Input/output error"
	block_status 255 "Input/output error"
	ctl clear
	is "read afterwards" "$(read4k 800)" ok
	dev_down
}

# STATUS RES: contract's table, raw status beside it
node_status()
{
	local ring=$3
	ctl clear "rule type=in sector=800 status=$1" "rule type=out sector=800 status=$1"
	# shellcheck disable=SC2086
	is "IN, status $1$ring" "$(cmd $ring -s 800 -l 4096 in)" "res=$2 status=$(printf '%#x' "$1")"
	# shellcheck disable=SC2086
	is "OUT, status $1$ring" "$(cmd $ring -s 800 -l 4096 out)" "res=$2 status=$(printf '%#x' "$1")"
	# shellcheck disable=SC2086
	is "the neighbour$ring" "$(cmd $ring -s 808 -l 4096 in)" "res=0 result=0"
}

node_statuses()
{
	local s ring=${1:-}
	node_status 1 -5 "$ring"
	node_status 2 -95 "$ring"
	node_status 3 -22 "$ring"
	node_status 4 -22 "$ring"
	node_status 5 -109 "$ring"
	node_status 6 -75 "$ring"
	for s in 7 8 127 128 254 255; do node_status "$s" -5 "$ring"; done
}

by_node() { dev_up ns; node_statuses; dev_down; }

by_polled_node()
{
	dev_up np --queues 2
	node_statuses -p
	dev_down
}

# One queue: none is left to be polled
polled_without_a_queue()
{
	dev_up pq
	is "poll_queues" "$(info poll_queues)" 0
	is "polled IN" "$(cmd -p -l 4096 in)" "res=-95 status=0"
	dev_down
}

# Types that nobody has defined: bit 0 is the direction
unknown_types()
{
	dev_up ut
	ctl 'rule type=200 status=0' 'rule type=201 status=0'
	is "type 200" "$(cmd -l 512 200)" "res=0 result=0"
	is "its descriptors" "$(of '?' desc)" '[[16,"r"],[512,"w"],[1,"w"]]'
	is "type 201" "$(cmd -l 512 201)" "res=0 result=0"
	is "its descriptors" "$(of '?' desc)" '[[16,"r"],[512,"r"],[1,"w"]]'
	dev_down
}

# A write that failed may have changed the disk: what a reader cached meanwhile is old
failed_write_drops_cache()
{
	local p reads
	dev_up fw
	exec 5<"/dev/$disk"
	ctl 'rule type=out hold status=1'
	cmd -s 800 -l 4096 out >/tmp/out.res & p=$!
	ctl 'wait held=1 20'
	cached 800 1 >/dev/null
	reads=$(requests in)
	cached 800 1 >/dev/null
	is "reads of what is cached" "$(requests in)" "$reads"
	ctl release
	wait "$p"
	is OUT "$(cat /tmp/out.res)" "res=-5 status=0x1"
	cached 800 1 >/dev/null
	is "read anew" "$([ "$(requests in)" -gt "$reads" ] && echo yes)" yes
	exec 5<&-
	dev_down
}

# The status of every command without data, and of GET_ID
other_commands()
{
	dev_up oc --feature discard
	ctl 'rule type=flush status=1' 'rule type=get_id status=2' 'rule type=discard status=9'
	is FLUSH "$(cmd flush)" "res=-5 status=0x1"
	is GET_ID "$(cmd -l 20 get_id)" "res=-95 status=0x2"
	is DISCARD "$(cmd -R 8:8 discard)" "res=-5 status=0x9"
	ctl clear
	is FLUSH "$(cmd flush)" "res=0 result=0"
	is GET_ID "$(cmd -l 20 get_id)" "res=0 result=0"
	is "GET_ID desc" "$(of get_id desc)" '[[16,"r"],[20,"w"],[1,"w"]]'
	is "FLUSH desc" "$(of flush desc)" '[[16,"r"],[1,"w"]]'
	dev_down
}

# A device that claims more or less bytes than it wrote is believed neither way
used_length()
{
	local len
	dev_up ul
	for len in 0 1 4095 4098 0xffffffff; do
		ctl clear "rule type=in len=$len"
		is "read, length $len" "$(read4k 800)" ok
		if ours; then is "IN, length $len" "$(cmd -s 800 -l 4096 in)" "res=0 result=0"; fi
	done
	ctl clear "rule type=in len=0 status=1"
	is "failed read" "$(read4k 800)" "Input/output error"
	dev_down
}

# 64 random reads in flight, answered in any order: each gets its own data
reordered()
{
	dev_up ro --queues 2
	nice fio --name=w --filename="/dev/$disk" --rw=write --bs=4k --size=1M --direct=1 --verify=crc32c --do_verify=0 \
		--ioengine=io_uring --iodepth=8 --verify_state_save=0 --output=/tmp/fio.w || is "writing" failed fine
	ctl 'rule type=in delay=0-30' 'rule type=out delay=0-30'
	nice fio --name=w --filename="/dev/$disk" --rw=randread --bs=4k --size=1M --direct=1 --verify=crc32c --verify_state_save=0 \
		--ioengine=io_uring --iodepth=64 --output=/tmp/fio.r || is "verifying" failed fine
	dev_down
}

# The same by the node, whose reader polls and has 64 reads in flight
reordered_node()
{
	local p
	for p in '' 1; do
		dev_up "rn$p" --queues $((p + 1)) --size 4M
		dd if=/dev/urandom of="/dev/$disk" bs=1M count=4 oflag=direct status=none
		ctl 'rule type=in delay=0-30'
		"$top/build/examples/copy-disk" "/dev/${disk}c0" /tmp/copy >/tmp/copy.out 2>&1 || is "copying" "$(tail -n 1 /tmp/copy.out)" success
		ctl clear
		is "the copy" "$(cmp /tmp/copy "/dev/$disk" 2>&1)" ""
		rm -f /tmp/copy
		dev_down
	done
}

held_newest_first()
{
	local i p
	dev_up hn
	ctl 'rule type=in hold'
	p=()
	for i in 1 2 3 4; do
		dd if="/dev/$disk" of="/tmp/hold.$i" bs=4096 skip=$((i * 16)) count=1 iflag=direct status=none &
		p+=($!)
	done
	ctl 'wait held=4 20' 'release newest'
	for i in "${p[@]}"; do wait "$i" || is "a held read" failed fine; done
	ctl clear
	is "read afterwards" "$(read4k 0)" ok
	dev_down
}

# No interrupt comes for an answer: nothing may be lost once one does
late_interrupt()
{
	local p
	dev_up li
	ctl 'queue 0 noirq'
	dd if="/dev/$disk" of=/dev/null bs=4096 count=1 iflag=direct status=none & p=$!
	ctl 'wait answers=1 20' 'queue 0 irq'
	wait "$p" || is "the read" failed fine
	dev_down
}

# The ring isn't looked at for a while: nothing is lost, nothing is sent twice
stopped_queue()
{
	local before p
	dev_up sq
	before=$(requests in)
	ctl 'queue 0 stop'
	dd if="/dev/$disk" of=/dev/null bs=4096 count=1 iflag=direct status=none & p=$!
	ctl 'queue 0 start'
	wait "$p" || is "the read" failed fine
	is "reads sent" $(($(requests in) - before)) 1
	dev_down
}

inside()
{
	vduse_ready
	try status-block block_statuses
	node status-node by_node
	node status-node-polled by_polled_node
	node polled-without-a-queue polled_without_a_queue
	node unknown-types unknown_types
	node failed-write-drops-cache failed_write_drops_cache
	node status-other-commands other_commands
	try used-length used_length
	try answers-reordered reordered
	node answers-reordered-node reordered_node
	try answers-newest-first held_newest_first
	try interrupt-late late_interrupt
	try queue-stopped stopped_queue
}

host()
{
	need_tool vdpa iproute2
	need_tool fio fio
	guest --timeout 560 --params poll_queues=1 --append no_timer_check -- inside
}

case_main "$@"
