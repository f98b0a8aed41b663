#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# io_uring-vblk: what each option does, seen from outside the tool: in QEMU's
# trace, /proc and the kernel's tracepoints (t/probe.sh).
# shellcheck disable=SC2317 # functions are called by name
#~ also 6.1
#~ timeout 900
set -u
self=$(realpath "$0")
# shellcheck source=t/test-lib.sh
. "$(dirname "$self")/../../t/test-lib.sh"
# shellcheck source=t/probe.sh
. "$(dirname "$self")/../../t/probe.sh"
# shellcheck source=tests/device/lib.sh
. "$top/tests/device/lib.sh"

host()
{
	host_prepare
	make -s device >&2
	truncate -s 64M "$work/a.img" "$work/b.img" "$work/c.img" "$work/d.img"
	truncate -s 3T "$work/huge.img"
	boot --mem 1G --disk "raw:$work/a.img" --disk "raw:$work/b.img,bs=4096" \
		--disk "raw:$work/c.img,eio=4096" --disk "raw:$work/huge.img" \
		--disk "raw:$work/d.img,iops=60"
	local rc=$?
	json_valid
	[ $rc -eq 0 ] && exit $failed
	exit $rc
}
values()	# NAME…: all of them in a row
{
	local name all=
	for name; do value "$name"; all+="$value "; done
	echo "${all% }"
}

# The proposal's two commands as README has them; fio's scripts parse their lines
proposal()
{
	local u line
	for u in 1 0; do
		line=$(grep -o "taskset -c 0 t/io_uring-vblk -b4096 .* -u$u /dev/vd.*" README.md)
		mark
		# shellcheck disable=SC2086 # a list of words
		$line >/tmp/out 2>/tmp/err &
		await 30 grep -q IOPS= /tmp/out
		kill -INT $!
		wait $!
		equal "tool-proposal-u$u-ends-on-SIGINT" "$? $(grep -c 'Exiting on signal' /tmp/out)" "0 1"
		equal "tool-F18-u$u-line-format" \
			"$(grep -cE '^IOPS=[0-9.]+[KM]?, BW=[0-9.]+[MG]iB/s, IOS/call=-?[0-9]+/-?[0-9]+$' /tmp/out)" \
			"$(grep -c 'IOPS=.*IOS/call' /tmp/out | sed 's/^0/some/')"
		equal "tool-U12-u$u-writes-nothing" "$(seen_sectors write)" 0
	done
}

