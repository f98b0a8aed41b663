# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For tests in a guest: what a client really asked the kernel for, whatever its
# options were called. Two witnesses, by the kernel's own tracing: each command
# at the driver's door, and each io_uring_enter().
#
#	probe_on; probe_clear; CLIENT; probe_commands | awk ...

tracing=/sys/kernel/tracing

# Text is patched with one CPU running: see fast_boot in tests/vm/run.
probe_on()
{
	local cpu=/sys/devices/system/cpu/cpu1/online command='+72(+8(%di))'
	# 6.1 has no SQE here but a pointer to the command in it
	[[ $(uname -r) != 6.1.* ]] || command='+24(+8(%di))'
	[ ! -e $cpu ] || echo 0 >$cpu
	echo "p:vblk virtblk_uring_cmd op=+24(%di):u32 flags=+28(%di):u32 issue=%si:x32 len=$command:u32" \
		>$tracing/kprobe_events &&
		echo 1 >$tracing/events/kprobes/vblk/enable &&
		echo 1 >$tracing/events/syscalls/sys_enter_io_uring_enter/enable &&
		echo 1 | tee $tracing/events/io_uring/io_uring_submit_*/enable >/dev/null
	local rc=$?
	[ ! -e $cpu ] || echo 1 >$cpu
	return $rc
}

# For long runs, whose commands would push everything else out of the trace.
probe_off()
{
	local event cpu=/sys/devices/system/cpu/cpu1/online
	[ ! -e $cpu ] || echo 0 >$cpu
	for event in kprobes/vblk syscalls/sys_enter_io_uring_enter io_uring/io_uring_submit_{req,sqe}; do
		[ ! -e "$tracing/events/$event" ] || echo 0 >"$tracing/events/$event/enable"
	done
	[ ! -e $cpu ] || echo 1 >$cpu
}

probe_trace=$tracing/trace
probe_clear() { echo >$tracing/trace; probe_trace=$tracing/trace; }

# probe_of PID: what follows is about that process alone and io_uring's threads of
# it, as the copy of the trace in /tmp/trace has them
probe_of()
{
	probe_trace=/tmp/trace.of
	grep -E "^ *(iou-wrk-$1-[0-9]+|iou-sqp-$1-[0-9]+|.*-$1) +\[" /tmp/trace >$probe_trace
}

# One line per command: WHO (program, iou-wrk, iou-sqp) CPU OP FIXED ISSUE LEN,
# where OP is cmd_op, FIXED 1 for a registered buffer, ISSUE has io_uring's issue
# flags and LEN is the command's data_len
probe_commands()
{
	sed -nE 's/^ *(iou-wrk|iou-sqp|.*)-[0-9-]+ +\[0*([0-9]+)\].* vblk: .* op=([0-9]+) flags=([0-9]+) issue=0x([0-9a-f]+) len=([0-9]+).*/\1 \2 \3 \4 \5 \6/p' \
		"$probe_trace" | awk '{ $4 = $4 % 2; print }'
}

# One line per io_uring_enter(): TO_SUBMIT MIN_COMPLETE FLAGS, decimal
probe_enters()
{
	sed -nE 's/.* sys_io_uring_enter\(fd: [0-9a-f]+, to_submit: ([0-9a-f]+), min_complete: ([0-9a-f]+), flags: ([0-9a-f]+).*/0x\1 0x\2 0x\3/p' \
		"$probe_trace" | while read -r a b c; do echo $((a)) $((b)) $((c)); done
}

# One line per submission entry: OPCODE FLAGS, where 1 is a registered file
probe_entries()
{
	sed -nE 's/.* io_uring_submit_(req|sqe): .* opcode ([A-Z0-9_]+), flags (0x)?([0-9a-f]+).*/\2 \4/p' "$probe_trace"
}

# The CONDITION that a command of probe_commands is polled: IO_URING_F_IOPOLL among
# its issue flags is bit 10, in 6.1 bit 4
# shellcheck disable=SC2016,SC2034 # awk's words, used by the cases
case $(uname -r) in
6.1.*) probe_polled='$5 ~ /[13579bdf].$/' ;;
*) probe_polled='$5 ~ /[4567c-f]..$/' ;;
esac

# all CONDITION: of the lines, how many there are and how many don't fulfil it
probe_all() { awk "{ n++ } !($1) { bad++ } END { print n + 0, bad + 0 }"; }
