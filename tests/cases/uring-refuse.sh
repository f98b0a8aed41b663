#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the node refuses, what its completions and ioctls say; QEMU's trace shows
# that refused commands never reached the device.
#~ also 6.1
#~ timeout 400
#~ soak
# shellcheck disable=SC2317 # the functions are called by name
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"

inside()
{
	none_scheduler
	program refuse refuse vda vdb vdc vdd
	program ioctl ioctl vda
	program ioctl ioctl-ro vdb
	program ioctl ioctl-4k vdc
	program ioctl ioctl-nodiscard vdd
	program complete complete vde
	unloads
}

# The reads of 900 KiB and 904 KiB enclose the refusals.
between_marks()
{
	awk '/virtio_blk_handle_read/ && /sector 1800 / { begin = 1; vdev = ""
			match($0, /vdev 0x[0-9a-f]+/); vdev = substr($0, RSTART, RLENGTH); next }
		/virtio_blk_handle_read/ && /sector 1808 / { end = 1; exit }
		begin && index($0, vdev) && !seen_own && /virtio_blk_rw_complete|virtio_blk_req_complete/ {
			if (/virtio_blk_req_complete/) seen_own = 1
			next }
		begin && index($0, vdev) { print }
		END { if (!begin || !end) print "no marks in the trace" }' "$work/share/trace"
}

host()
{
	scratch_image rw 1G scratch-rw
	scratch_image ro 1G scratch-ro
	scratch_image b4k 1G scratch-4k
	truncate -s 64M "$work/nodiscard" "$work/eio"
	uring_guest --timeout $((300 + ${SOAK:-0} * 60)) --params poll_queues=1 --trace 'virtio_blk_handle_*' --trace 'virtio_blk_req_complete' \
		--disk "raw:$work/rw,serial=scratch-rw,queues=2,discard" \
		--disk "raw:$work/ro,serial=scratch-ro,ro" \
		--disk "raw:$work/b4k,serial=scratch-4k,bs=4096,discard" \
		--disk "raw:$work/nodiscard,serial=scratch-nodiscard,prop:discard=off,prop:write-zeroes=off" \
		--disk "raw:$work/eio,serial=scratch-eio,queues=2,eio=4096" \
		-- inside
	check trace-has-no-refused "$(between_marks | head -n 3)" ""
}

case_main "$@"
