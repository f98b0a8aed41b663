#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The meter itself, against truths it has no part in: a loop of known length,
# QEMU's trace of kicks, the kernel's own count of interrupts.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

counted=4000 warmup=400

inside()
{
	cp "$top/build/bench/client" /tmp/client
	echo none >/sys/block/vda/queue/scheduler
	/tmp/client --path loop --ios 1000 >/dev/null || return 1
	for ios in 1 $counted; do
		/tmp/client --file /dev/vda --fixed --ios "$ios" --warmup "$warmup" >"$VM_SCRATCH/said-$ios" || return 1
		# Not by reading it: that would make it longer.
		stat -c %s "$VM_SCRATCH/trace" >"$VM_SCRATCH/bytes-$ios"
	done
	grep -wE 'vp_notify|vring_interrupt' /proc/kallsyms >"$VM_SCRATCH/symbols"
}

# Entries of function $2 in the plugin's section $1 (from 1)
entries()
{
	awk -v n="$1" -v addr="$(awk -v f="$2" '$3 == f { print $1 }' "$work/share/symbols")" \
		'/^section/ { s++ } s == n && $1 == "t" && $2 == addr { sum += $4 } END { print sum + 0 }' "$work/counts"
}

user() { awk -v n="$1" '/^section/ && ++s == n { print $2 }' "$work/counts"; }

near() { if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then pass "$1"; else fail "$1" "$2" "$3 to $4"; fi; }

# Kicks of the disk in the trace between the two runs of the client
traced_kicks()
{
	local disk
	disk=$(sed -n 's/.*virtio_blk_handle_read vdev \(0x[0-9a-f]*\).*/\1/p' "$work/share/trace" | head -n 1)
	head -c "$(cat "$work/share/bytes-$counted")" "$work/share/trace" | tail -c +"$(cat "$work/share/bytes-1")" |
		grep -c "virtio_queue_notify vdev $disk"
}

host()
{
	local warmup_kicks
	make -s -C "$top" bench-tools || { fail tools "an error" "the plugin and the client"; return; }
	PATH=$top/tests/bench/one-thread:$PATH with_stock guest --accel tcg --smp 1 \
		--disk null:1T,queues=1,prop:ioeventfd=off \
		--trace virtio_queue_notify --trace virtio_blk_handle_read \
		--qemu "-icount shift=0 -plugin $top/build/bench/meter.so,out=$work/counts" -- inside || return
	near loop-counted-and-only-while-open "$(user 1)" 2000000 2020000
	warmup_kicks=$((warmup / 8))
	near kicks-as-traced "$(($(traced_kicks) - warmup_kicks))" "$(entries 3 vp_notify)" "$(($(entries 3 vp_notify) + 3))"
	check kick-per-batch "$(entries 3 vp_notify)" $((counted / 8))
	check interrupts-as-counted-by-the-kernel "$(entries 3 vring_interrupt)" \
		"$(sed 's/.*"irqs": \([0-9]*\).*/\1/' "$work/share/said-$counted")"
}

case_main "$@"
