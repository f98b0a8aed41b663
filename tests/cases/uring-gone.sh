#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Disks unbound, removed, unloaded while their nodes are open and busy.
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
	program gone gone vda
}

host()
{
	truncate -s 256M "$work/slow"
	uring_guest --timeout 380 --params poll_queues=1 --append slub_debug=FZPU \
		--disk "raw:$work/slow,serial=scratch-slow,queues=2,iops=200" \
		-- inside
}

case_main "$@"
