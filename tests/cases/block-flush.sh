#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#
# Flushes and the cache_type attribute: what QEMU counts is the truth. Case V25.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

asks=0

# How many flushes QEMU has seen on diskN; the host's side answers.
flushes()
{
	asks=$((asks + 1))
	echo "$1" >"$VM_SCRATCH/question.new"
	mv "$VM_SCRATCH/question.new" "$VM_SCRATCH/question-$asks"
	await 30 test -e "$VM_SCRATCH/answer-$asks"
	count=$(cat "$VM_SCRATCH/answer-$asks")
}

written() { dd if=/dev/zero of="$1" bs=4k count=8 conv=notrunc,fsync oflag=direct status=none; }

# grew NAME DISK yes|no: whether a write with fsync makes QEMU flush.
grew()
{
	local before
	flushes "$2"; before=$count
	written "/dev/vd${letters:$2:1}"
	flushes "$2"
	check "V25-$1" "$([ "$count" -gt "$before" ] && echo yes || echo no)" "$3"
}

inside()
{
	local attr=/sys/block/vda/cache_type
	check V25-write-back "$(cat "$attr")" "write back"
	grew fsync-flushes 0 yes
	works V25-switch-to-through sh -c "echo 'write through' >$attr"
	check V25-write-through "$(cat "$attr") $(cat /sys/block/vda/queue/write_cache)" "write through write through"
	grew through-needs-no-flush 0 no
	works V25-switch-back sh -c "echo 'write back' >$attr"
	check V25-write-back-again "$(cat "$attr") $(cat /sys/block/vda/queue/write_cache)" "write back write back"
	grew back-flushes 0 yes
	refused V25-nonsense-refused sh -c "echo 'write maybe' >$attr"

	check V25-no-wce-says "$(cat /sys/block/vdb/cache_type)" "write back"
	refused V25-no-wce-store-refused sh -c "echo 'write through' >/sys/block/vdb/cache_type"
	grew no-wce-flushes 1 yes

	check V25-no-cache-says "$(cat /sys/block/vdc/cache_type)" "write through"
	grew no-cache-no-flush 2 no
	refused V25-read-only-refuses-writes written /dev/vdd
	signal end
}

# The device's own counters, by the question's number.
beside()
{
	local n=1 disk
	while :; do
		await 300 test -e "$VM_SCRATCH/question-$n" -o -e "$VM_SCRATCH/signal-end"
		[ -e "$VM_SCRATCH/question-$n" ] || return
		disk=$(cat "$VM_SCRATCH/question-$n")
		qmp query-blockstats | python3 -c '
import json, sys
for b in json.load(sys.stdin):
    if b.get("qdev", "").startswith("/machine/peripheral/disk" + sys.argv[1]):
        print(b["stats"]["flush_operations"])' "$disk" >"$VM_SCRATCH/answer.new"
		mv "$VM_SCRATCH/answer.new" "$VM_SCRATCH/answer-$n"
		n=$((n + 1))
	done
}

host()
{
	tmpimg a 8M >/dev/null; tmpimg b 8M >/dev/null; tmpimg c 8M >/dev/null; tmpimg d 8M >/dev/null
	guest_with beside --disk "raw:$work/a" --disk "raw:$work/b,prop:config-wce=off,prop:write-cache=on" \
		--disk "raw:$work/c,prop:config-wce=off,prop:write-cache=off" --disk "raw:$work/d,ro" -- inside
}

case_main "$@"
