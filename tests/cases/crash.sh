#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# QEMU is killed in the middle of everything, while scheduler, queue, CPUs and memory
# are disturbed, on one of four disks after the other. What a flush had acknowledged
# must be on a disk that lost all it held since its last flush: QEMU's log of writes
# and flushes says which that is. SEED=N repeats the moments, the disks and the choices.
#~ also 6.1
#~ soak
#~ once
set -u
all_cpus=1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

inside() { "$top/build/tests/faults/storm" -n crash- vda; }

# Some time after the workers have begun to acknowledge.
beside()
{
	await 300 test -s "$VM_SCRATCH/acks" || { kill -9 "$(cat "$work/pid")"; exit 1; }
	sleep "$moment"
	kill -9 "$(cat "$work/pid")"
}

# Which disk is the first is chance too: the short form has but one
shapes=("" ",packed" ",qsize=16,prop:indirect_desc=off" ",bs=4096")

one_crash()	# NUMBER SEED
{
	local n=$1 said shape=${shapes[($2 + $1) % 4]}
	rm -rf "$work/share" "$work/log" "$work/lost"
	rm -f "$work/disk"
	truncate -s 64M "$work/disk" "$work/lost"
	# beside() is another shell: its own RANDOM would know nothing of the seed
	moment=$((RANDOM % 5)).$((RANDOM % 10))
	export work moment
	# The runner sees a QEMU that was killed as one that took too long.
	said=$(guest_with beside --params poll_queues=1 --timeout 360 --env SECONDS=200 --env "SEED=$(($2 + n))" \
		--env "STORM=scheduler requests cpus memory" --qemu "-pidfile $work/pid" \
		--disk "raw:$work/disk,serial=scratch-storm,queues=3,log=$work/log$shape" -- inside 2>&1)
	if ! grep -q 'vm: time-out' <<<"$said"; then
		echo "$said" >&2
		fail "$n-killed" "$said" "a QEMU that was killed"
		return
	fi
	said=$("$top/build/tests/faults/verify" "$work/disk" "$work/share/acks") || fail "$n-image" "$said" "nothing lost"
	# As if the power had gone.
	if said=$("$top/build/tests/faults/verify" --log "$work/log" "$work/lost" "$work/share/acks"); then
		echo "disk${shape:-,plain}, killed after $moment s: $said"
		pass "$n-acknowledged-is-there"
	else
		fail "$n-acknowledged-is-there" "$said" "nothing lost"
	fi
}

host()
{
	local n end=$((SECONDS + ${SOAK:-0} * 60))
	local seed=${SEED:-$$}
	echo "SEED=$seed" >&2
	RANDOM=$seed
	for ((n = 1; n == 1 || SECONDS < end; n++)); do one_crash $n "$seed"; done
}

case_main "$@"
