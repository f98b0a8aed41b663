#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A device that does anything: random features and config values, random
# answers, delays, config changes and interrupts while it is used and removed.
# What is right: no report in the kernel log, every command ends, removal in
# bounded time, and a decent device works afterwards. SEED=N repeats a run,
# ROUND=N only that round of it. What is done is dealt by tests/faults/deck.
# Last, random ioctls on the node.
#~ timeout 600
#~ soak
#~ once
set -u
all_cpus=1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

dealt=''	# what chance has dealt in this round
bound=''

begin()	# OPTIONS…
{
	users=()
	if dev_up fuzz "$@" 2>/tmp/fuzz.err; then
		bound=1
	else
		bound=''
		without=$((without + 1))
	fi
}

user_read() { dd if="/dev/$disk" of=/dev/null bs="$1" count="$2" skip="$3" iflag=direct status=none; }
user_write() { dd if=/dev/zero of="/dev/$disk" bs="$1" count="$2" seek="$3" oflag=direct conv=fsync,notrunc status=none; }
user_serial() { cat "/sys/block/$disk/serial"; }
user_discard() { blkdiscard -f -o 65536 -l 65536 "/dev/$disk"; }
user_zeroes() { blkdiscard -f -z -o 65536 -l 65536 "/dev/$disk"; }
user_cache() { echo "write through" >"/sys/block/$disk/cache_type"; }
user_scheduler() { echo mq-deadline >"/sys/block/$disk/queue/scheduler"; }
user_node() { if ours; then cmd "$@"; fi; }

# Is one of the users left?
all_ended()
{
	local p
	for p in "${users[@]}"; do
		if kill -0 "$p" 2>/dev/null; then return 1; fi
	done
}

finish()
{
	local since=$SECONDS
	if [ -n "$bound" ]; then
		ctl 'queue 0 irq' 'queue 0 start' 'flicker off' clear release >/dev/null 2>&1
	fi
	timeout 150 vdpa dev del fuzz 2>/dev/null
	[ $((SECONDS - since)) -le 45 ] || is "removal (SEED=${DEALT:-}, $dealt)" "$((SECONDS - since)) s" "at most 45 s"
	await 20 all_ended || is "users (SEED=${DEALT:-}, $dealt)" "some still wait" "all ended"
	ctl quit 2>/dev/null
	wait "${pids[fuzz]}"
}

fuzz()
{
	local n=0 word rest until=$((SECONDS + ${SOAK:-0} * 60))
	local -a words
	without=0
	while read -r word rest; do
		read -ra words <<<"$rest"
		if [ "$word" = round ] || [ "$word" = end ]; then
			[ "$n" = 0 ] || finish
			[ -z "$why" ] || return
			[ "${SOAK:-0}" = 0 ] || [ "$SECONDS" -lt "$until" ] || break
			[ "$word" = round ] && n=$((n + 1)) dealt="round $rest"
			continue
		fi
		dealt+="; $word $rest"
		case $word in
		options) begin "${words[@]}" ;;
		user)
			[ -n "$bound" ] || continue
			"user_${words[0]}" "${words[@]:1}" >/dev/null 2>&1 &
			users+=($!) ;;
		*) [ -z "$bound" ] || ctl "$rest" >/dev/null 2>&1 ;;
		esac
	done <"$VM_SCRATCH/deck"
	echo "$n rounds, $without of them without a disk" >&2
	[ "$without" -lt "$n" ] || is "rounds with a disk" none some
}

decent()
{
	dev_up decent --serial scratch-decent
	is "a read" "$(read4k 0)" ok
	if ours; then
		SEED=$DEALT "$top/build/tests/faults/ioctls" -n faults-device- "$disk" || failed=1
	fi
	dev_down
}

inside()
{
	vduse_ready
	try random-device fuzz
	try decent-device-afterwards decent
}

host()
{
	local rounds=${ROUNDS:-$((${SOAK:-0} > 0 ? SOAK * 60 : 6))}
	local seed=${SEED:-$((EPOCHSECONDS % 100000))}
	need_tool vdpa iproute2
	echo "SEED=$seed" >&2
	mkdir -p "$work/share"
	"$top/tests/faults/deck" "$seed" "$rounds" ${SOAK:+--patient} >"$work/deck" || exit 1
	# One of them, if asked for, and the end.
	awk -v only="${ROUND:-0}" '$1 == "round" { n = $2 } $1 == "end" || !only || n == only' "$work/deck" >"$work/share/deck"
	guest --timeout $((400 + ${SOAK:-0} * 60)) --append no_timer_check --env "DEALT=$seed" -- inside
}

case_main "$@"
