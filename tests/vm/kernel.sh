# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Part of tests/vm/run: which kernel, its uncompressed image, its initramfs.
# Sets krel (release), vmlinux, moddir (…/lib/modules/REL), kdir (build/REL).

# Boot starts in the uncompressed ELF image, by its PVH note: that spares the
# guest the decompression, which takes seconds under TCG.
kernel_extract()	# IMAGE OUT
{
	local image=$1 out=$2 magic setup offset length
	magic=$(od -An -tx1 -N4 "$image" | tr -d ' \n')
	if [ "$magic" = 7f454c46 ]; then
		ln -sfn "$(realpath "$image")" "$out"
		return
	fi
	[ "$(od -An -c -j 514 -N4 "$image" | tr -d ' \n')" = HdrS ] ||
		die "$image is neither an ELF vmlinux nor a bzImage"
	# The boot protocol's header says where the payload lies (counted from the
	# end of the setup sectors); its last four bytes are the unpacked size.
	setup=$(od -An -tu1 -j 497 -N1 "$image")
	offset=$(od -An -tu4 -j 584 -N4 "$image")
	length=$(od -An -tu4 -j 588 -N4 "$image")
	offset=$(((setup + 1) * 512 + offset))
	tail -c +$((offset + 1)) "$image" | head -c $((length - 4)) >"$out.payload"
	case $(od -An -tx1 -N4 "$out.payload" | tr -d ' \n') in
	fd377a58) set -- xz -dc --single-stream ;;
	28b52ffd) set -- zstd -dcq ;;
	02214c18) set -- lz4 -dcq ;;
	1f8b*)	  set -- gzip -dcq ;;
	425a*)	  set -- bzip2 -dcq ;;
	5d0000*)  set -- lzma -dcq ;;
	*) die "$image: unknown compression" ;;
	esac
	command -v "$1" >/dev/null || "$here/need" "$1" || exit 125
	# A decompressor may grumble about bytes after the stream: look at what it made.
	"$@" <"$out.payload" >"$out.new" 2>/dev/null
	rm -f "$out.payload"
	[ "$(od -An -tx1 -N4 "$out.new" | tr -d ' \n')" = 7f454c46 ] ||
		die "$image: could not unpack it"
	mv "$out.new" "$out"
}

# The newest release under /boot that starts with $1 and has its modules.
kernel_newest()
{
	local f r
	for f in /boot/vmlinuz-"$1"[.-]*; do
		r=${f#/boot/vmlinuz-}
		case $r in *-rt-*|*-cloud-*) continue ;; esac
		[ -e "/lib/modules/$r/modules.dep" ] && echo "$r"
	done | sort -V | tail -n 1
}

kernel_pick()		# what --kernel said
{
	local want=$1 image dir
	moddir=
	if [ -e "$build/$want/vmlinux" ]; then		# one of our own debug kernels
		kdir=$build/$want
		image=$kdir/vmlinux
	elif [ -f "$want" ]; then
		image=$want
	else
		krel=$want
		[ -e "/boot/vmlinuz-$krel" ] || krel=$(kernel_newest "$want")
		if [ -z "$krel" ]; then
			"$here/need" +kernels || exit 125
			krel=$(kernel_newest "$want")
		fi
		[ -n "$krel" ] || die "no kernel $want under /boot with modules in /lib/modules"
		image=/boot/vmlinuz-$krel
		kdir=$build/$krel
	fi
	cache=$build/vm/$(basename "${krel:-$(realpath "$image" | tr / _)}")
	mkdir -p "$cache" || exit 125
	vmlinux=$cache/vmlinux
	exec 8>"$cache/lock"
	flock 8
	[ "$vmlinux" -nt "$image" ] || kernel_extract "$image" "$vmlinux"
	if [ -z "$krel" ]; then
		krel=$(grep -a -o -m1 'Linux version [0-9][^ ]* (' "$vmlinux" | head -n 1 | cut -d' ' -f3)
		[ -n "$krel" ] || die "$image does not say which Linux version it is"
		: "${kdir:=$build/$krel}"
	fi
	for dir in "$modules" "$kdir/modules" "/lib/modules/$krel"; do
		[ -n "$dir" ] || continue
		[ -e "$dir/lib/modules/$krel" ] && dir=$dir/lib/modules/$krel
		[ -e "$dir/modules.dep" ] || continue
		# An installed kernel's are in their place already, whatever /lib is
		moddir=$dir
		[ "$dir" = "/lib/modules/$krel" ] || moddir=$(realpath "$dir")
		break
	done
	[ -n "$moddir" ] || die "no modules for $krel (looked in $kdir/modules and /lib/modules; --modules DIR names another place)"
	initramfs_make
	exec 8>&-
}

# File names of module $1 and what it depends on, dependencies first.
module_closure()
{
	awk -v want="$1" '
		function base(p) { sub(/.*\//, "", p); sub(/\.ko.*/, "", p); gsub(/-/, "_", p); return p }
		{ path = $1; sub(/:$/, "", path)
		  if (base(path) == want) { for (i = NF; i > 1; i--) print $i; print path } }
	' "$moddir/modules.dep"
}

module_unpack()		# FILE OUT
{
	case $1 in
	*.xz)  xz -dc "$1" >"$2" ;;
	*.zst) zstd -dcq "$1" >"$2" ;;
	*.gz)  gzip -dc "$1" >"$2" ;;
	*)     cp "$1" "$2" ;;
	esac && module_unsign "$2"
}

# Checking a signature costs the guest 0.1 s and more under TCG. It is the last
# 28 bytes' magic, before it a header that ends in the signature's length.
module_unsign()		# FILE
{
	local length
	[ "$(tail -c 28 "$1" | tr -d '\0')" = "~Module signature appended~" ] || return 0
	length=$(tail -c 32 "$1" | od -An -tu4 --endian=big -N4)
	truncate -s -$((length + 12 + 28)) "$1"
}

# What the guest needs before it sees the host's files: busybox, the transport
# and 9p modules, the stock driver. The rest comes through the root share.
initramfs_make()
{
	local d=$cache/initramfs m f name list
	initramfs=$cache/initramfs.cpio
	[ "$initramfs" -nt "$here/init" ] && [ "$initramfs" -nt "$moddir/modules.dep" ] &&
		[ "$initramfs" -nt "$here/kernel.sh" ] && return
	rm -rf "$d"
	mkdir -p "$d"/{bin,dev,proc,sys,r,vm/modules} || exit 125
	cp /bin/busybox "$d/bin/busybox" && cp "$here/init" "$d/init" || exit 125
	ln -s busybox "$d/bin/sh"
	list=
	for m in virtio_pci virtio_mmio 9pnet_virtio 9p overlay; do
		for f in $(module_closure $m); do
			name=$(basename "$f"); name=${name%%.ko*}
			[ -e "$d/vm/modules/$name.ko" ] && continue
			module_unpack "$moddir/$f" "$d/vm/modules/$name.ko" || die "cannot unpack $f"
			list+="$name "
		done
	done
	echo "$list" >"$d/vm/modules/list"
	f=$(module_closure virtio_blk | tail -n 1)
	if [ -n "$f" ]; then module_unpack "$moddir/$f" "$d/vm/stock.ko" || exit 125; fi
	(cd "$d" && find . | cpio -o -H newc --quiet -R 0:0) >"$initramfs.new" || die "cpio failed"
	mv "$initramfs.new" "$initramfs"
}
