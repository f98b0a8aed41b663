# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="null_blk, memory-backed: no server, no transport"
group=block
where=guest
can="flush discard zeroes remove no-image"
cannot=([resize]="the size of a null_blk is fixed" [kill]="it has no server")
up()
{
	modprobe null_blk nr_devices=0 || return
	mount -t configfs configfs /sys/kernel/config 2>/dev/null
	local d=/sys/kernel/config/nullb/nullb0
	mkdir "$d" || return
	echo 1 >$d/memory_backed
	echo 1 >$d/discard
	echo $megabytes >$d/size
	echo 2 >$d/submit_queues
	echo 1 >$d/power || return
	disk=nullb0 server=
	await_block
}
remove() { echo 0 >/sys/kernel/config/nullb/nullb0/power; }
down() { remove; }
