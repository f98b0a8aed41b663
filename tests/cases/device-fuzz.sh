#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Random commands to disks that QEMU doesn't have: erasable ones, zoned ones, one that
# fails, is late and out of order. FUZZ_SEED=N repeats a run, FUZZ_COUNT=N sets how
# many commands.
#~ timeout 400
#~ soak
#~ once
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

# fuzzed NAME OPTIONS…: what the fuzzer itself sees, and whether the device was ever
# given a chain that makes no request
fuzzed()
{
	dev_up "$1" --size 64M --queues 2 "${@:2}" --serial "scratch-$1"
	echo none >"/sys/block/$disk/queue/scheduler"
	program fuzz "fuzz-$1" "$disk"
	check "$1-chains-that-make-no-request" "$(grep -c '"bad"' "$log")" 0
	for type in "${reaches[@]}"; do
		check "$1-reaches-$type" "$(($(requests "$type") > 0))" 1
	done
	dev_down
	rm "$log"
}

inside()
{
	local reaches type
	vduse_ready
	reaches=(in out flush get_id get_lifetime discard write_zeroes secure_erase)
	fuzzed erasable --lifetime 1,2,3 --feature discard --feature write_zeroes --feature secure_erase \
		--set max_secure_erase_seg=2 --set max_discard_seg=2 --set max_write_zeroes_seg=2 --set write_zeroes_may_unmap=1
	# RESET_ALL would change what the fuzzer leaves alone; sent it is all the same.
	reaches=(in out zone_append zone_report zone_open zone_close zone_finish zone_reset zone_reset_all)
	fuzzed zoned --zoned hm --rule "type=zone_reset_all status=1"
	reaches=(in out)
	# Where two of the fuzzer's threads write (ground.h), once the pattern is there
	fuzzed moody --queue-size 16 --rule "type=in count=300 delay=0-20" \
		--rule "type=out sector=24576-32767 skip=40 status=1" --rule "type=in sector=24576-32767 status=2" \
		--rule "type=in sector=40960-49151 status=77"
	unloads
}

host()
{
	need_tool vdpa iproute2
	guest --timeout "$((360 + ${SOAK:-0} * 60))" --params poll_queues=1 --append no_timer_check \
		--env "FUZZ_SEED=${FUZZ_SEED:-$((EPOCHSECONDS % 1000000))}" --env "URING_OPTIONS=${URING_OPTIONS:-}" \
		--env "FUZZ_COUNT=${FUZZ_COUNT:-$((12000 + ${SOAK:-0} * 6500))}" -- inside
}

case_main "$@"
