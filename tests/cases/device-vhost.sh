#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The programmable device behind QEMU (vhost-user): what VDUSE cannot show. Its
# bounce pages overwrite a status byte the device left alone; it has neither
# CONFIG_WCE nor kernels before 6.12.
#~ also 6.1
#~ timeout 500
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

# vdb: rules by sector, type and feature; see host()
on_vdb() { disk=vdb log=$VM_SCRATCH/b.log; }
on_vda() { disk=vda log=$VM_SCRATCH/a.log; }

# The command before left its OK in the same memory
after_ok()	# NODE-CMD ARGS...
{
	local i
	for i in 1 2 3; do is "IN $i before" "$(cmd -s 8 -l 4096 in)" "res=0 result=0"; done
	is "${*: -1}, unwritten status" "$(cmd "$@")" "res=-5 status=0xff"
	is "IN behind" "$(cmd -s 8 -l 4096 in)" "res=0 result=0"
}

unwritten_node()
{
	on_vda
	after_ok -s 800 -l 4096 in
	after_ok -s 800 -l 4096 out
	after_ok -l 20 get_id
	after_ok -R 8:8 discard
}

unwritten_polled()
{
	on_vda
	is "IN before" "$(cmd -p -s 8 -l 4096 in)" "res=0 result=0"
	is "IN, unwritten status" "$(cmd -p -s 800 -l 4096 in)" "res=-5 status=0xff"
}

unwritten_block()
{
	on_vda
	is "read before" "$(read4k 8)" ok
	is "read, unwritten status" "$(read4k 800)" "Input/output error"
	is "write, unwritten status" "$(write4k 800)" "Input/output error"
	is "read behind" "$(read4k 8)" ok
}

# V25 with CONFIG_WCE: the mode is written to the device, flushes follow it
cache_mode()
{
	local before
	on_vdb
	is "cache_type" "$(sys cache_type)" "write back"
	echo "write through" >"/sys/block/$disk/cache_type"
	is "cache_type" "$(sys cache_type)" "write through"
	grep -q '"event":"config written","offset":32,"value":0' "$log" || is "config write" "none seen" "wce=0"
	before=$(requests flush)
	dd if=/dev/zero of="/dev/$disk" bs=4096 count=1 conv=fsync status=none
	is "flushes in write through" $(($(requests flush) - before)) 0
	echo "write back" >"/sys/block/$disk/cache_type"
	is "cache_type" "$(sys cache_type)" "write back"
	dd if=/dev/zero of="/dev/$disk" bs=4096 count=1 conv=fsync status=none
	[ "$(requests flush)" -gt "$before" ] || is "flushes in write back" 0 some
	echo nonsense >"/sys/block/$disk/cache_type" 2>/dev/null && is "nonsense" accepted refused
}

cache_mode_absent()
{
	on_vda
	{ echo "write through" >"/sys/block/$disk/cache_type"; } 2>/dev/null && is "the store" accepted refused
	is "mode of cache_type" "$(stat -c %a "/sys/block/$disk/cache_type")" 444
}

# V16 where VDUSE isn't: SEG_MAX absent
seg_max_absent()
{
	on_vdb
	is "max_segments" "$(sys queue/max_segments)" 1
	dd if="/dev/$disk" of=/dev/null bs=64k count=2 iflag=direct status=none || is "reading" failed fine
	is "requests with more segments" "$(grep '"req"' "$log" | grep -cvE '"desc":\[\[16,"r"\](,\[[0-9]+,"."\])?,\[1,"w"\]\]')" 0
}

# V24: the device tells by itself
resize()
{
	on_vda
	signal resize
	await 20 grep -qx 200000 "/sys/block/$disk/size"
	is "size" "$(sys size)" 200000
}

# A wrong id breaks the queue: what is in flight ends when the disk is removed
hostile()
{
	local v
	disk=vdc log=$VM_SCRATCH/c.log
	v=$(basename "$(realpath "/sys/block/$disk/../..")")
	cmd -s 1600 -l 4096 in >/tmp/held &
	await 20 grep -q '"sector":1600' "$log"
	cmd -s 800 -l 4096 in >/tmp/wrong &
	await 20 grep -q '"sector":800' "$log"
	await 20 grep -q '"id":40000' "$log"
	timeout 60 bash -c "echo $v >/sys/bus/virtio/drivers/virtio_blk/unbind" || is "unbinding" "no end" "an end"
	wait
	like "the held command" "$(cat /tmp/held)" "res=-19 status=0"
	like "the other" "$(cat /tmp/wrong)" "res=-*"
}

inside()
{
	unless_stock unwritten-status-block unwritten_block "takes the command before's OK for this one's"
	node unwritten-status-node unwritten_node
	if [ "$(cat /sys/module/virtio_blk/parameters/poll_queues)" -gt 0 ]; then
		node unwritten-status-polled unwritten_polled
	fi
	try V25-config-wce cache_mode
	try V25-config-wce-absent cache_mode_absent
	try V16-seg-max-absent seg_max_absent
	try V24-resize resize
	node hostile-wrong-id hostile
}

beside()
{
	await_signal resize 300 && "$device_bin/vblk-device" --ctl "$VM_SCRATCH/a.ctl" 'set capacity=200000'
}

# serve NAME OPTIONS...: a device for QEMU, ended with it
serve()
{
	local name=$1
	shift
	"$device_bin/vblk-device" --vhost-user "$work/$name.vu" --socket "$work/share/$name.ctl" --log "$work/share/$name.log" "$@" >/dev/null &
	await 10 test -S "$work/$name.vu"
	qemu+=" -chardev socket,id=$name,path=$work/$name.vu -device vhost-user-blk-pci,chardev=$name,${queues:-num-queues=1}"
}

host()
{
	local qemu="-object memory-backend-memfd,id=mem,size=1G,share=on -machine memory-backend=mem"
	mkdir -p "$work/share"
	queues=num-queues=2 serve a --queues 2 --feature discard --rule 'sector=800 status=none' \
		--rule 'type=get_id status=none' --rule 'type=discard status=none'
	serve b --feature config_wce --set wce=1 --no-feature seg_max
	serve c --rule 'type=in sector=800 used=40000' --rule 'type=in sector=1600 hold'
	guest_with beside --timeout 460 --append no_timer_check --params poll_queues=1 --qemu "$qemu" -- inside
	wait
}

case_main "$@"
