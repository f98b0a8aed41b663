# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For tests/cases/fio-*.sh, on top of tests/cases/lib.sh.
#
# Two fios are tried: the distribution's with fio-vblk.so ("stock") and Debian's
# newest patched ("newest"), which make check builds where its source is to be had.
# FIOS names others to try: "own" is the distribution's version patched, of "make
# fio-whole".

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

# Guest: each_fio FUNCTION...
each_fio() {
	local fios=(stock) step
	cd /tmp || exit 125
	fio_log=/tmp/fio.log
	if [ "$DRIVER" = ours ] && [ ! -e /sys/class/vblk-generic ]; then
		skip all "the driver has no passthrough node"
		exit 77
	fi
	if [ -n "${FIOS:-}" ]; then
		read -ra fios <<< "$FIOS"
	elif [ -x "$top/build/fio/newest" ]; then
		fios+=(newest)
	else
		skip newest "Debian's newest fio is not built (make check or make fio-whole does)"
	fi
	for fio in "${fios[@]}"; do
		case $fio in
		stock)
			fio_cmd=(fio)
			engine=external:$top/build/fio/fio-vblk.so ;;
		*)
			fio_cmd=("$(realpath "$top/build/fio/$fio")")
			engine=io_uring_cmd ;;
		esac
		for step in "$@"; do "$step"; done
	done
}

# Whether this fio is new enough for write_mode= and the like
modern() {
	local version
	version=$("${fio_cmd[@]}" --version)
	version=${version#fio-3.}
	[ "${version%%[^0-9]*}" -ge 36 ]
}

# newer NAME WHAT: whether this fio has WHAT, which NAME is about; else a SKIP
newer() { modern || { skip "$1-$fio" "this fio has no $2"; return 1; }; }

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

# our_job NAME [DISK]: examples/fio/NAME.fio, cut short, on another disk, in /tmp;
# example_job runs it
our_job() {
	sed -e 's/^runtime=.*/runtime=1/' -e "s|/dev/vda|/dev/${2:-vda}|" \
		"$top/examples/fio/$1.fio" > "/tmp/$1.fio"
}
example_job() {
	our_job "$@"
	run_job "/tmp/$1.fio"
}

# Starting fio costs most of what a job does here. Between "together" and "apart"
# fio_works, fio_refused and commands only note what they are asked for; then one
# fio runs all of it, one job after the other, and each is judged.
collecting=
together() {
	batch=() kinds=() names=() wants=()
	collecting=1
}

# collect KIND NAME WANT [options]: what judge_KIND NAME WANT will look at
collect() {
	kinds+=("$1") names+=("$2") wants+=("$3")
	batch+=(--name="$2" "${@:4}" --stonewall)
}

apart() {
	local i rc status=0 refusals
	collecting=
	[[ ${kinds[*]} != *commands* ]] || probe_clear
	timeout -k 5 "${FIO_TIMEOUT:-300}" "${fio_cmd[@]}" "${batch[@]}" \
		> "$fio_log" 2>&1
	rc=$?
	[[ ${kinds[*]} != *commands* ]] || cat $tracing/trace > /tmp/trace
	reports
	mapfile -t refusals < <(grep 'fio: vblk: ' "$fio_log")
	for i in "${!names[@]}"; do
		case ${kinds[i]} in works|commands) ;; *) status=$((status + 1)) ;; esac
		"judge_${kinds[i]}" "${names[i]}-$fio" "${names[i]}" "${wants[i]}"
	done
	# which is the number of jobs that failed
	[ $rc = $status ] || fail "exit-of-${names[0]}-and-others-$fio" \
		"$rc ($(fio_said))" $status
}

