# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What tests/cases/vhost-*.sh share, behind cases/lib.sh and device/lib.sh.
# shellcheck disable=SC2034,SC2154 # cases/lib.sh's variables

vhost_bin=$top/build/tests/vhost
splats=()
declare -A pids

# Host: vhost_blk.ko for the guest's kernel, or the whole case is skipped. Sets
# splats, for guest: lockdep takes the queues of all virtio disks for one lock and
# so finds fault with VDUSE, whose own lock is taken below it, and with interrupts
# on. It says nothing more afterwards, so what isn't about VDUSE is to come first.
need_vhost_blk()
{
	local rel=${KERNEL:-6.12} out
	if [ -e "$top/build/$rel/vmlinux" ]; then
		splats=(--splats-ok 'HARDIRQ-safe -> HARDIRQ-unsafe lock order detected|Call Trace:')
	else
		rel=$(printf '%s\n' /lib/modules/"$rel"* | sort -V | tail -n 1)
		rel=${rel##*/}
	fi
	case $rel in
	[1-5].*|6.[0-9].*|6.1[01].*) skip all "vhost_blk needs Linux 6.12"; exit 77 ;;
	newest) skip all "vhost_blk is for kernels that are installed here"; exit 77 ;;
	esac
	export VHOST_BLK=$top/build/$rel/vhost_blk.ko
	mkdir -p "${VHOST_BLK%/*}"
	# cases run side by side
	out=$(flock "${VHOST_BLK%/*}/vhost.lock" make -s -C "$top" vhost-tests device bench-tools "KVER=$rel" "build/$rel/vhost_blk.ko" 2>&1) && return
	if [[ $out == *"Error 125"* ]]; then
		skip all "${out%%make*}"
		exit 77
	fi
	fail build "$out" "build/$rel/vhost_blk.ko"
	exit 1
}

# Host: a vhost.h that isn't the installed vhost.ko's is refused. By a member
# more, which a rebuilt kernel might have.
guard_refuses()
{
	local rel dir=$work/guard out
	rel=$(basename "${VHOST_BLK%/*}")
	if [ ! -e "/lib/modules/$rel/build" ]; then
		skip guard "a kernel of our own has the very source"
		return
	fi
	cp -r "${VHOST_BLK%/*}/vhost" "$dir"
	sed -i 's/^\tu32 busyloop_timeout;/&\n\tu32 more;/' "$dir/drivers/vhost/private/vhost.h"
	rm -f "$dir"/drivers/vhost/*.o
	if out=$(make -s -C "/lib/modules/$rel/build" "M=$dir/drivers/vhost" modules 2>&1); then
		fail guard "a module" "a refusal"
	elif [[ $out == *"vhost.h is not that of the installed vhost.ko"* ]]; then
		pass guard
	else
		fail guard "$out" "its words"
	fi
	rm -rf "$dir"
}

# Guest: /dev/vhost-blk
vhost_ready()
{
	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	modprobe vhost || { skip all "this kernel has no module vhost"; exit 77; }
	insmod "$VHOST_BLK" || { fail load "an error of insmod" "vhost_blk.ko loaded"; exit 1; }
	until [ -c /dev/vhost-blk ]; do sleep 0.02; done
	# not from the host's files, which every start of them would wait for
	mkdir -p /run/bin
	cp "$vhost_bin"/{ring,hostile,bridge} "$device_bin"/{vblk-device,node-cmd} "$top/build/bench/client" /run/bin
	vhost_bin=/run/bin device_bin=/run/bin
}

# program NAME ARG…: its lines pass through to the count.
program()
{
	local name=$1 rc
	local -a options
	shift
	read -ra options <<<"${VHOST_OPTIONS:-}"
	"$vhost_bin/$name" -n "$case_name-" "${options[@]}" "$@"
	rc=$?
	[ $rc = 0 ] || [ $rc = 77 ] || failed=1
}

# bridge_up NAME FILE OPTIONS…: a disk of this guest, served by vhost-blk. Sets
# disk (vdX) and pids[NAME].
bridge_up()
{
	local file=$2
	name=$1
	shift 2
	: >/tmp/"$name".out
	"$vhost_bin/bridge" "$@" "$name" "$file" >/tmp/"$name".out 2>&1 &
	pids[$name]=$!
	until grep -q '^ready' /tmp/"$name".out; do
		kill -0 "${pids[$name]}" 2>/dev/null || { cat /tmp/"$name".out >&2; return 1; }
		sleep 0.02
	done
	vdpa dev add name "$name" mgmtdev vduse && disk_find
}

bridge_down()
{
	vdpa dev del "$name"
	bridge_end
}

bridge_end()
{
	kill "${pids[$name]}"
	wait "${pids[$name]}"
}
