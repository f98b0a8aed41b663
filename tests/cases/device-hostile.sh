#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Devices that lie, fall silent or vanish. What is right: no report in the
# kernel log (the runner looks), removal in bounded time, every command ended.
#~ timeout 600
#~ waits
#~ soak
set -u
all_cpus=1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"

# start_node ARGS...: node-cmd in the background; its result goes to /tmp/node.N
jobs_started=()
start_node()
{
	cmd "$@" >"/tmp/node.${#jobs_started[@]}" &
	jobs_started+=($!)
}

# ended SECONDS: all started commands have ended
ended()
{
	local i deadline=$((SECONDS + $1))
	for i in "${jobs_started[@]}"; do
		while kill -0 "$i" 2>/dev/null; do
			[ "$SECONDS" -lt "$deadline" ] || { is "a command" "still waiting" "ended in $1 s"; return; }
			sleep 0.1
		done
	done
}

# removed SECONDS: vdpa dev del comes back within that
removed()
{
	local t=$SECONDS
	timeout 120 vdpa dev del "$name"
	t=$((SECONDS - t))
	[ "$t" -le "$1" ] || is "removal" "$t s" "at most $1 s"
	ctl quit 2>/dev/null
	wait "${pids[$name]}"
}

# hostile RULE: an answer of that kind to a read, then removal
hostile()
{
	dev_up hostile
	jobs_started=()
	ctl "rule type=in sector=800 count=1 $1"
	start_node -s 800 -l 4096 in
	start_node -s 1600 -l 4096 in
	ctl 'wait answers=1'
	removed 40
	ended 5
	like "command 0" "$(cat /tmp/node.0)" "res=*"
	# On a busy machine the disk may be gone before the second opens it.
	[[ $(cat /tmp/node.1) == *'No such '* ]] || like "command 1" "$(cat /tmp/node.1)" "res=*"
}

wrong_id() { hostile used=next; }
impossible_id() { hostile used=40000; }
twice() { hostile used=twice; }
runs_ahead() { hostile jump=200; }

# The in-tree driver: a duplicate answer ends in a broken queue, seen by a read
twice_block()
{
	dev_up twice
	ctl "rule type=in sector=800 count=1 used=twice"
	is "read" "$(read4k 800)" ok
	dev_down
}

# A command that is never answered: removal waits 30 s, then it ends with -ENODEV
never_answered()
{
	local t
	dev_up silent --feature discard
	jobs_started=()
	ctl 'rule type=in hold' 'rule type=out hold' 'rule type=flush hold' 'rule type=discard hold'
	start_node -s 800 -l 4096 in
	start_node -s 800 -l 4096 out
	start_node flush
	start_node -R 8:8 discard
	ctl 'wait held=4 20'
	t=$SECONDS
	removed 45
	[ $((SECONDS - t)) -ge 25 ] || is "removal" "$((SECONDS - t)) s" "30 s of patience"
	ended 5
	for t in 0 1 2 3; do is "command $t" "$(cat /tmp/node."$t")" "res=-19 status=0"; done
}

# suspend_refused: a suspend of this moment's device is, after 30 s of patience
suspend_refused()
{
	local v t=$SECONDS
	v=$(basename /sys/bus/vdpa/devices/"$name"/virtio*)
	like "suspend" "$(insmod "$SUSPEND_MODULE" "device=$v" 2>&1)" "*esource busy"
	t=$((SECONDS - t))
	if [ "$t" -lt 25 ] || [ "$t" -gt 45 ]; then is "suspend" "$t s" "30 s of patience"; fi
}

# A device that has fallen silent can't be suspended; what it holds ends once it answers
held_read_at_suspend()
{
	dev_up asleep
	jobs_started=()
	ctl 'rule type=in hold'
	start_node -s 800 -l 4096 in
	ctl 'wait held=1 20'
	suspend_refused
	ctl clear release
	ended 5
	like "the command" "$(cat /tmp/node.0)" "res=0 result=0"
	is "a read" "$(cmd -s 800 -l 4096 in)" "res=0 result=0"
	dev_down
}

# A zone report is never answered, and holds what a change of the size waits for:
# suspend is refused after 30 s all the same
held_report_at_suspend()
{
	local report
	dev_up held --size 64M --zoned hm
	ctl 'rule type=zone_report hold'
	blkzone report "/dev/$disk" >/dev/null & report=$!
	ctl 'wait held=1 20' 'set capacity=131072'
	suspend_refused
	ctl clear release
	wait "$report"
	is "report" "$?" 0
	dev_down
}

# The answers come while the removal waits: they count
answered_late()
{
	local t
	dev_up late
	jobs_started=()
	ctl 'rule type=in hold'
	start_node -s 800 -l 4096 in
	ctl 'wait held=1 20'
	vdpa dev del "$name" & t=$!
	sleep 1	# nothing tells that the removal waits
	ctl 'show stat' >/dev/null && ctl release
	wait "$t"
	ended 5
	like "the command" "$(cat /tmp/node.0)" "res=0 result=0"
	ctl quit 2>/dev/null
	wait "${pids[$name]}"
}

