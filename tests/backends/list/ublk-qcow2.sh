# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
# QEMU 7.2 cannot serve ublk. Its qcow2 code can, behind a file that the storage
# daemon exports by FUSE: the same code as behind nbd and VDUSE, one hop more.
. "$backends/list/ublk.sh"
about="ublk on a qcow2 image, which the storage daemon shows as a FUSE file"
format=qcow2
up()
{
	modprobe fuse
	: >"$run/flat"
	qsd_start "type=fuse,id=exp0,mountpoint=$run/flat" || return
	await_flat || return
	ublk_serve "$run/flat"
}
await_flat()
{
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(stat -c %s "$run/flat")" != 0 ] && return
		sleep 0.05
	done
	echo "no FUSE file: $(cat "$run/qsd.log")" >&2
	return 1
}
down() { remove; wait $ublk; "$bin/ublk" del 0; kill $server 2>/dev/null; wait $server; }
