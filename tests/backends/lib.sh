# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2086,SC2154
#
# What the back ends of tests/backends/list share. A back end is a file there
# that is read on both sides, host and guest, and sets or overrides what follows.

about=''	# what it is, in a line
group=qemu	# qemu, vhost-user, vduse, vhost-blk, block
where=host	# where its server runs; there its resize, remove and kill_it run too
format=raw	# of the image
can=''		# words: node poll flush discard zeroes id resize remove kill
declare -gA cannot=()	# words it ought to have, and why this server is no use there: skipped
lacks=''	# commands that it offers and can't do here, with the reason
params=''	# of the driver
smp=2	# CPUs

absent() { return 1; }		# prints why it can't be had, if so
up_host() { :; }		# on the host, before the guest: adds to vm=()
up() { disk=vda; await_block; }	# in the guest: sets disk, and server to the server's PIDs
down() { :; }			# in the guest, without load
down_host() { :; }

resize() { control block_resize node-name=img0 size="$1"; }
remove() { qmp --timeout 90 --wait DEVICE_DELETED "$VM_QMP" device_del id=disk0; }
kill_it() { kill -9 $server; }

cpu_tids() { :; }		# threads of the server's process that are the guest's CPUs

server_processes()
{
	local cpu
	cpu=$(cpu_tids | head -n 1)
	if [ -n "$cpu" ]; then awk '$1 == "Tgid:" { print $2 }' "/proc/$cpu/status"; else echo $server; fi
}

# The threads that serve.
server_tids()
{
	local p cpus t
	cpus=" $(cpu_tids | tr '\n' ' ') "
	for p in $(server_processes); do
		for t in "/proc/$p/task/"*; do [[ $cpus == *" ${t##*/} "* ]] || echo "${t##*/}"; done
	done
}

has() { [[ " $can " == *" $1 "* ]] || { [ -n "${try:-}" ] && [ -n "${cannot[$1]:-}" ]; }; }
qmp() { "$top/tests/vm/qmp" "$@"; }

# The guest kernel has these modules: one that is installed, or was built here.
has_modules()	# NAME...
{
	local -a at=(-k "$krel")
	[ ! -e "$top/build/$krel/vmlinux" ] || at=(-b "$top/build/$krel/modules" -k "$(ls "$top/build/$krel/modules/lib/modules")")
	modinfo "${at[@]}" "$@" >/dev/null 2>&1
}

# To whoever holds the image: QEMU, or the storage daemon of this side.
control() { qmp "${qsd_socket:-$VM_QMP}" "$@"; }

# ---- images ----

# 64 MiB in memory: what is compared is the way to it, not a disk.
megabytes=64
preallocation=full

image_make()	# FILE
{
	if [ "$format" = raw ]; then
		truncate -s ${megabytes}M "$1"
	else
		qemu-img create -q -f "$format" -o preallocation="$preallocation" "$1" ${megabytes}M
	fi
}

# The image holds what the client noted that it wrote there.
image_check()	# LIST
{
	local raw=$image
	if [ "$format" != raw ]; then
		raw=$image.raw
		qemu-img convert -U -f "$format" -O raw "$image" "$raw" || return
	fi
	"$top/build/tests/uring/pattern" check "$raw" "$1"
	local rc=$?
	[ "$raw" = "$image" ] || rm -f "$raw"
	return $rc
}

# ---- the kinds that several files are variants of ----

qemu_disk()	# OPTIONS of tests/vm/run's --disk
{
	vm+=(--disk "$format:$image,serial=$backend,discard$1")
}

# In the files of disks that QEMU itself serves: cpu_tids() { qemu_cpus; }
qemu_cpus() { qmp "$VM_QMP" query-cpus-fast | grep -o '"thread-id": [0-9]*' | grep -o '[0-9]*$'; }

# qsd_start EXPORT: the storage daemon with the image and one export, on this
# side; sets server.
qsd_start()
{
	qsd_socket=$run/qsd.qmp
	rm -f "$qsd_socket"
	qemu-storage-daemon \
		--blockdev "driver=file,node-name=file0,filename=$image,discard=unmap" \
		--blockdev "driver=$format,node-name=img0,file=file0,discard=unmap" \
		--chardev "socket,id=qmp,path=$qsd_socket,server=on,wait=off" --monitor chardev=qmp \
		--export "$1,node-name=img0,writable=on" >"$run/qsd.log" 2>&1 &
	server=$!
	await_server "$qsd_socket"
}

qsd_stop()
{
	local i
	kill $server 2>/dev/null
	for ((i = 0; i < 100; i++)); do kill -0 $server 2>/dev/null || break; sleep 0.05; done
	! kill -0 $server 2>/dev/null || kill -9 $server
	wait $server 2>/dev/null
}

await_server()	# FILE that is there when it is ready
{
	local i
	for ((i = 0; i < 200; i++)); do
		[ -e "$1" ] && return
		kill -0 $server 2>/dev/null || break
		sleep 0.05
	done
	echo "the server of $backend did not come: $(tail -n 3 "$run"/*.log 2>/dev/null)" >&2
	return 1
}

# VDUSE: the server is in the guest, and so is the driver it serves.
vduse_up()
{
	modprobe -a vduse virtio_vdpa || return
	qsd_start "type=vduse-blk,id=exp0,name=vd0,num-queues=2,serial=$backend" &&
		vdpa dev add name vd0 mgmtdev vduse && vduse_disk
}

# The disk that the device vd0 became.
vduse_disk()
{
	local d
	for d in /sys/bus/vdpa/devices/vd0/virtio*/block/vd*; do disk=${d##*/}; done
	await_block
}

vduse_remove() { vdpa dev del vd0; }

await_block()
{
	local i
	for ((i = 0; i < 200; i++)); do [ -b "/dev/$disk" ] && return; sleep 0.05; done
	echo "no /dev/$disk" >&2
	return 1
}
