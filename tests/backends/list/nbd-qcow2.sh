# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC1091,SC2034,SC2086,SC2154
. "$backends/list/nbd.sh"
about="the same on a qcow2 image"
format=qcow2
