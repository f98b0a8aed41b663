#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fio's engine and io_uring-vblk, built with the address, leak and undefined-
# behaviour checkers, on the ways out: refused set-ups, errors of the device,
# a signal, a disk that goes away (F12).
#~ timeout 900
#~ soak
set -u
# shellcheck disable=SC2034 # tests/cases/lib.sh: threads and pollers want their CPUs
all_cpus=1

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"
# shellcheck source=SCRIPTDIR/../device/lib.sh
. "$top/tests/device/lib.sh"

tool=$top/build/sanitized/t/io_uring-vblk
object=$top/build/sanitized/fio/fio-vblk.so
reports=/tmp/reports

host() {
	if [ -z "${SOAK:-}" ]; then
		skip all "takes minutes; make soak runs it"
		exit 77
	fi
	need_tool vdpa iproute2
	fio_host
	if ! make -s -C "$top" sanitized > "$work/make" 2>&1; then
		skip all "make sanitized: $(tail -n 1 "$work/make")"
		exit 77
	fi
	make -s -C "$top" device >&2
	truncate -s 4M "$share/bad" "$share/good"
	fio_guest --disk "raw:$share/bad,eio=1000,queues=2,discard" \
		--disk null:4M,ro --disk "raw:$share/good,queues=2" -- inside
}