# A command is held while the driver is unbound and bound again
held_over_reset()	# NAME
{
	local v
	dev_up "$1"
	jobs_started=()
	v=$(basename /sys/bus/vdpa/devices/"$name"/virtio*)
	ctl 'rule type=in sector=800 hold'
	start_node -s 800 -l 4096 in
	ctl 'wait held=1 20'
	echo "$v" >/sys/bus/virtio/drivers/virtio_blk/unbind
	ended 5
	is "the command" "$(cat /tmp/node.0)" "res=-19 status=0"
	ctl clear
	echo "$v" >/sys/bus/virtio/drivers/virtio_blk/bind
	disk_find || is "after binding again" "no disk" "a disk"
}

# Old heads put into the ring of a new driver
answered_after_reset()
{
	held_over_reset again
	is "read" "$(read4k 0)" ok
	ctl 'release hostile'
	removed 40
}

# The same, and the device is a decent one
dropped_after_reset()
{
	held_over_reset decent
	ctl release
	is "read" "$(read4k 800)" ok
	is "IN" "$(cmd -s 800 -l 4096 in)" "res=0 result=0"
	dev_down
}

# The server dies with a command in its hands; then another takes over
vanished_and_back()
{
	dev_up back
	jobs_started=()
	ctl 'rule type=in sector=800 count=1 vanish'
	start_node -s 800 -l 4096 in
	wait "${pids[$name]}"
	rm -f "$sock"
	"$device_bin/vblk-device" --name "$name" --adopt --socket "$sock" --log "$log" >/tmp/"$name".out 2>&1 &
	pids[$name]=$!
	until [ -S "$sock" ]; do sleep 0.02; done
	ended 10
	is "the command" "$(cat /tmp/node.0)" "res=0 result=0"
	is "read" "$(read4k 0)" ok
	dev_down
}

# ... and nobody does. VDUSE itself waits for a server before each step of the
# removal; its patience is shortened to leave the driver's.
vanished()
{
	dev_up gone
	jobs_started=()
	echo 2 >/sys/class/vduse/"$name"/msg_timeout
	ctl 'rule type=in sector=800 count=1 vanish'
	start_node -s 800 -l 4096 in
	wait "${pids[$name]}"
	removed 50
	ended 5
	is "the command" "$(cat /tmp/node.0)" "res=-19 status=0"
}

# The disk goes away between plain block I/O's request and its answer
never_answered_block()
{
	local p
	dev_up sb
	ctl 'rule type=in sector=800 hold'
	dd if="/dev/$disk" of=/dev/null bs=4096 skip=100 count=1 iflag=direct status=none 2>/tmp/dd.err & p=$!
	ctl 'wait held=1 20'
	removed 45
	wait "$p" && is "the read" fine failed
}

# A resize in the middle of everything, also while the disk is removed
resize_under_load()
{
	local p n
	dev_up rl --queues 2
	ctl 'rule type=in delay=0-5'
	nice fio --name=r --filename="/dev/$disk" --rw=randread --bs=4k --size=400k --direct=1 --ioengine=io_uring --iodepth=8 \
		--time_based --runtime=3 --output=/tmp/fio.rl & p=$!
	for n in 1 2 3 4 5 6 7 8; do ctl "set capacity=$((100000 + n * 1000))"; done
	wait "$p" || is "fio" failed fine
	ctl 'set capacity=50000' 'set capacity=131072'
	dev_down
}

inside()
{
	vduse_ready
	node wrong-id wrong_id
	node impossible-id impossible_id
	node answered-twice twice
	node used-index-ahead runs_ahead
	try answered-twice-block twice_block
	try resize-under-load resize_under_load
	node silent-until-removal never_answered
	if [ -n "${SOAK:-}" ] && [ -n "$SUSPEND_MODULE" ]; then
		unless_stock V05-held-read-at-suspend held_read_at_suspend "waits for ever"
		unless_stock held-report-at-suspend held_report_at_suspend "waits for ever"
	else
		skip V05-held-read-at-suspend "takes 30 s; make soak runs it, on installed kernels"
		skip held-report-at-suspend "takes 30 s; make soak runs it, on installed kernels"
	fi
	node answered-during-removal answered_late
	node answered-after-reset answered_after_reset
	node reset-drops-held dropped_after_reset
	node server-vanishes-and-returns vanished_and_back
	node server-vanishes vanished
	unless_stock silent-until-removal-block never_answered_block "waits for ever"
}

host()
{
	need_tool vdpa iproute2
	need_tool fio fio
	guest --timeout 560 --append no_timer_check --env "SUSPEND_MODULE=$(suspend_module)" -- inside
}

case_main "$@"
