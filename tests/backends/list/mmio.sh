# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="virtio-blk-device on virtio-mmio, the microvm machine"
cannot=([unplug]="virtio-mmio has no hot-plug: the driver is unbound under load instead")
can="node poll flush discard zeroes id resize remove"
params="poll_queues=1"
up_host() { qemu_disk ",queues=2,mmio"; }
cpu_tids() { qemu_cpus; }
# There is no hot-plug: the driver is taken away instead.
where_remove=guest
remove() { basename "$(realpath /sys/block/vda/device)" >/sys/bus/virtio/drivers/virtio_blk/unbind; }
