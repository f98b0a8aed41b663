#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kept corpus of the guided fuzzer on any kernel; where the kernel has KCOV
# (make debug-kernel) new genomes too. FUZZ_SEED=N repeats a run, GUIDED_COUNT=N
# is the number of genomes. To keep what a run finds: GUIDED_KEEP=FILE, and add
# FILE's lines to tests/uring/corpus.
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
	program guided guided vda
	# Other limits, other ways; guidance is once enough.
	program guided guided-few-tags -t corpus vdb
}

host()
{
	truncate -s 128M "$work/many" "$work/few"
	uring_guest --timeout "$((360 + ${SOAK:-0} * 60))" --params poll_queues=1 \
		--env "FUZZ_SEED=${FUZZ_SEED:-$((EPOCHSECONDS % 1000000))}" --env "GUIDED_COUNT=${GUIDED_COUNT:-}" \
		--env "GUIDED_CORPUS=$top/tests/uring/corpus" --env "GUIDED_KEEP=$work/share/keep" \
		--disk "raw:$work/many,serial=scratch-many,queues=2,discard" \
		--disk "raw:$work/few,serial=scratch-few,queues=2,qsize=16,packed" \
		-- inside
	rest_is_empty many
	rest_is_empty few
	[ -z "${GUIDED_KEEP:-}" ] || cp "$work/share/keep" "$GUIDED_KEEP"
}

case_main "$@"