# What fio reports about each job: its errno, its pid and the number of its I/Os
declare -A errno pid ios
reports() {
	local name err id count
	errno=() pid=() ios=()
	while IFS=$'\t' read -r name err id count; do
		errno[$name]=$err pid[$name]=$id ios[$name]=$count
	done < <(awk '
		function tell() { if (name) print name "\t" err + 0 "\t" id + 0 "\t" ios + 0 }
		/^[^ ].*: \(groupid=/ {
			tell(); name = err = id = $0; ios = 0
			sub(/: \(groupid=.*/, "", name); sub(/.*err= */, "", err); sub(/.* pid=/, "", id)
		}
		/issued rwts:/ { sub(/.*total=/, ""); split($0, n, /[, ]/); ios = n[1] + n[2] + n[3] + n[4] }
		END { tell() }' "$fio_log")
}

judge_works() {
	if [ "${errno[$2]:-none}" = 0 ] && [ "${ios[$2]}" -gt 0 ]; then
		pass "$1"
	else
		fail "$1" "errno ${errno[$2]:-none}, ${ios[$2]:-no} I/Os ($(fio_said))" \
			"0 and some"
		return 1
	fi
}

# fio sets up all jobs before any runs, in their order, and says nothing more of
# one whose set-up was refused: the first refusal is of the first such job.
judge_refused() {
	if [ "${errno[$2]:-none}" = 0 ]; then
		fail "$1" "a report of success" "a refusal"
	elif [[ ! ${refusals[0]:-} =~ $3 ]]; then
		fail "$1" "'${refusals[0]:-}'" "'$3'"
	else
		pass "$1"
	fi
	refusals=("${refusals[@]:1}")
}

# Every command that its process sent to the driver fulfils the condition
judge_commands() {
	local all bad
	judge_works "$1" "$2" || return
	probe_of "${pid[$2]}"
	read -r all bad < <(probe_commands | probe_all "$3")
	if [ "$all" -ge 32 ] && [ "$bad" = 0 ]; then
		pass "$2-at-the-driver-$fio"
	else
		fail "$2-at-the-driver-$fio" "$bad of $all otherwise" \
			"at least 32 with $3"
	fi
}

with_engine() { "$@" --ioengine="$engine" --cmd_type=vblk "${options[@]}"; }

# commands NAME CONDITION [options], when collecting: it works, and every command
# that reached the driver fulfils the condition, in awk's words on the fields of
# probe_commands (t/probe.sh)
commands() {
	local options=("${@:3}")
	with_engine collect commands "$1" "$2"
}

# What fio said about a failure, in one line
fio_said() { grep -E 'fio:|error|failed' "$fio_log" | head -n 4 | tr '\n' '|'; }

# fio_works NAME [options]
fio_works() {
	local name="$1-$fio" options=("${@:2}") rc
	if [ -n "$collecting" ]; then
		with_engine collect works "$1" ''
		return
	fi
	run "${options[@]}"; rc=$?
	if [ $rc -ne 0 ]; then
		fail "$name" "exit $rc ($(fio_said))" "exit 0 of ${options[*]}"
		return 1
	elif ! grep -Eq 'err= 0' "$fio_log" || ! grep -q 'issued rwts' "$fio_log"; then
		fail "$name" "$(tail -n 2 "$fio_log")" "a report of ${options[*]}"
		return 1
	fi
	pass "$name"
}

# fio_refused NAME PATTERN [options]: fails, with PATTERN in one line of its own
fio_refused() {
	local name="$1-$fio" pattern=$2 options=("${@:3}") rc
	if [ -n "$collecting" ]; then
		with_engine collect refused "$1" "$pattern"
		return
	fi
	run "${options[@]}"; rc=$?
	if [ $rc -eq 0 ] || [ $rc -ge 124 ]; then
		fail "$name" "exit $rc" "a refusal of ${options[*]}"
	elif [ "$(grep -Ec "fio: vblk: .*$pattern" "$fio_log")" != 1 ]; then
		fail "$name" "$(fio_said)" "one line with \"$pattern\" for ${options[*]}"
	else
		pass "$name"
	fi
}

# What QEMU's blklogwrites put down about a disk: lines of "write SECTOR COUNT",
# "discard SECTOR COUNT" and "flush". log_mark FILE begins, log_take FILE puts what
# came after into /tmp/log. Jobs that ran together are told apart by their place:
# each is given a MiB of the disk, not the first, and log_of MIB prints its lines, a
# flush being of the job that wrote before.
log_mark() { stat -c %s "$1" > /tmp/log-mark; }
log_take() { "$top/fio-engine/logwrites" "$1" "$(cat /tmp/log-mark)" > /tmp/log; }
log_of() { awk -v mib="$1" '$1 != "flush" { at = int($2 / 2048) } at == mib' /tmp/log; }

# image NAME: the image of a disk as it is now, in /tmp/image, as looking at it
# through the share is slow
image() { dd if="$VM_SCRATCH/$1" of=/tmp/image bs=256k status=none; }
