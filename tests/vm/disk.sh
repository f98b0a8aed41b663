# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034
#
# Part of tests/vm/run: what a --disk SPEC means in QEMU's words.
# Adds to the arrays qemu_args and device_args; the n-th disk is diskN, its
# topmost block node imgN, its throttle group tgN.

bytes()
{
	numfmt --from=iec "$1" 2>/dev/null || die "$1 is not a size (use e.g. 512M, 4T)"
}

# QEMU splits its options at commas; two commas mean one.
quoted() { echo "${1//,/,,}"; }

disk_add()	# NUMBER SPEC
{
	local n=$1 spec=$2 kind file o value top opts='' dev='' discard=ignore
	local -a option
	IFS=, read -ra option <<<"$spec"
	kind=${option[0]%%:*}
	file=${option[0]#*:}
	[ "$kind" != "${option[0]}" ] || die "--disk $spec: say null:SIZE, raw:FILE or qcow2:FILE"
	top=img$n
	# Layers above the image are named lowest first: blkdebug, log, throttle.
	local eio='' log='' iops=''
	mmio_disk=
	for o in "${option[@]:1}"; do
		value=${o#*=}
		case $o in
		ro)	  opts+=,read-only=on ;;
		discard)  discard=unmap ;;
		cache=none) opts+=,cache.direct=on ;;
		bs=*)	  dev+=,logical_block_size=$value,physical_block_size=$value ;;
		pbs=*)	  dev+=,physical_block_size=$value ;;
		queues=*) dev+=,num-queues=$value ;;
		qsize=*)  dev+=,queue-size=$value ;;
		legacy)	  dev+=,disable-modern=on,disable-legacy=off ;;
		modern)	  dev+=,disable-legacy=on ;;
		packed)	  dev+=,packed=on ;;
		serial=*) dev+=,serial=$value ;;
		iothread) qemu_args+=(-object "iothread,id=io$n"); dev+=,iothread=io$n ;;
		iops=*)	  iops=$value ;;
		log=*)	  log=$value ;;
		eio=*)	  eio=$value ;;
		mmio)	  mmio_disk=1; microvm=1 ;;
		prop:*=*) dev+=,${o#prop:} ;;
		*) die "--disk $spec: unknown option $o (see tests/vm/run --help)" ;;
		esac
	done
	if [ -n "$mmio_disk" ]; then
		# There the machine, not the device, says which virtio it is.
		[[ $dev == *disable-modern=on* ]] && mmio_legacy=true
		dev=${dev//,disable-modern=on,disable-legacy=off/}
		dev=${dev//,disable-legacy=on/}
	fi
	disk_image "$spec" "$kind" "$file" "$n" ",discard=$discard$opts"
	if [ -n "$eio" ]; then
		disk_layer "blkdebug,image=$top,inject-error.0.event=none,inject-error.0.sector=$eio,inject-error.0.errno=5,discard=$discard" dbg
	fi
	if [ -n "$log" ]; then
		# A record of every write, flush and discard that no driver can talk into lying.
		: >"$log" || die "cannot write $log"
		qemu_args+=(-blockdev "driver=file,filename=$(quoted "$log"),node-name=logfile$n")
		disk_layer "blklogwrites,file=$top,log=logfile$n,discard=$discard" log
	fi
	if [ -n "$iops" ]; then
		qemu_args+=(-object "throttle-group,id=tg$n,x-iops-total=$iops")
		disk_layer "throttle,throttle-group=tg$n,file=$top,discard=$discard" thr
	fi
	disk_device "$n" "drive=$top,id=disk$n$dev"
}

disk_layer()	# DRIVER,OPTIONS NAME
{
	qemu_args+=(-blockdev "driver=$1,node-name=$2$n$([[ $opts == *read-only* ]] && echo ,read-only=on)")
	top=$2$n
}

disk_image()	# SPEC KIND FILE NUMBER OPTIONS
{
	case $2 in
	null)
		qemu_args+=(-blockdev "driver=null-co,node-name=img$4,size=$(bytes "$3"),read-zeroes=on$5") || exit 125 ;;
	raw|qcow2)
		[ -r "$3" ] || die "--disk $1: there is no file $3 that can be read"
		# The protocol node below must know about discard and read-only too.
		qemu_args+=(-blockdev "driver=file,filename=$(quoted "$3"),node-name=file$4$5")
		qemu_args+=(-blockdev "driver=$2,file=file$4,node-name=img$4$5") ;;
	*)
		die "--disk $1: unknown kind $2 (null, raw and qcow2 there are)" ;;
	esac
}

disk_device()	# NUMBER OPTIONS
{
	if [ -n "$mmio_disk" ]; then
		device_args+=(-device "virtio-blk-device,$2")
	elif [ -n "$qmp" ]; then
		# Only behind a port of its own can a PCI Express device be unplugged.
		device_args+=(-device "pcie-root-port,id=port$1,chassis=$(($1 + 1)),slot=$(($1 + 1)),bus=pcie.0,addr=$(disk_slot "$1"),multifunction=on")
		device_args+=(-device "virtio-blk-pci,bus=port$1,$2")
	else
		device_args+=(-device "virtio-blk-pci,bus=pcie.0,addr=$(disk_slot "$1"),multifunction=on,$2")
	fi
}

# Eight functions a slot: the 32 slots of the root bus are not enough for tests
# of disk names, and fixed places keep diskN the N-th /dev/vdX.
disk_slot() { printf '0x%x.%x' $((8 + $1 / 8)) $(($1 % 8)); }
