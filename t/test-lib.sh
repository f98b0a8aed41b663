# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Part of tests/cases/tool-*.sh: one boot, many checks. Such a script runs
# itself once more in the guest, as `SCRIPT guest`; $self is its path.
# shellcheck disable=SC2034,SC2154 # used by, and set by, the scripts

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
cd "$top" || exit 1
tool=$top/build/t/io_uring-vblk
pattern=$top/build/t/vblk-pattern
failed=0

# Each check's time is the time since the last one
clock=${EPOCHREALTIME/[.,]/}
pass()
{
	local now=${EPOCHREALTIME/[.,]/}
	printf 'PASS %s (%d.%d s)\n' "$1" $(((now - clock) / 1000000)) $(((now - clock) / 100000 % 10))
	clock=$now
}
fail() { printf 'FAIL %s: got %s, wanted %s\n' "$1" "${2:-nothing}" "$3"; failed=1; clock=${EPOCHREALTIME/[.,]/}; }
skip() { printf 'SKIP %s: %s\n' "$1" "$2"; clock=${EPOCHREALTIME/[.,]/}; }

equal()		# NAME GOT WANTED
{
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "$2" "$3"; fi
}
between()	# NAME GOT LOW HIGH (numbers, fractions allowed)
{
	if awk "BEGIN { exit !(${2:-0} >= $3 && ${2:-0} <= $4) }"; then pass "$1"; else fail "$1" "$2" "$3 to $4"; fi
}

# Run the tool; $status, and what it said in $out and $err
run()
{
	"$@" >"$outdir/out" 2>"$outdir/err" </dev/null
	status=$?
	out=$(<"$outdir/out") err=$(<"$outdir/err")
	case " $* " in *" --json "*) [ -z "${VM_SCRATCH:-}" ] || cp "$outdir/out" "$VM_SCRATCH/$((++outputs)).json" ;; esac
}
outputs=0 outdir=/tmp
err_line() { tr '\n' ' ' <"$outdir/err"; }

works()		# NAME COMMAND…
{
	local name=$1
	shift
	run "$@"
	if [ $status -eq 0 ]; then pass "$name"; else fail "$name" "status $status: $(err_line)" "status 0"; fi
}
# Refused in one line that says what to do, status 1
refused()	# NAME REGEX COMMAND…
{
	local name=$1 regex=$2
	shift 2
	run "$@"
	if [ $status -eq 1 ] && [[ $err =~ $regex ]] && [ "$(wc -l <"$outdir/err")" -eq 1 ]; then
		pass "$name"
	else
		fail "$name" "status $status, $(wc -l <"$outdir/err") lines: $(err_line)" "status 1 and a line like '$regex'"
	fi
}
# The first value of that name in the tool's JSON in $out. Python would take a
# guest seconds; the host looks at the form of it afterwards
value()		# NAME
{
	local rest=${out#*"\"$1\": "}
	rest=${rest%%[,\}$'\n']*}
	value=${rest//\"/}
}
json_valid()	# on the host
{
	local f bad=
	for f in "$work"/*.json; do python3 -m json.tool "$f" >/dev/null || bad+=" $f"; done
	equal "${self##*/}-json-is-json" "$bad" ""
}

# What QEMU has seen on all disks since mark: lines "read|write SECTOR SECTORS"
mark() { trace_mark=$(stat -c %s "$VM_SCRATCH/trace"); }
trace() { tail -c +$((trace_mark + 1)) "$VM_SCRATCH/trace"; }
seen()
{
	trace |
		sed -nE 's/.*virtio_blk_handle_(read|write) .* sector ([0-9]+) nsectors ([0-9]+).*/\1 \2 \3/p'
}
seen_sectors() { seen | awk -v op="$1" '$1 == op { n += $3 } END { print n + 0 }'; }
# The most commands that the device had and hadn't answered
seen_depth()
{
	trace | awk '
		/virtio_blk_handle_/ { if (++n > max) max = n }
		/virtio_blk_req_complete/ { n-- }
		END { print max + 0 }'
}

await()		# SECONDS COMMAND…
{
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# The build, for a user who may not look into the folder that holds the tree
open_build() { mountpoint -q /run/build || { mkdir -p /run/build && mount --bind "$top/build" /run/build; }; }

boot()		# OPTIONS… of tests/vm/run
{
	local rc
	"$top/tests/vm/run" --kernel "${KERNEL:-6.12}" --driver "${DRIVER:-ours}" --timeout 800 \
		--trace virtio_blk_handle_read --trace virtio_blk_handle_write \
		--trace virtio_blk_req_complete --share "$work" "$@" -- "$self" guest
	rc=$?
	case $rc in
	0|1) ;;
	*) fail "${self##*/}-guest" "status $rc of the guest" "0 or 1"; return 1 ;;
	esac
	return $rc
}
host_prepare()
{
	[ -x "$tool" ] || make -s -C "$top" tools || exit 1
	work=$(mktemp -d) || exit 1
	outdir=$work
	trap 'rm -rf "$work"' EXIT
}
