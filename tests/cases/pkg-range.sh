#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A kernel the driver isn't for gets one sentence that says why, from make module
# and from kbuild itself (as DKMS starts it), and not a compiler's errors.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

range=$top/drivers/block/kernel-range.sh

# build_tree RELEASE [OPTION…]: what a kernel's headers say of themselves
build_tree()
{
	local dir=$work/$1 option
	mkdir -p "$dir/include/config"
	echo "$1" >"$dir/include/config/kernel.release"
	shift
	for option in "$@"; do echo "CONFIG_$option"; done >"$dir/include/config/auto.conf"
	echo "$dir"
}

# module DIR…: what make module says with DIR as the kernel's headers
module()
{
	local dir=$1
	shift
	make -C "$top" --no-print-directory module KVER=none O="$work/build" kdir="$dir" "$@" 2>&1
}

# refusal NAME DIR WORDS: two lines, ours with the words and make's last one
refusal()
{
	local out
	out=$(module "$2")
	check "$1-two-lines" "$(grep -vc '^make' <<<"$out") of $(grep -c . <<<"$out")" "1 of 2"
	works "U09-$1-in-words" grep -q -- "$3" <<<"$out"
}

# The installed headers, by links, but for one line of the configuration.
without()
{
	local real
	real=$(realpath "/lib/modules/$(kernel_release /lib/modules build)/build")
	mkdir "$work/without" && ln -s "$real"/* "$work/without" || return
	rm "$work/without/include"
	mkdir "$work/without/include" && ln -s "$real"/include/* "$work/without/include" || return
	rm "$work/without/include/config"
	mkdir "$work/without/include/config" && cp "$real/include/config/kernel.release" "$work/without/include/config" || return
	sed "/^CONFIG_$1=/d" "$real/include/config/auto.conf" >"$work/without/include/config/auto.conf"
}

from_kbuild()
{
	local out
	without IO_URING || { fail kbuild-refuses "no copy of the headers" "one"; return; }
	mkdir -p "$work/src/drivers"
	cp -r "$top/include" "$top/VERSION" "$work/src"
	cp -r "$top/drivers/block" "$work/src/drivers"
	out=$(make -C "$work/without" M="$work/src/drivers/block" modules 2>&1)
	works U09-kbuild-refuses-in-words grep -q 'configured without CONFIG_IO_URING' <<<"$out"
	check kbuild-compiles-nothing "$(find "$work/src" -name '*.o' | wc -l)" 0
}

# The kernels here, whatever $KERNEL is
installed()
{
	local k dir
	for k in 6.1 6.12; do
		dir=/lib/modules/$(KERNEL=$k kernel_release /lib/modules source)/source/include
		[ -e "$dir" ] || { skip "probe-$k" "there are no headers of Linux $k"; continue; }
		case $k in
		6.1) answers $k "$dir" "BLK_MQ_VIRTIO_H MAP_SG_QUEUE SHOULD_MERGE" ;;
		6.12) answers $k "$dir" "ALLOC_DISK_LIMITS BD_MAPPING BLK_MQ_VIRTIO_H COMMIT_UPDATE_FROZEN DO_IN_TASK_LAZY IO_URING_CMD_H LIMITS_FEATURES MAP_SG_QUEUE RQF_USE_SCHED RQ_LIST SHOULD_MERGE URING_CMD_SQE URING_F_COMPAT VIRTIO_ZONED VIRTQUEUE_INFO" ;;
		esac
	done
}

# Interfaces in places where no kernel here has them
elsewhere()
{
	local dir=$work/headers
	mkdir -p "$dir/linux" && echo '#define blk_mq_alloc_disk(set, lim, queuedata) x' >"$dir/linux/blk-mq.h"
	printf 'struct io_uring_cmd {\n\tstruct file\t*file;\n\tconst struct io_uring_sqe *sqe;\n};\n' >"$dir/linux/io_uring.h"
	check probe-other-places "$(sh "$top/drivers/block/probe.sh" "$dir" | sort | paste -sd' ')" \
		"-DHAVE_ALLOC_DISK_LIMITS -DHAVE_URING_CMD_SQE"
}

# An early 6.1.y, whose build folder and source are two, as Debian's are
early_io_uring()
{
	local dir
	dir=$(build_tree 6.1.5 "$@")
	mkdir -p "$work/source/include/linux"
	echo "include $work/source/Makefile" >"$dir/Makefile"
	: >"$work/source/include/linux/blk-mq.h"
	printf 'void io_uring_cmd_done(struct io_uring_cmd *cmd, ssize_t ret,\n\t\tssize_t res2);\n' >"$work/source/include/linux/io_uring.h"
	refusal early-io_uring "$dir" "Linux 6.1.5: its io_uring completes commands without"
	sed -i 's/ssize_t res2/&, unsigned issue_flags/' "$work/source/include/linux/io_uring.h"
	works mended-io_uring-taken "$range" "$dir"
}

# virtio_blk built in: make module and DKMS say which module is for it, kbuild doesn't.
built_in()
{
	local dir note="Linux 6.12.0-y has virtio_blk built in: .* virtblk_uring.ko is for it, see virtblk-move(8)"
	dir=$(build_tree 6.12.0-y "$@" VIRTIO_BLK=y)
	check built-in-make-module "$(module "$dir" | grep -c "^$note")" 1
	ln -s "$top" "$work/virtio-blk-uring-#MODULE_VERSION#"
	check built-in-dkms "$(kernel_source_dir=$dir source_tree=$work bash "$top/packaging/dkms.conf" 2>&1 | grep -c "^$note")" 1
	check built-in-kbuild "$("$range" "$dir" 2>&1; echo $?)" 0
	sed -i s/VIRTIO_BLK=y/VIRTIO_BLK=m/ "$dir/include/config/auto.conf"
	check module-no-note "$("$range" --note "$dir" 2>&1; echo $?)" 0
}

host()
{
	local all=(BLOCK=y VIRTIO=m IO_URING=y SG_POOL=y) oldest newest
	read -r oldest newest < <("$range" --range)
	works range-is-told test -n "$newest"
	works U09-oldest-taken "$range" "$(build_tree "$oldest.0" "${all[@]}")"
	works U09-newest-taken "$range" "$(build_tree "$newest.99-custom" "${all[@]}")"
	refusal old "$(build_tree 5.10.0-40-amd64 "${all[@]}")" "Linux 5.10.0-40-amd64: it needs Linux $oldest to $newest"
	refusal new "$(build_tree 99.1.0 "${all[@]}")" 'UNTRIED=1'
	works new-by-wish env UNTRIED=1 "$range" "$work/99.1.0"
	refusal not-tried "$(build_tree 6.6.0 "${all[@]}")" 'Linux 6.6.0: Linux 6.3 to 6.10 were not tried; UNTRIED=1'
	works not-tried-by-wish env UNTRIED=1 "$range" "$work/6.6.0"
	check not-tried-are "$(for v in 6.1 6.2 6.3 6.10 6.11 6.12; do "$range" "$(build_tree $v.7 "${all[@]}")" 2>/dev/null || echo $v; done | paste -sd' ')" "6.3 6.10"
	refusal no-uring "$(build_tree 6.12.0-a "${all[@]/IO_URING*/NET=y}")" 'without CONFIG_IO_URING'
	refusal no-virtio "$(build_tree 6.12.0-b "${all[@]/VIRTIO*/NET=y}")" 'without CONFIG_VIRTIO'
	refusal no-headers "$work/nowhere" 'linux-headers'
	early_io_uring "${all[@]}"
	built_in "${all[@]}"
	from_kbuild
	installed
	elsewhere
}

case_main "$@"