# Everything but fio's own leaks: blocks of a report in which our object or
# file occurs, or that aren't about leaks at all
faults() {
	cat $reports/* 2>&- | awk -v RS= '
		/runtime error|ERROR: AddressSanitizer/ { print; next }
		/leak of/ && /fio-vblk|engines\/(vblk|io_uring)|io_uring-vblk/'
}

# clean NAME STATUS COMMAND...: ends so, the checkers watched and saw no fault.
# STATUS is 0, or "failure" for any of a refusal's.
clean() {
	local name=$1 want=$2 rc seen said
	shift 2
	rm -rf $reports
	mkdir -m 777 $reports
	timeout -k 5 120 "$@" > "$fio_log" 2>&1; rc=$?
	case $rc in
	0|124|137) ;;
	*) [ "$want" = 0 ] || rc=failure ;;
	esac
	seen=$(cat $reports/* 2>&- | grep -c 'AddressSanitizer Init done')
	said=$(faults | head -n 30 | tr '\n' '|')
	if [ "$rc" != "$want" ]; then
		fail "$name" "exit $rc ($(tail -n 3 "$fio_log"))" "$want"
	elif [ "$seen" = 0 ]; then
		fail "$name" "no checker at work" "one"
	elif [ -n "$said" ]; then
		fail "$name" "$said" "nothing from the checkers"
	else
		pass "$name"
	fi
}

checkers() {
	export ASAN_OPTIONS=log_path=$reports/a:verbosity=1:detect_leaks=1:verify_asan_link_order=0
	export LSAN_OPTIONS=exitcode=0
	export UBSAN_OPTIONS=log_path=$reports/u:print_stacktrace=1
}

# add NAME options: a job for the next fio. In threads: a forked job of fio's ends
# without what looks for leaks.
many=()
add() {
	many+=(--name="$1" "--ioengine=external:$object" --cmd_type=vblk --thread=1
		"${@:2}" --stonewall)
}

# jobs NAME STATUS [PATTERN LINES]: one fio for what was added; so many lines of
# what it says are like that
jobs() {
	clean "fio-$1" "$2" "${as[@]}" env "LD_PRELOAD=$asan" fio "${many[@]}"
	many=()
	[ $# = 2 ] || check "fio-$1-each" "$(grep -Ec "$3" "$fio_log")" "$4"
}

fio_jobs() {
	local bad=/dev/vdac0 ro=/dev/vdbc0 good=/dev/vdcc0
	add plain --filename=$good --rw=randrw --size=256k --iodepth=8 \
		--fixedbufs=1 --registerfiles=1 --fsync=8
	add vectored-two-files --filename=$good:$bad --rw=randread \
		--size=128k --nonvectored=0 --numjobs=3 --registerfiles=1 \
		--group_reporting=1
	add trim --filename=$bad --rw=randtrim --offset=1M --size=256k --iodepth=8
	add sqpoll --filename=$good --rw=read --size=64k --sqthread_poll=1
	add IOERR-ignored --filename=$bad --rw=read --size=1M --iodepth=4 \
		--ignore_error=EIO --continue_on_error=io
	jobs works 0 'groupid=.*err= 0' 4
	add IOERR --filename=$bad --rw=read --size=1M --iodepth=16 --fixedbufs=1
	jobs IOERR failure 'device answered IOERR' 1
	add missing --filename=/dev/vdzc0 --rw=read
	add one-of-two-missing --filename=$good:/dev/vdzc0 --rw=read
	add block-node --filename=/dev/vda --rw=read
	add read-only --filename=$ro --rw=write
	add no-poll-queues --filename=$good --rw=read --hipri=1
	add bs --filename=$good --rw=read --bs=700
	add nvme-only --filename=$good --rw=write --sync=1
	jobs refused failure 'fio: vblk: ' 7
	add cmd_type --filename=$good --rw=read --cmd_type=none
	jobs cmd_type failure
}

unprivileged() {
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups
		--inh-caps=-all --bounding-set=-all prlimit --memlock=65536)
	local tool=${tool/#"$top"/\/run} object=${object/#"$top"/\/run}

	open_build
	chmod 666 /dev/vdcc0
	add EACCES --filename=/dev/vdac0 --rw=read
	add memlock --filename=/dev/vdcc0 --rw=read --fixedbufs=1 --iodepth=64
	jobs unprivileged failure 'fio: vblk: .*(Permission|RLIMIT_MEMLOCK)' 2
	clean tool-memlock failure "${as[@]}" "$tool" -u1 -p0 /dev/vdcc0
	chmod 600 /dev/vdcc0
	clean tool-EACCES failure "${as[@]}" "$tool" -u1 -p0 /dev/vdcc0
}

zones() {
	dev_up sz --size 24M --zoned hm
	add zones "--filename=/dev/${disk}c0" --zonemode=zbd --rw=write \
		--bs=64k --size=4M --verify=crc32c
	add zones-IOERR "--filename=/dev/${disk}c0" --rw=write --bs=64k \
		--offset=5M --size=64k
	jobs zones failure '^zones: .*err= 0|^zones-IOERR: .*err= *[1-9]' 2
	dev_down
}

tools() {
	local bad=/dev/vdac0 good=/dev/vdcc0
	clean tool-plain 0 "$tool" -u1 -p0 -t1 -n2 --ios 200 --json $good
	clean tool-verify 0 "$tool" -u1 -p0 -W --verify -d4 --size 1M --ios 200 \
		--mix read=1,write=1,zeroes=1,flush=1 $good
	clean tool-IOERR failure "$tool" -u1 -p0 -R0 --size 1M --ios 200 $bad
	clean tool-IOERR-continue failure "$tool" -u1 -p0 -R0 --size 1M --ios 300 \
		-d4 --continue $bad
	clean tool-missing failure "$tool" -u1 -p0 $good /dev/vdzc0
	clean tool-block-node failure "$tool" -u1 -p0 /dev/vda
	clean tool-read-only failure "$tool" -u1 -p0 -W /dev/vdbc0
	clean tool-no-poll-queues failure "$tool" -u1 $good
	clean tool-huge failure "$tool" -u1 -p0 --huge $good
	clean tool-compare 0 "$tool" --compare -p0 -d4 --repeats 1 -r 0.2 /dev/vdc
	clean tool-rate 0 "$tool" -u1 -p0 --rate 500 -r 0.5 $good
}

# as soon as the node has done something: COMMAND
once_busy() {
	local stat=/sys/class/vblk-generic/vdcc0/stat first
	first=$(cat $stat)
	await 60 stat_changed "$first" $stat
	"$@"
}
stat_changed() { [ "$(cat "$2")" != "$1" ]; }

interrupt() { pkill -INT -P "$(pgrep -xo timeout)"; }
unplug() { echo 1 > "$(realpath /sys/block/vdc/device/..)/remove"; }

# A signal, then the removal of the disk, while there is I/O on it
endings() {
	local good=/dev/vdcc0
	once_busy interrupt &
	add SIGINT --filename=$good --rw=randread --time_based=1 \
		--runtime=60 --iodepth=8
	jobs SIGINT failure
	once_busy interrupt &
	clean tool-SIGINT 0 "$tool" -u1 -p0 $good
	wait
	once_busy unplug &
	clean tool-unplugged failure "$tool" -u1 -p0 $good
	wait
	echo 1 > /sys/bus/pci/rescan
	await 10 test -c $good
	once_busy unplug &
	add unplugged --filename=$good --rw=randread --time_based=1 \
		--runtime=60 --iodepth=8
	jobs unplugged failure
	wait
}

inside() {
	local as=()
	cd /tmp || exit 125
	fio_log=/tmp/fio.log
	asan=$(ldd "$object" | awk '/libasan/ { print $3 }')
	checkers
	fio_jobs
	! vduse_beside zones || zones
	tools
	unprivileged
	endings
}

case_main "$@"
