# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="ublk: a server of ours in the guest, by io_uring"
group=block
where=guest
can="flush discard zeroes remove"
cannot=([resize]="ublk takes a new size from Linux 6.16 on" [kill]="what the ublk driver does then is not ours to judge")
absent() { has_modules ublk_drv || echo "kernel $krel has no ublk"; }
ublk_serve()	# FILE
{
	modprobe ublk_drv || return
	rm -f "$run/ublk.out"	# of the one before
	"$bin/ublk" add -q 2 "$1" >"$run/ublk.out" 2>"$run/ublk.log" &
	server="$! $server" ublk=$! disk=ublkb0
	local i
	for ((i = 0; i < 200; i++)); do [ -s "$run/ublk.out" ] && return; sleep 0.05; done
	cat "$run/ublk.log" >&2
	return 1
}
up() { server=; ublk_serve "$image"; }
remove() { "$bin/ublk" stop 0; }
down() { remove; wait $ublk; "$bin/ublk" del 0; }