counts()
{
	mark
	run "$tool" -u1 -p0 -d8 -s4 -c4 -b8k --ios 100 -R0 --offset 1M --size 2M --json /dev/vdac0
	equal tool-ios-commands-at-the-device "$(seen | sort -u | wc -l)" 100
	equal tool-b-sectors-each "$(seen | awk '{ print $1, $3 }' | sort -u)" "read 16"
	equal tool-R0-offset-sequence "$(seen | awk '{ print $2 }' | sort -n | sed -n '1p;2p;100p' | tr '\n' ' ')" "2048 2064 3632 "
	equal tool-json-counts "$(values ios read errors ok)" "100 100 0 true"
	between tool-s4-syscalls-per-io "$(values syscalls_per_io)" 0.2 0.3

	mark
	run "$tool" -u1 -p0 -d1 -s1 -c1 -b512 --ios 300 --offset 25% --size 25% /dev/vdac0
	equal tool-R1-stays-in-range "$(seen | awk '$2 < 32768 || $2 >= 65536' | wc -l)" 0
	between tool-R1-spreads "$(seen | awk '{ print int(($2 - 32768) / 4096) }' | sort -u | wc -l)" 8 8

	mark
	works tool-3TiB "$tool" -u1 -p0 --ios 1 -R0 -d1 -b4096 --offset 2251799814144 /dev/vddc0
	equal tool-3TiB-sector "$(seen | head -n 1)" "read 4398046512 8"
	mark
	works tool-two-disks-two-threads "$tool" -u1 -p0 -n2 -d4 --ios 50 -b4096 /dev/vdac0 /dev/vdbc0
	equal tool-two-disks-two-threads-count "$(seen | wc -l)" 100
	mark
	works tool-two-disks-one-thread "$tool" -u1 -p0 -n1 -d4 --ios 50 -b4096 /dev/vdac0 /dev/vdbc0
	equal tool-two-disks-one-thread-count \
		"$(trace | grep handle_read | grep -o 'vdev [^ ]*' | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" "25 25 "
	mark
	run "$tool" -u1 -p0 -W --mix read=3,write=1 --ios 400 -d1 --size 1M --offset 60M /dev/vdac0
	between tool-mix-a-quarter-writes-at-the-device "$(seen | grep -c write)" 60 140
	mark
	run "$tool" -u1 -p0 -d1 --ios 50 --seed 3 /dev/vdac0
	seen >/tmp/seed3
	mark
	run "$tool" -u1 -p0 -d1 --ios 50 --seed 3 /dev/vdac0
	equal tool-seed-same "$(seen | cmp - /tmp/seed3 && wc -l </tmp/seed3)" 50
	mark
	run "$tool" -u1 -p0 -d1 --ios 50 --seed 4 /dev/vdac0
	between tool-seed-another "$(seen | sort - /tmp/seed3 | uniq | wc -l)" 95 100
	for how in "-u1 -B0 /dev/vdac0" "-u1 -V1 --iovecs 4 /dev/vdac0" "-u1 -F0 -X0 /dev/vdac0" "-V1 /dev/vda" \
		   "-S1 /dev/vda" "-a1 -d4 /dev/vda" "-O0 /dev/vda" "--sqe128 /dev/vda" "--defer 0 -u1 /dev/vdac0"; do
		mark
		# shellcheck disable=SC2086 # a list of words
		works "tool-reads-${how// /}" "$tool" -p0 --ios 64 -b4096 -R0 -d16 -s4 $how
		between "tool-reads-${how// /}-sectors" "$(seen_sectors read)" 512 4096
	done
}

# Once a second is a long time: everything's end is asked for here
time_limits()
{
	local began=${EPOCHREALTIME/[.,]/} pid
	run "$tool" -u1 -p0 -d4 -r 1.5 /dev/vdac0
	between tool-F18-r-ends "$(((${EPOCHREALTIME/[.,]/} - began) / 1000))" 1500 6000
	equal tool-F18-r-status-and-lines "$status $(grep -c '^IOPS=' /tmp/out)" "0 1"
	"$tool" -u1 -p0 -d4 -t1 /dev/vdac0 >/tmp/out 2>/tmp/err &
	pid=$!
	await 10 grep -q IOPS= /tmp/out
	kill -TERM $pid
	wait $pid
	equal tool-F16-SIGTERM-ends-with-report "$? $(grep -c '99.9900th' /tmp/out)" "0 1"
}

look_is() { [ "$($1)" = "$2" ]; }

