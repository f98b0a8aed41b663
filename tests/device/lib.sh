# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What tests/cases/device-*.sh share, behind cases/lib.sh. Their inside parts
# run in a guest (Linux 6.12 or newer), bring devices up and down, and judge.
# shellcheck disable=SC2034,SC2154 # cases/lib.sh's variables

device_bin=$top/build/tests/device
why=''
disk=''
declare -A pids

ours() { [ "${VM_DRIVER:-ours}" = ours ]; }

# try NAME FUNCTION: the first difference that is() meets is the reason
try()
{
	why=''
	"$2"
	if [ -z "$why" ]; then
		pass "$1"
	else
		echo "FAIL $case_name-$1: $(one_line "$why")"
		failed=1
	fi
}

# A fault of the in-tree driver, which we don't share. SHOW=1 lets it run there too,
# and see it: it fails, or takes the guest along
unless_stock()	# NAME FUNCTION WHY
{
	if ours || [ "${SHOW:-}" = 1 ]; then try "$1" "$2"; else skip "$1" "the in-tree driver $3"; fi
}

# node NAME FUNCTION: a behaviour of /dev/vdXc0
node()
{
	if ours; then try "$@"; else skip "$1" "the in-tree driver has no char node"; fi
}

is()	# WHAT GOT WANTED
{
	[ "$2" = "$3" ] && return
	why=${why:-$1: got ${2:-nothing}, wanted ${3:-nothing}}
}

like()	# WHAT GOT PATTERN
{
	# shellcheck disable=SC2053 # it is a pattern
	[[ $2 == $3 ]] && return
	# the end of a kernel log says most
	local got=$2
	[ ${#got} -le 200 ] || got=…${got: -200}
	why=${why:-$1: got ${got:-nothing}, wanted $3}
	why=${why//$'\n'/ | }
}

ctl()	# COMMAND...: to the device of this moment
{
	"$device_bin/vblk-device" --ctl "$sock" "$@"
}

# dev_up NAME OPTIONS...: starts the device, plugs it in; 1 if no disk came of it.
# Sets disk (vdX), log, sock, pid.
dev_up()
{
	dev_start "$@" || return
	vdpa dev add name "$name" mgmtdev vduse 2>/tmp/vdpa.err
	disk_find
}

dev_start()
{
	name=$1
	sock=/tmp/$name.sock
	log=/tmp/$name.log
	disk=''
	rm -f "$log" "$sock"
	shift
	"$device_bin/vblk-device" --name "$name" --socket "$sock" --log "$log" "$@" >/tmp/"$name".out 2>&1 &
	pids[$name]=$!
	until [ -S "$sock" ]; do
		kill -0 "${pids[$name]}" 2>/dev/null || { cat /tmp/"$name".out >&2; return 1; }
		sleep 0.02
	done
	ctl 'show stat' >/tmp/"$name".stat
}

disk_find()
{
	local d
	disk=''
	for d in /sys/bus/vdpa/devices/"$name"/virtio*/block/vd*; do
		[ -d "$d" ] && disk=${d##*/}
	done
	[ -n "$disk" ] || return
	until [ -b "/dev/$disk" ]; do sleep 0.02; done
}

dev_down()
{
	# held requests are answered, or the removal waits for them
	ctl clear release 2>/tmp/ctl.err
	vdpa dev del "$name"
	ctl quit 2>/tmp/ctl.err
	wait "${pids[$name]}"
}

# zone SECTOR: its state and write pointer, as the device has them
zone() { ctl 'show zones' | sed -n "s/^$1 .*wp=\([0-9]*\) .*state=\(.*\)/\2 \1/p"; }

sys() { cat "/sys/block/$disk/$1"; }

# What the kernel said since the last call of it
said()
{
	dmesg >/tmp/dmesg.now
	comm -13 <(sort -u /tmp/dmesg.seen 2>/dev/null) <(sort -u /tmp/dmesg.now)
	cp /tmp/dmesg.now /tmp/dmesg.seen
}

# requests TYPE: how many of them the device was given
requests() { grep -c "\"name\":\"$1\"" "$log"; }

# of TYPE FIELD: that field of the last request of this type, as JSON
of()
{
	grep "\"name\":\"$1\"" "$log" | tail -n 1 |
		sed -E "s/.*\"$2\":(\[(\[[^]]*\],?)*\]|\"[^\"]*\"|[^,}]*).*/\1/"
}

cmd()	# NODE-CMD ARGS...: TYPE on this disk's node
{
	local type=${!#}
	"$device_bin/node-cmd" "${@:1:$#-1}" "/dev/${disk}c0" "$type" 2>&1
}

# FIELD of VIRTBLK_IOCTL_INFO, hexadecimal
info() { cmd info | sed -n "s/^$1=//p"; }

# needs_write NODE-CMD ARGS... TYPE: what the descriptor's mode or a read-only disk
# forbids doesn't reach the device. needs_read: likewise for what only reads.
needs_write()
{
	local type=${!#} before
	before=$(requests "$type")
	is "$type, opened for reading" "$(cmd -m ro "$@")" "res=-13 status=0"
	blockdev --setro "/dev/$disk"
	is "$type, read-only disk" "$(cmd "$@")" "res=-30 status=0"
	blockdev --setrw "/dev/$disk"
	is "$type sent" "$(requests "$type")" "$before"
}

needs_read()
{
	local type=${!#} before
	before=$(requests "$type")
	is "$type, opened for writing" "$(cmd -m wo "$@")" "res=-13 status=0"
	is "$type sent" "$(requests "$type")" "$before"
}

# read_disk SECTOR COUNT: as hex of its first bytes
bytes() { dd if="/dev/$disk" bs=512 skip="$1" count=1 iflag=direct 2>/dev/null | od -An -tx1 -N"$2" | tr -d ' \n'; }

# the same through the page cache, which keeps it as long as somebody has the disk open
cached() { dd if="/dev/$disk" bs=512 skip="$1" count=1 2>/dev/null | od -An -tx1 -N"$2" | tr -d ' \n'; }

# dd's verdict on one direct read or write of 4 KiB at SECTOR: ok or the error
read4k() { dd_try if="/dev/$disk" of=/dev/null bs=4096 skip=$(($1 / 8)) iflag=direct; }
write4k() { dd_try if=/dev/zero of="/dev/$disk" bs=4096 seek=$(($1 / 8)) oflag=direct; }

dd_try()
{
	local out
	if out=$(dd "$@" count=1 status=none 2>&1); then echo ok; else echo "${out##*: }"; fi
}

# The same where there is a disk with interrupts too
vduse_beside()	# NAME: or skips it
{
	if [ -e /proc/lockdep ]; then
		skip "$1" "beside a disk with interrupts lockdep complains about a lock of VDUSE's"
		return 1
	fi
	(vduse_ready) >/dev/null 2>&1 && return
	skip "$1" "this kernel has no VDUSE, on which the test's device is made"
	return 1
}

# First thing in the guest
vduse_ready()
{
	local module
	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	for module in vduse virtio_vdpa; do
		modprobe "$module" || { skip all "this kernel has no module $module"; exit 77; }
	done
}
