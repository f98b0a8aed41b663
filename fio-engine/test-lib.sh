# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For tests/cases/fio-*.sh, on top of tests/cases/lib.sh.
#
# Three fios are tried: the distribution's with fio-vblk.so ("stock"), the same
# version patched ("own") and Debian's newest patched ("newest"). The latter two
# are there after "make fio-whole"; they start faster in a guest, so if there is
# one of them, the distribution's does the short list only. FIOS names those to try.

# shellcheck source=SCRIPTDIR/../tests/cases/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tests/cases/lib.sh"
# shellcheck source=SCRIPTDIR/../t/probe.sh
. "$(dirname "${BASH_SOURCE[0]}")/../t/probe.sh"

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

fio_guest() { guest --timeout 900 --env "FIOS=${FIOS:-}" "$@"; }

sum() { sha256sum < "$1" | cut -d ' ' -f 1; }

# Guest: each_fio FUNCTION... -- FUNCTION...: the first list with every fio, the
# second with those that aren't meant to do the short list only
each_fio() {
	local fios=(stock) short='' step rest
	cd /tmp || exit 125
	fio_log=/tmp/fio.log
	if [ "$DRIVER" = ours ] && [ ! -e /sys/class/vblk-generic ]; then
		skip all "the driver has no passthrough node"
		exit 77
	fi
	[ ! -x "$top/build/fio/own" ] || fios+=(own)
	[ ! -x "$top/build/fio/newest" ] || fios+=(newest)
	[ ${#fios[@]} = 1 ] || short=stock
	if [ -n "${FIOS:-}" ]; then
		read -ra fios <<< "$FIOS"
		short=
	fi
	for fio in "${fios[@]}"; do
		case $fio in
		stock)
			fio_cmd=(fio)
			engine=external:$top/build/fio/fio-vblk.so ;;
		*)
			fio_cmd=("$top/build/fio/$fio")
			engine=io_uring_cmd ;;
		esac
		rest=
		for step in "$@"; do
			if [ "$step" = -- ]; then
				rest=1
			elif [ -z "$rest" ] || [ "$fio" != "$short" ]; then
				"$step"
			fi
		done
	done
}

# Whether this fio is new enough for write_mode= and the like
modern() {
	local version
	version=$("${fio_cmd[@]}" --version)
	version=${version#fio-3.}
	[ "${version%%[^0-9]*}" -ge 36 ]
}

# run [options]: one job by passthrough; $? and $fio_log are the result
run() {
	timeout -k 5 "${FIO_TIMEOUT:-90}" "${fio_cmd[@]}" --name=t \
		--ioengine="$engine" --cmd_type=vblk "$@" > "$fio_log" 2>&1
}

# A job file, as it stands: the distribution's fio with the engine preloaded
run_job() {
	local preload=''
	[ "$fio" != stock ] || preload=$top/build/fio/fio-vblk.so
	LD_PRELOAD=$preload timeout -k 5 120 "${fio_cmd[@]}" "$@" > "$fio_log" 2>&1
}

# The example job examples/fio/NAME.fio, cut short, on another disk
example_job() {
	sed -e 's/^runtime=.*/runtime=1/' -e "s|/dev/vda|/dev/${2:-vda}|" \
		"$top/examples/fio/$1.fio" > "/tmp/$1.fio"
	run_job "/tmp/$1.fio"
}

# commands NAME CONDITION [options]: it works, and every command that reached
# the driver meanwhile fulfils the condition, in awk's words on the fields of
# probe_commands (t/probe.sh)
commands() {
	local name=$1 condition=$2 all bad
	shift 2
	probe_clear
	fio_works "$name" "$@" || return
	read -r all bad < <(probe_commands | probe_all "$condition")
	if [ "$all" -ge 32 ] && [ "$bad" = 0 ]; then
		pass "$name-at-the-driver-$fio"
	else
		fail "$name-at-the-driver-$fio" "$bad of $all otherwise" \
			"at least 32 with $condition"
	fi
}

# What fio said about a failure, in one line
fio_said() { grep -E 'fio:|error|failed' "$fio_log" | head -n 4 | tr '\n' '|'; }

# fio_works NAME [options]
fio_works() {
	local name="$1-$fio" rc
	shift
	run "$@"; rc=$?
	if [ $rc -ne 0 ]; then
		fail "$name" "exit $rc ($(fio_said))" "exit 0 of $*"
		return 1
	elif ! grep -Eq 'err= 0' "$fio_log" || ! grep -q 'issued rwts' "$fio_log"; then
		fail "$name" "$(tail -n 2 "$fio_log")" "a report of $*"
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
	elif [ "$(grep -Ec "fio: vblk: .*$pattern" "$fio_log")" != 1 ]; then
		fail "$name" "$(fio_said)" "one line with \"$pattern\" for $*"
	else
		pass "$name"
	fi
}

# What QEMU's blklogwrites put down about a disk: lines of "write SECTOR COUNT",
# "discard SECTOR COUNT" and "flush". log_mark FILE begins, log_since FILE
# prints what came after.
log_mark() { stat -c %s "$1" > /tmp/log-mark; }
log_since() { "$top/fio-engine/logwrites" "$1" "$(cat /tmp/log-mark)"; }