# A tool in the background, looked at from outside while it runs
look()		# NAME WANTED COMMAND-TO-LOOK TOOL-OPTIONS…
{
	local name=$1 wanted=$2 cmd=$3
	shift 3
	"$tool" "$@" >/tmp/out 2>/tmp/err &
	tool_pid=$!
	await 10 look_is "$cmd" "$wanted"
	equal "$name" "$($cmd)" "$wanted"
	kill -INT $tool_pid
	wait $tool_pid
}
ring_info() { cat "/proc/$tool_pid/fdinfo"/* 2>&- | awk -v k="$1:" '$1 == k { print $2 }' | head -n 1; }
threads()	# CPUs that each but the main thread may run on
{
	local t
	for t in "/proc/$tool_pid/task"/*; do
		[ "${t##*/}" = "$tool_pid" ] || awk '/Cpus_allowed_list/ { print $2 }' "$t/status"
	done | sort | tr '\n' ' '
}
sqpoll_threads() { cat "/proc/$tool_pid/task"/*/comm | grep -c iou-sqp; }
free_pages() { awk '/HugePages_Free/ { print $2 }' /proc/meminfo; }
huge_file_maps() { grep -c /dev/hugepages/buf "/proc/$tool_pid/maps"; }

# commands_are NAME CONDITION OPTIONS…: by 64 of them, each as awk's condition says
commands_are()
{
	local name=$1 condition=$2
	shift 2
	probe_clear
	run "$tool" --ios 64 -p0 "$@"
	equal "$name" "$status $(probe_commands | probe_all "$condition")" "0 64 0"
}

# calls_are NAME WANTED AWK-PROGRAM OPTIONS…: what the io_uring_enter()s were
calls_are()
{
	local name=$1 wanted=$2 program=$3
	shift 3
	probe_clear
	run "$tool" --ios 64 -p0 "$@"
	equal "$name" "$status $(probe_enters | awk "$program" | sort -n | uniq | tr '\n' ' ')" "0 $wanted"
}

# How often a submission thread was woken (flag 2): once for many calls in a row,
# as there are while it is to run and gets no CPU
wakes()
{
	awk '/ sys_io_uring_enter\(/ && /flags: [0-9a-f]*[2367abef],/ { n += !woken; woken = 1 }
		/ io_uring_submit_/ { woken = 0 }
		END { print n + 0 }' $tracing/trace
}

# shellcheck disable=SC2016 # awk's words
at_the_driver()
{
	local n=/dev/vdac0
	commands_are tool-u1-op '$3 == 1 && $6 == 8192' -u1 -b8k $n
	commands_are tool-V1-iovecs-op '$3 == 2 && $6 == 4 && !$4' -u1 -V1 --iovecs 4 $n
	commands_are tool-B1-fixed '$4 == 1' -u1 -B1 $n
	commands_are tool-B0-not-fixed '$4 == 0' -u1 -B0 $n
	commands_are tool-sqpoll-cpu '$1 == "iou-sqp" && $2 == 1' -u1 --sqpoll --sqpoll-cpu 1 $n
	commands_are tool-pin-cpu '$1 != "iou-sqp" && $2 == 1' -u1 --pin 1 $n
	if [[ $(uname -r) != 6.1.* ]]; then	# there it is refused, see setup_flags
		commands_are tool-sqe64-op '$3 == 3' -u1 --sqe64 $n
		commands_are tool-sqe64-V1-op '$3 == 4' -u1 --sqe64 -V1 $n
	fi
	calls_are tool-s4-handed-over "4 " '$1 > m { m = $1 } END { print m }' -u1 -d16 -s4 -c4 $n
	calls_are tool-c8-waited-for "8 " '$2 && ++n < 4 { print $2 }' -u1 -d16 -s4 -c8 $n
	calls_are tool-X1-registered-ring "16 " '{ print int($3 / 16) * 16 }' -u1 -X1 $n
	calls_are tool-X0-no-registered-ring "0 " '{ print int($3 / 16) * 16 }' -u1 -X0 $n
	equal tool-F1-at-the-ring "$(run "$tool" -u1 -p0 --ios 8 -F1 $n; probe_entries | tail -n 1 | grep -o .$)" 1
	equal tool-F0-at-the-ring "$(run "$tool" -u1 -p0 --ios 8 -F0 $n; probe_entries | tail -n 1 | grep -o .$)" 0
	# A submission thread that sleeps must be woken for each of 20 I/Os, one that
	# doesn't never
	probe_clear
	run "$tool" -u1 -p0 --ios 20 --rate 20 --sqpoll --sqpoll-idle 5 $n
	between tool-sqpoll-idle-short-wakes "$(wakes)" 15 20
	probe_clear
	run "$tool" -u1 -p0 --ios 20 --rate 20 --sqpoll --sqpoll-idle 5000 $n
	between tool-sqpoll-idle-long-wakes "$(wakes)" 0 3
	probe_clear
	mark
	run "$tool" -N1 --ios 64
	equal tool-N1-nops-only "$(probe_entries | sort | uniq -c | tr -s ' ') $(trace | wc -l)" " 64 NOP 0 0"
	probe_clear
	run "$tool" -u1 -p0 -n3 --ios 40 $n
	equal tool-n3-threads "$(grep ' vblk: ' $tracing/trace | grep -oE '^ *[^ ]+' | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" "40 40 40 "
	probe_clear
	run "$tool" -u1 -p0 --rate 100 --ios 50 -d4 $n
	between tool-rate-one-each-10-ms "$(grep ' vblk: ' $tracing/trace | sed -E 's/.* ([0-9.]+): vblk:.*/\1/' |
		awk 'NR == 1 { a = $1 } { b = $1 } END { print (b - a) / (NR - 1) * 1000 }')" 9.5 12
	without_a_ring
}

