#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A disk that hardly answers is removed: half a minute each, so in soak only.
# (The programmable device's cases have the short form.)
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
	export GONE=silent
	program gone silent vda
}

host()
{
	if [ -z "${SOAK:-}" ]; then
		skip removal "takes 30 s; make soak runs it"
		exit 0
	fi
	truncate -s 256M "$work/disk"
	uring_guest --timeout 200 --params poll_queues=1 --append slub_debug=FZPU \
		--disk "raw:$work/disk,serial=scratch-disk,queues=2,iops=1" \
		-- inside
}

case_main "$@"
