# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="virtio-blk-pci on a qcow2 image"
can="node poll flush discard zeroes id resize remove"
params="poll_queues=1"
format=qcow2
up_host() { qemu_disk ",queues=2"; }
cpu_tids() { qemu_cpus; }
