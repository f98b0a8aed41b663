# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="VDUSE: qemu-storage-daemon in the guest, by virtio-vdpa to the driver beside it"
group=vduse
where=guest
can="node poll flush discard zeroes id resize remove kill"
params=poll_queues=1
absent() { has_modules vduse virtio_vdpa || echo "kernel $krel has no VDUSE"; }
up() { vduse_up; }
remove() { vduse_remove; }
down() { vduse_remove; qsd_stop; }