# preadv2() and Linux's aio in place of io_uring, and the page cache
without_a_ring()
{
	local name
	for name in preadv2 io_submit; do
		echo 1 >$tracing/events/syscalls/sys_enter_$name/enable
		probe_clear
		case $name in
		preadv2) run "$tool" -p0 -S1 --ios 40 /dev/vda ;;
		*) run "$tool" -p0 -a1 -d4 -s4 --ios 40 /dev/vda ;;
		esac
		between "tool-by-$name" "$(grep -c "sys_$name(" $tracing/trace)" 10 41
		equal "tool-by-$name-no-ring" "$(probe_enters | wc -l)" 0
		echo 0 >$tracing/events/syscalls/sys_enter_$name/enable
	done
	exec 9</dev/vda	# whose last close drops the pages
	run "$tool" -p0 -O0 -R0 --size 256k --ios 64 /dev/vda
	mark
	run "$tool" -p0 -O0 -R0 --size 256k --ios 64 /dev/vda
	equal tool-O0-from-the-page-cache "$(seen_sectors read)" 0
	run "$tool" -p0 -O1 -R0 --size 256k --ios 64 /dev/vda
	equal tool-O1-from-the-device "$(seen_sectors read)" 512
	exec 9<&-
}

from_outside()
{
	look tool-B1-registered 8 "ring_info UserBufs" -u1 -p0 -d8 -B1 /dev/vdac0
	look tool-B0-not-registered 0 "ring_info UserBufs" -u1 -p0 -d8 -B0 /dev/vdac0
	look tool-F1-registered 1 'ring_info UserFiles' -u1 -p0 -d8 -F1 /dev/vdac0
	look tool-F0-not-registered 0 'ring_info UserFiles' -u1 -p0 -d8 -F0 /dev/vdac0
	look tool-pin-threads "0 1 " threads -u1 -p0 -d2 -n2 --pin 0-1 /dev/vdac0
	look tool-sqpoll-thread 1 sqpoll_threads -u1 -p0 -d8 --sqpoll --sqpoll-cpu 1 --sqpoll-idle 100 /dev/vdac0
	echo 8 >/proc/sys/vm/nr_hugepages
	look tool-huge-pages 7 free_pages -u1 -p0 -d8 --huge /dev/vdac0
	mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages
	look tool-H-file 1 huge_file_maps -u1 -p0 -d8 -H /dev/hugepages/buf /dev/vdac0
	rm -f /dev/hugepages/buf
	echo 0 >/proc/sys/vm/nr_hugepages
	refused tool-huge-without-pages 'vm.nr_hugepages' "$tool" -u1 -p0 --huge /dev/vdac0
	refused tool-H-elsewhere 'hugetlbfs' "$tool" -u1 -p0 -H /tmp/buf /dev/vdac0
}

