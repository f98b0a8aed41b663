# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="vhost-user-blk: qemu-storage-daemon on the host, in the guest's memory"
group=vhost-user
# Seen with the in-tree driver too: one --try --driver stock vhost-user verify resize
cannot=([poll]="with QEMU 7.2's storage daemon a polled read never ends, in-tree neither"
	[resize]="QEMU 7.2's storage daemon tells the guest of no new size, in-tree neither")
[ -z "${try:-}" ] || params=poll_queues=1
can="node flush discard zeroes id remove kill"
id=vhost_user_blk	# of every disk of the storage daemon's
up_host()
{
	qsd_start "type=vhost-user-blk,id=exp0,addr.type=unix,addr.path=$run/vu,num-queues=2" || return
	vm+=(--qemu "-object memory-backend-memfd,id=mem,size=1G,share=on -machine memory-backend=mem
		-chardev socket,id=vu,path=$run/vu
		-device pcie-root-port,id=port0,chassis=1,slot=1,bus=pcie.0,addr=0x8.0
		-device vhost-user-blk-pci,id=disk0,bus=port0,chardev=vu,num-queues=2")
}
down_host() { qsd_stop; }
