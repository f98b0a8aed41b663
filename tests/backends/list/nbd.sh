# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="nbd: qemu-nbd in the guest, by a socket"
group=block
where=guest
can="flush discard zeroes remove"
cannot=([resize]="qemu-nbd does not tell its client of a new size" [kill]="what the nbd driver does then is not ours to judge")
# -v: in the foreground
up()
{
	modprobe nbd || return
	qemu-nbd -v --discard=unmap -f "$format" -c /dev/nbd0 --persistent "$image" >"$run/nbd.log" 2>&1 &
	server=$! disk=nbd0
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(cat /sys/block/nbd0/size)" != 0 ] && return
		sleep 0.05
	done
	cat "$run/nbd.log" >&2
	return 1
}
remove() { qemu-nbd -d /dev/nbd0; }
down() { remove; wait $server; }
