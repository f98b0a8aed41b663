# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="virtio-blk-pci with one queue (so none to poll)"
can="node flush discard zeroes id resize remove"
up_host() { qemu_disk ",queues=1"; }
cpu_tids() { qemu_cpus; }
