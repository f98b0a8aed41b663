#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Random commands on random rings. FUZZ_SEED=N repeats a run, FUZZ_COUNT=N sets
# how many commands.
#~ also 6.1
#~ timeout 400
#~ soak
#~ once
# shellcheck disable=SC2317 # the functions are called by name
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"

inside()
{
	none_scheduler
	program fuzz fuzz vda
	program fuzz fuzz-few-tags vdb
	unloads
}

host()
{
	truncate -s 256M "$work/many" "$work/few"
	uring_guest --timeout "$((360 + ${SOAK:-0} * 60))" --params poll_queues=1 \
		--env "FUZZ_SEED=${FUZZ_SEED:-$((EPOCHSECONDS % 1000000))}" \
		--env "FUZZ_COUNT=${FUZZ_COUNT:-$((25000 + ${SOAK:-0} * 40000))}" \
		--disk "raw:$work/many,serial=scratch-many,queues=3,discard" \
		--disk "raw:$work/few,serial=scratch-few,queues=2,qsize=16,packed" \
		-- inside
	rest_is_empty many
	rest_is_empty few
}

case_main "$@"
