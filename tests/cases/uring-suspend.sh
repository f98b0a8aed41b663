#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Suspend and resume with block I/O and passthrough in flight. The guest's own
# files come by 9p, whose device cannot be suspended: everything is in memory
# before, and nothing is read after.
#~ also 6.1
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
	cat /bin/busybox "$programs/gone" /lib/x86_64-linux-gnu/libc.so.6 /usr/lib/x86_64-linux-gnu/liburing.so* >/dev/null
	export GONE=suspend
	exec "$programs/gone" -n uring-suspend- vda
}

host()
{
	truncate -s 256M "$work/disk"
	uring_guest --timeout $((200 + ${SOAK:-0} * 60)) --params poll_queues=1 \
		--disk "raw:$work/disk,serial=scratch-disk,queues=2" \
		-- inside
}

case_main "$@"