# The flags a ring was made with, as the kernel's tracepoint has them
ring_flags()	# NAME BITS-WANTED BITS-UNWANTED OPTIONS…
{
	local name=$1 want=$2 not=$3 flags
	shift 3
	echo >/sys/kernel/tracing/trace
	run "$tool" --ios 10 -d4 "$@"
	flags=$(sed -nE 's/.*io_uring_create:.* flags (0x)?([0-9a-f]+).*/\2/p' /sys/kernel/tracing/trace | tail -n 1)
	flags=$((16#${flags:-0}))
	equal "$name" "$status $((flags & want)) $((flags & not))" "0 $((want)) 0"
}

setup_flags()
{
	local sqpoll=2 sqe128=1024 cqe32=2048 defer=8192
	echo 1 >/sys/kernel/tracing/events/io_uring/io_uring_create/enable
	ring_flags tool-u1-SQE128 $((sqe128 | cqe32 | defer)) $sqpoll -u1 -p0 /dev/vdac0
	ring_flags tool-defer0 $((sqe128 | cqe32)) $defer -u1 -p0 --defer 0 /dev/vdac0
	ring_flags tool-u0-SQE64 $defer $((sqe128 | cqe32)) -p0 /dev/vda
	ring_flags tool-sqe128-on-block $sqe128 $cqe32 -p0 --sqe128 /dev/vda
	ring_flags tool-sqpoll-flag $sqpoll $defer -u1 -p0 --sqpoll /dev/vdac0
	if [[ $(uname -r) = 6.1.* ]]; then
		refused tool-sqe64-old-kernel 'Linux 6.12 or newer' "$tool" -u1 -p0 --sqe64 /dev/vdac0
	else
		mark
		ring_flags tool-sqe64 $cqe32 $sqe128 -u1 -p0 --sqe64 -b4096 /dev/vdac0
		equal tool-sqe64-at-the-device "$(seen_sectors read)" 80
	fi
}

wrong_node()
{
	refused tool-F01-block-node-for-u1 '/dev/vda is a block node.*/dev/vdac0' "$tool" -u1 -p0 /dev/vda
	refused tool-F01-char-node-for-u0 'character node.*/dev/vda' "$tool" -p0 /dev/vdac0
	refused tool-F01-other-char-device 'not a virtio-blk passthrough node' "$tool" -u1 -p0 /dev/zero
	refused tool-F01-missing 'No such file' "$tool" -u1 -p0 /dev/vdzc0
	refused tool-F23-bs-not-blocks 'no multiple of the disk.s block size 4096' "$tool" -u1 -p0 -b512 /dev/vdbc0
	works tool-F23-bs-3k-of-512 "$tool" -u1 -p0 -b3k --ios 20 /dev/vdac0
	# How much a disk takes in one command depends on the kernel; this one is smaller anyway
	refused tool-too-much-per-command 'more than this disk takes|no room for one I/O' "$tool" -u1 -p0 -b1G -d1 /dev/vdac0
	refused tool-F19-no-poll-queues 'poll_queues=1' "$tool" -u1 /dev/vdac0
	refused tool-F19-no-poll-queues-u0 'poll_queues=1' "$tool" /dev/vda
	refused tool-range-behind-end 'ends behind the disk' "$tool" -u1 -p0 --offset 60M --size 5M /dev/vdac0
	run "$tool" -u1 -p0 -d0 /dev/vdac0
	equal tool-usage-status "$status" 2
	run "$tool" --version
	equal tool-version "$out" "io_uring-vblk $(cat VERSION)"
	run "$tool" --help
	equal tool-help "$status $(grep -c 'Usage:' /tmp/out)" "0 1"
}

# F20, and access by file permission
unprivileged()
{
	local as="setpriv --reuid 65534 --regid 65534 --clear-groups"
	local tool=${tool/#"$top"/\/run}
	open_build
	chmod 0600 /dev/vdac0
	# shellcheck disable=SC2086
	refused tool-EACCES-says-why "Permission denied.*node's group" $as "$tool" -u1 -p0 /dev/vdac0
	chmod 0666 /dev/vdac0
	# shellcheck disable=SC2086,SC2016
	refused tool-F20-memlock-named 'RLIMIT_MEMLOCK, ulimit -l\) is 64 KiB' \
		$as bash -c 'ulimit -l 64; exec "$@"' - "$tool" -u1 -p0 -d64 --ios 100 /dev/vdac0
	# shellcheck disable=SC2086,SC2016
	works tool-F20-without-fixedbufs $as bash -c 'ulimit -l 64; exec "$@"' - "$tool" -u1 -p0 -d64 -B0 --ios 100 /dev/vdac0
	# shellcheck disable=SC2086
	works tool-U16-sqpoll $as "$tool" -u1 -p0 -d8 -B0 --sqpoll --ios 100 /dev/vdac0
	if [ -e /proc/sys/kernel/io_uring_disabled ]; then
		echo 2 >/proc/sys/kernel/io_uring_disabled
		# shellcheck disable=SC2086
		refused tool-io_uring-disabled 'kernel.io_uring_disabled' $as "$tool" -u1 -p0 /dev/vdac0
		echo 0 >/proc/sys/kernel/io_uring_disabled
	fi
	chmod 0600 /dev/vdac0
}

# A sector that cannot be read: status in words, no flood, exit status 1
device_errors()
{
	local u disk
	refused tool-u1-IOERR-in-words 'at byte 2097152: the device answered IOERR \(status 1\)' \
		"$tool" -u1 -p0 -R0 -d1 --ios 4 --offset 2M /dev/vdcc0
	refused tool-u0-EIO 'at byte 2097152: Input/output error' "$tool" -p0 -R0 -d1 --ios 4 --offset 2M /dev/vdc
	for u in 0 1; do
		disk=/dev/vdc
		[ $u = 1 ] && disk=/dev/vdcc0
		# One at a time: QEMU merges neighbours, and then they fail together
		run "$tool" -u$u -p0 -R0 -d1 -b512 --ios 160 --offset 2M --size 4096 --continue --json $disk
		equal "tool-continue-counts-u$u" "$status $(values errors ios ok)" "1 20 160 false"
		equal "tool-continue-lines-u$u" "$(wc -l </tmp/err | awk '{ print ($1 < 25) }')" 1
	done
}

# A disk of 60 I/Os a second: what is in flight, and the open loop's honesty
slow_disk()
{
	mark
	run "$tool" -u1 -p0 -d7 -s7 -c1 -b4096 --ios 60 /dev/vdec0
	equal tool-d-in-flight-at-the-device "$(seen_depth)" 7
	run "$tool" -u1 -p0 -d4 -s4 -c4 -b4096 --rate 30 -r 3 --json /dev/vdec0
	between tool-rate-below-the-disk "$(values ios)" 80 100
	mark
	run "$tool" -u1 -p0 -d4 -b4096 --rate 240 -r 3 --json /dev/vdec0
	between tool-rate-above-shows-the-queue "$(values p50)" 500000000 3000000000
	# 4 ticks of a clock four times as fast are one: so much the shorter
	run "$tool" -u1 -p0 -d4 -t1 -T 1000000000 --ios 60 --json /dev/vdec0
	local slow
	slow=$(values p50)
	run "$tool" -u1 -p0 -d4 -t1 -T 4000000000 --ios 60 --json /dev/vdec0
	between tool-T-scales-latency "$((slow * 100 / $(values p50)))" 300 530
	run "$tool" -u1 -p0 -d4 -b4096 -t1 -r 2 --json /dev/vdec0
	between tool-closed-loop-hides-it "$(values p50)" 20000000 200000000
}

# One I/O in 3000 takes a second at the device: the median doesn't know, the
# 99.99th and the maximum do
percentiles()
{
	dev_up pc --size 16M
	ctl 'rule sector=20000 delay=1000' >&2
	run "$tool" -u1 -p0 -R0 -d2 -s1 -c1 -b512 --offset 9472k --size 1500k --ios 3000 -t1 --json "/dev/${disk}c0"
	equal tool-t1-counts-each "$status $(values n)" "0 3000"
	between tool-t1-max-has-the-slow-one "$(values max)" 1000000000 3000000000
	between tool-t1-p99.99-has-the-slow-one "$(values p99.99)" 990000000 3000000000
	between tool-t1-p99.9-has-not "$(values p99.9)" 1000 900000000
	between tool-t1-p50-has-not "$(values p50)" 1000 100000000
	between tool-t1-min-below-p50 "$(values min)" 1000 "$(values p50)"
	run "$tool" -u1 -p0 -R0 -d2 -s1 -c1 -b512 --offset 9472k --size 1500k --ios 3000 -t1 "/dev/${disk}c0"
	between tool-t1-text "$(grep -oE '99.9900th=\[ *[0-9]+' /tmp/out | grep -o '[0-9]*$')" 990000 3000000
	dev_down
}

# A device that never answers: one signal ends the run, a second the waiting for
# what is in flight, in words. The process ends with the kernel's commands.
silent_device()
{
	dev_up silent --size 16M
	ctl 'rule type=in hold' 'mark asked' >&2
	"$tool" -u1 -p0 -d2 -s2 -c1 "/dev/${disk}c0" >/tmp/out 2>/tmp/err &
	tool_pid=$!
	await 10 look_is held_reads 2
	kill -INT $tool_pid
	await 20 grep -q 'waiting for I/O in flight (interrupt again to give up)' /tmp/err
	kill -INT $tool_pid
	await 10 grep -q 'interrupted twice: leaving I/O unanswered; the device does not reply' /tmp/err
	ctl clear release >&2
	wait $tool_pid
	equal tool-silent-device-second-SIGINT-gives-up "$? $(grep -c ^io_uring-vblk: /tmp/err)" "1 2"
	dev_down
}
held_reads() { sed '1,/asked/d' "$log" | grep -c '"name":"in"'; }

# Each operation of --mix reaches the device as its own command, by its weight
mixed_ops()
{
	local op sent
	dev_up mx --size 16M --feature flush --feature discard --feature write_zeroes
	ctl 'mark mixed' >&2
	run "$tool" -u1 -p0 -W --mix read=1,write=1,trim=1,zeroes=1,flush=1 -d4 --ios 250 --json "/dev/${disk}c0"
	equal tool-mix-of-all "$status $(values ios ok)" "0 250 true"
	for op in read=in write=out trim=discard zeroes=write_zeroes flush=flush; do
		sent=$(sed '1,/mixed/d' "$log" | grep -c "\"name\":\"${op#*=}\"")
		between "tool-mix-${op%=*}-at-the-device" "$sent" 25 80
		equal "tool-mix-${op%=*}-counted" "$(values "${op%=*}")" "$sent"
	done
	dev_down
}

# A run for each side, in this order: block, node; node, block
compare()
{
	local b0 b1
	b0=$(awk '$3 == "vde" { print $4 }' /proc/diskstats)
	probe_off	# as the slow disk does, it keeps what is looked through small
	echo >$tracing/trace
	mark
	run "$tool" --compare -p0 -d8 -s4 -c4 --repeats 2 -r 0.5 --json /dev/vdec0
	b1=$(awk '$3 == "vde" { print $4 }' /proc/diskstats)
	equal tool-compare-by-turns "$(sed -nE 's/.*io_uring_create:.* flags (0x)?([0-9a-f]+).*/0x\2/p' $tracing/trace |
		while read -r flags; do echo $((flags >> 10 & 1)); done | tr -d '\n')" 0110
	equal tool-compare-json "$status $(values n ok)" "0 2 true"
	between tool-compare-both-at-the-device "$(seen | wc -l)" $((b1 - b0 + 10)) 10000000
	between tool-compare-block-side "$((b1 - b0))" 10 10000000
	run "$tool" --compare -p0 -d4 --repeats 1 -r 0.2 /dev/vda
	between tool-compare-table-ratio "$(awk '/^QD4/ { for (i = 1; i <= NF; i++) if ($i == "-") r = $(i - 2);
		b = $(NF - 12); p = $(NF - 11); print r * b / p }' /tmp/out)" 0.9 1.1
	works tool-matrix "$tool" --matrix --repeats 1 -r 0.1 /dev/vda
	equal tool-matrix-rows "$(grep -c '^QD' /tmp/out) $(grep -c 'not run: no poll queues' /tmp/out)" "9 3"
}

guest()
{
	# As tests/cases/lib.sh has it: a shell on one CPU costs half
	taskset -pc 0 $$ >/dev/null
	probe_on || fail tool-probe "no kprobe at the driver" "one"
	unprivileged
	if vduse_beside tool-mix-percentiles-silent; then
		mixed_ops
		percentiles
		silent_device
	fi
	at_the_driver
	proposal
	counts
	time_limits
	from_outside
	setup_flags
	wrong_node
	device_errors
	slow_disk
	compare
	exit $failed
}

if [ "${1:-}" = guest ]; then guest; else host; fi
