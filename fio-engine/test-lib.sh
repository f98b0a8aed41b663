# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For tests/cases/fio-*.sh, on top of tests/cases/lib.sh.
#
# Every behaviour is tried with the distribution's fio and, if "make fio-newest"
# has been done, with Debian's newest fio, patched; FIOS="stock" leaves it at
# one.

# shellcheck source=SCRIPTDIR/../tests/cases/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tests/cases/lib.sh"

# Host: the folder for images that the guest sees as $VM_SCRATCH, and the engine
fio_host() {
	need_tool fio fio
	if ! make -s -C "$top" fio > "$work/make" 2>&1; then
		skip all "make fio: $(tail -n 1 "$work/make")"
		exit 77
	fi
	share=$work/share
	mkdir -p "$share"
}

sum() { sha256sum < "$1" | cut -d ' ' -f 1; }

# Guest: each_fio FUNCTION...: all of them with one fio, then with the next
each_fio() {
	local step fios=(stock)
	cd /tmp || exit 125
	log=/tmp/fio.log
	if [ "$DRIVER" = ours ] && [ ! -e /sys/class/vblk-generic ]; then
		skip all "the driver has no passthrough node"
		exit 77
	fi
	[ ! -x "$top/build/fio/newest" ] || fios+=(newest)
	[ -z "${FIOS:-}" ] || read -ra fios <<< "$FIOS"
	for fio in "${fios[@]}"; do
		case $fio in
		stock)
			fio_cmd=(fio)
			engine=external:$top/build/fio/fio-vblk.so ;;
		newest)
			fio_cmd=("$top/build/fio/newest")
			engine=io_uring_cmd ;;
		esac
		for step in "$@"; do "$step"; done
	done
}

# run [options]: one job by passthrough; $? and $log are the result
run() {
	timeout -k 5 "${FIO_TIMEOUT:-90}" "${fio_cmd[@]}" --name=t \
		--ioengine="$engine" --cmd_type=vblk "$@" > "$log" 2>&1
}

# What fio said about a failure, in one line
said() { grep -E 'fio:|error|failed' "$log" | head -n 4 | tr '\n' '|'; }

# fio_works NAME [options]
fio_works() {
	local name="$1-$fio" rc
	shift
	run "$@"; rc=$?
	if [ $rc -ne 0 ]; then
		fail "$name" "exit $rc ($(said))" "exit 0 of $*"
		return 1
	elif ! grep -Eq 'err= 0' "$log" || ! grep -q 'issued rwts' "$log"; then
		fail "$name" "$(tail -n 2 "$log")" "a report of $*"
		return 1
	fi
	pass "$name"
}

# fio_refused NAME PATTERN [options]: fails, with PATTERN in one line of its own
fio_refused() {
	local name="$1-$fio" pattern=$2 rc
	shift 2
	run "$@"; rc=$?
	if [ $rc -eq 0 ] || [ $rc -ge 124 ]; then
		fail "$name" "exit $rc" "a refusal of $*"
	elif [ "$(grep -Ec "fio: vblk: .*$pattern" "$log")" != 1 ]; then
		fail "$name" "$(said)" "one line with \"$pattern\" for $*"
	else
		pass "$name"
	fi
}

# What QEMU's blklogwrites put down about a disk: lines of "write SECTOR COUNT",
# "discard SECTOR COUNT" and "flush". log_mark FILE begins, log_since FILE
# prints what came after.
log_mark() { stat -c %s "$1" > /tmp/log-mark; }
log_since() { "$top/fio-engine/logwrites" "$1" "$(cat /tmp/log-mark)"; }
