# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="vhost-blk: our kernel module, by a VDUSE bridge to the driver in the same guest"
group=vhost-blk
where=guest
can="node poll flush discard zeroes id remove"
cannot=([resize]="the bridge does not pass a new size on" [kill]="it is served by the kernel, not by a process")
lacks="WRITE_ZEROES wants FALLOC_FL_ZERO_RANGE, which tmpfs hasn't"
params=poll_queues=1
module=$top/build/$krel/vhost_blk.ko
bridge=$top/build/tests/vhost/bridge
absent()
{
	[ -e "$module" ] || { echo "no build/$krel/vhost_blk.ko (make vhost-module)"; return; }
	[ -e "$bridge" ] || echo "no build/tests/vhost/bridge (make vhost-tests)"
}
up()
{
	modprobe -a vhost vduse virtio_vdpa && insmod "$module" || return
	"$bridge" --queues 2 --serial "$backend" vd0 "$image" >"$run/bridge.log" 2>&1 &
	server=$!
	local i
	for ((i = 0; i < 200; i++)); do grep -q ^ready "$run/bridge.log" && break; sleep 0.05; done
	vdpa dev add name vd0 mgmtdev vduse || { cat "$run/bridge.log" >&2; return 1; }
	vduse_disk
}
remove() { vduse_remove; }
down() { vduse_remove; kill $server; wait $server; }
