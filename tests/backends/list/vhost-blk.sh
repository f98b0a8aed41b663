# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
about="vhost-blk: our kernel module, by a VDUSE bridge to the driver in the same guest"
group=vhost-blk
where=guest
can="node poll flush discard zeroes id remove"
params=poll_queues=1
absent() { [ -e "$top/build/$krel/vhost_blk.ko" ] || echo "there is no build/$krel/vhost_blk.ko"; }
