#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A disk that has stopped to answer is removed: half a minute each, so in soak only.
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

do_it()
{
	local rate=0
	[ "$1" != slow ] || rate=1
	qmp qom-set path=/objects/tg0 property=limits "value={\"bps-total\":$rate}"
}

beside()
{
	while [ -S "$VM_QMP" ]; do
		[ ! -e "$VM_SCRATCH/ask" ] || answer
		sleep 0.05
	done >/dev/null
}

host()
{
	if [ -z "${SOAK:-}" ]; then
		skip removal "takes 30 s; make soak runs it"
		exit 0
	fi
	truncate -s 256M "$work/disk"
	guest_with beside --env "URING_OPTIONS=${URING_OPTIONS:-}" --timeout $((200 + ${SOAK:-0} * 60)) --params poll_queues=1 --append slub_debug=FZPU \
		--disk "raw:$work/disk,serial=scratch-disk,queues=2,iops=0" \
		-- inside
}

case_main "$@"
