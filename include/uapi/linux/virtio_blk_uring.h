/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * virtio-blk commands by io_uring: the interface of /dev/vdXc0
 *
 * Beside every virtio-blk disk /dev/vdX stands a character device /dev/vdXc0.
 * An IORING_OP_URING_CMD on it carries one virtio-blk command, which the
 * driver puts on the disk's virtqueue without passing through the generic
 * block layer's reads and writes.
 *
 * A read of the first block, in short:
 *
 *	fd = open("/dev/vdac0", O_RDONLY);
 *	... a ring with IORING_SETUP_SQE128 | IORING_SETUP_CQE32 ...
 *	memset(sqe, 0, 128);
 *	sqe->opcode = IORING_OP_URING_CMD;
 *	sqe->fd     = fd;
 *	sqe->cmd_op = VIRTBLK_URING_CMD_IO;
 *	cmd = (struct virtblk_uring_cmd *)sqe->cmd;
 *	cmd->type     = VIRTIO_BLK_T_IN;
 *	cmd->sector   = 0;
 *	cmd->data     = (__u64)(uintptr_t)buf;
 *	cmd->data_len = 4096;
 *	... submit, wait; cqe->res is 0, or a negative errno ...
 *
 * Everything here is in the CPU's byte order; the driver converts.
 */
#ifndef _UAPI_LINUX_VIRTIO_BLK_URING_H
#define _UAPI_LINUX_VIRTIO_BLK_URING_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/virtio_blk.h>

#if defined(__cplusplus) && __cplusplus >= 201103L
#define VIRTBLK_URING_ASSERT(cond)	static_assert(cond, #cond)
#elif !defined(__cplusplus)
#define VIRTBLK_URING_ASSERT(cond)	__extension__ _Static_assert(cond, #cond)
#else
#define VIRTBLK_URING_ASSERT(cond)	extern int virtblk_uring_no_assert
#endif

/*
 * sqe->cmd_op. Numbers never change.
 *
 * _IO and _IO_VEC need a 128-byte SQE (IORING_SETUP_SQE128, or
 * IORING_OP_URING_CMD128 in a mixed ring), else -EOPNOTSUPP. _IO64 and
 * _IO64_VEC work with SQEs of any size on Linux 6.12 and newer; where
 * VIRTBLK_IOCTL_INFO doesn't say VIRTBLK_URING_F_IO64: -EOPNOTSUPP.
 * Any other number: -ENOTTY.
 */
#define VIRTBLK_URING_CMD_IO		1	/* one buffer */
#define VIRTBLK_URING_CMD_IO_VEC	2	/* an array of struct iovec */
#define VIRTBLK_URING_CMD_IO64		3	/* one buffer, 64-byte SQE */
#define VIRTBLK_URING_CMD_IO64_VEC	4	/* array, 64-byte SQE */

/**
 * struct virtblk_uring_cmd - sqe->cmd of VIRTBLK_URING_CMD_IO and _IO_VEC
 * @type:	VIRTIO_BLK_T_*, see the table below
 * @ioprio:	IOPRIO_PRIO_VALUE(), or 0 for none. Bits above 15 or an unknown
 *		class: -EINVAL. Class RT needs CAP_SYS_NICE or CAP_SYS_ADMIN,
 *		else -EPERM. (sqe->ioprio itself must be 0.)
 * @sector:	where on the disk, in units of 512 bytes whatever the disk's
 *		block size; 0 where the command has no place (else -EINVAL)
 * @data:	_IO: address of the buffer. _IO_VEC: address of the iovecs. With
 *		IORING_URING_CMD_FIXED the buffer lies in the registered buffer
 *		sqe->buf_index, and 0 is a legal address.
 * @data_len:	_IO: bytes. _IO_VEC: number of iovecs
 * @flag:	must be 0, else -EINVAL
 *
 * Bytes of sqe->cmd behind this struct, sqe->addr and sqe->len are ignored.
 */
struct virtblk_uring_cmd {
	__u32	type;
	__u32	ioprio;
	__u64	sector;
	__u64	data;
	__u32	data_len;
	__u32	flag;
};

/**
 * struct virtblk_uring_cmd64 - sqe->cmd of VIRTBLK_URING_CMD_IO64, _IO64_VEC
 * @sector:	as above
 * @type:	as above
 * @ioprio:	as above
 * @flag:	must be 0, else -EINVAL
 *
 * sqe->addr is the address of the buffer or of the iovecs, sqe->len the number
 * of bytes or of iovecs.
 */
struct virtblk_uring_cmd64 {
	__u64	sector;
	__u32	type;
	__u16	ioprio;
	__u16	flag;
};

VIRTBLK_URING_ASSERT(sizeof(struct virtblk_uring_cmd) == 32);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd, type) == 0);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd, ioprio) == 4);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd, sector) == 8);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd, data) == 16);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd, data_len) == 24);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd, flag) == 28);
VIRTBLK_URING_ASSERT(sizeof(struct virtblk_uring_cmd64) == 16);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd64, sector) == 0);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd64, type) == 8);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd64, ioprio) == 12);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_cmd64, flag) == 14);

/*
 * Commands. "open for" is what the descriptor must have been opened for, else
 * -EACCES; a missing feature is -EOPNOTSUPP, a writing command on a read-only
 * disk -EROFS.
 *
 *  type		needs		open for  data
 *  IN 0		-		read	  from device: > 0, whole blocks
 *  OUT 1		writable disk	write	  to device: the same
 *  FLUSH 4		FLUSH		any	  none (length 0)
 *  GET_ID 8		-		read	  from device: 20 bytes
 *  GET_LIFETIME 10	LIFETIME	read	  from device: 6 bytes
 *  DISCARD 11		DISCARD		write	  to device: array of struct
 *  WRITE_ZEROES 13	WRITE_ZEROES	write	    virtio_blk_discard_write_zeroes
 *  SECURE_ERASE 14	SECURE_ERASE	write	    in little-endian fields
 *  ZONE_APPEND 15	ZONED		write	  to device: as OUT; the sector
 *						  written is in cqe->big_cqe[0]
 *  ZONE_REPORT 16	ZONED		read	  from device: >= 64 bytes
 *  ZONE_OPEN 18, ZONE_CLOSE 20, ZONE_FINISH 22, ZONE_RESET 24,
 *  ZONE_RESET_ALL 26	ZONED		write	  none (length 0)
 *  anything else	CAP_SYS_RAWIO	write	  to device if bit 0 of the type
 *						  is set, else from device
 *
 * The SCSI types (2, 3) and the legacy barrier bit are always -EOPNOTSUPP.
 * Without the feature FLUSH a disk has no write cache to flush. OUT is durable
 * after a later FLUSH has completed.
 *
 * Completion: cqe->res is 0 when the device has done it (never a byte count),
 * else a negative errno. With 32-byte CQEs, cqe->big_cqe[0] holds the command's
 * result if res is 0 (ZONE_APPEND's sector, else 0); if res is negative it
 * holds the raw virtio status byte when the device has answered, and 0 when it
 * has not (the command was refused, or sent and never answered).
 *
 *  -EIO	VIRTIO_BLK_S_IOERR, a status that has no meaning, or none written
 *		(VIRTBLK_URING_S_UNWRITTEN); with big_cqe[0] 0: dirty cached
 *		pages could not be written back, nothing was sent
 *  -EOPNOTSUPP	VIRTIO_BLK_S_UNSUPP; with big_cqe[0] 0: the feature, ring mode or
 *		ability isn't there
 *  -EINVAL	ZONE_INVALID_CMD, ZONE_UNALIGNED_WP; with big_cqe[0] 0: a field
 *		breaks a rule above or a limit of VIRTBLK_IOCTL_INFO
 *  -ETOOMANYREFS, -EOVERFLOW	ZONE_OPEN_RESOURCE, ZONE_ACTIVE_RESOURCE
 *  -EACCES, -EPERM, -EROFS, -EFAULT, -ENOMEM, -EINTR, -ENOTTY	as usual
 *  -ENODEV	the disk is gone; if it was sent, it may or may not be done
 */
#define VIRTBLK_URING_S_UNWRITTEN	0xff

/* What Linux's virtio_blk.h lacks in some versions (virtio 1.2, 5.2) */
#ifndef VIRTIO_BLK_F_LIFETIME
#define VIRTIO_BLK_F_LIFETIME		15
#endif
#ifndef VIRTIO_BLK_T_GET_LIFETIME
#define VIRTIO_BLK_T_GET_LIFETIME	10
#endif
#ifndef VIRTIO_BLK_F_ZONED
#define VIRTIO_BLK_F_ZONED		17
#define VIRTIO_BLK_T_ZONE_APPEND	15
#define VIRTIO_BLK_T_ZONE_REPORT	16
#define VIRTIO_BLK_T_ZONE_OPEN		18
#define VIRTIO_BLK_T_ZONE_CLOSE		20
#define VIRTIO_BLK_T_ZONE_FINISH	22
#define VIRTIO_BLK_T_ZONE_RESET		24
#define VIRTIO_BLK_T_ZONE_RESET_ALL	26
#define VIRTIO_BLK_S_ZONE_INVALID_CMD	3
#define VIRTIO_BLK_S_ZONE_UNALIGNED_WP	4
#define VIRTIO_BLK_S_ZONE_OPEN_RESOURCE	5
#define VIRTIO_BLK_S_ZONE_ACTIVE_RESOURCE 6
#endif

/**
 * struct virtblk_uring_info - argument of VIRTBLK_IOCTL_INFO
 * @size:	in: bytes the caller has room for, at least
 *		VIRTBLK_URING_INFO_SIZE_V0; out: bytes that hold an answer. If
 *		the caller has more, the rest is zeroed, so that a field an
 *		older driver doesn't know reads 0.
 * @flags:	VIRTBLK_URING_INFO_*
 * @driver_features: VIRTBLK_URING_F_*
 * @capacity:	sectors of 512 bytes
 * @virtio_features: the negotiated feature bits 0..63
 * @commands:	bit N is set if this disk accepts commands of type N from a
 *		descriptor that was opened for it
 * @logical_block_size:	bytes; IN, OUT and ZONE_APPEND take multiples
 * @physical_block_size: bytes
 * @max_bytes:	the largest transfer of one command, at most 1 GiB
 * @max_bytes_any: the largest transfer that succeeds however the buffer lies
 * @max_segments: how many physically contiguous pieces one command may have
 * @max_segment_size: bytes of one such piece
 * @dma_alignment: mask; buffers whose address or length has one of these
 *	bits are copied
 * @poll_queues: number of polled queues; 0: IORING_SETUP_IOPOLL is -EOPNOTSUPP
 * @max_discard_sectors: of one range; likewise the following
 * @max_discard_seg: ranges per command; likewise the following
 * @discard_alignment: sectors
 * @max_write_zeroes_sectors: sectors
 * @max_write_zeroes_seg: ranges
 * @write_zeroes_may_unmap: 1 if the UNMAP flag of WRITE_ZEROES can deallocate
 * @max_secure_erase_sectors: sectors
 * @max_secure_erase_seg: ranges
 * @secure_erase_alignment: sectors
 * @zone_model: VIRTIO_BLK_Z_*: 0 none, 1 host-managed, 2 host-aware
 * @zone_sectors: sectors of one zone
 * @max_open_zones: 0: no limit
 * @max_active_zones: 0: no limit
 * @max_append_sectors: largest ZONE_APPEND
 * @write_granularity: bytes
 * @reserved: 0
 *
 * The values equal sysfs at that moment and follow a resize.
 */
struct virtblk_uring_info {
	__u32	size;
	__u32	flags;
	__u64	driver_features;
	__u64	capacity;
	__u64	virtio_features;
	__u64	commands;
	__u32	logical_block_size;
	__u32	physical_block_size;
	__u32	max_bytes;
	__u32	max_bytes_any;
	__u32	max_segments;
	__u32	max_segment_size;
	__u32	dma_alignment;
	__u32	poll_queues;
	__u32	max_discard_sectors;
	__u32	max_discard_seg;
	__u32	discard_alignment;
	__u32	max_write_zeroes_sectors;
	__u32	max_write_zeroes_seg;
	__u32	write_zeroes_may_unmap;
	__u32	max_secure_erase_sectors;
	__u32	max_secure_erase_seg;
	__u32	secure_erase_alignment;
	__u32	zone_model;
	__u32	zone_sectors;
	__u32	max_open_zones;
	__u32	max_active_zones;
	__u32	max_append_sectors;
	__u32	write_granularity;
	__u32	reserved;
};

#define VIRTBLK_URING_INFO_SIZE_V0	136

VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_info, capacity) == 16);
VIRTBLK_URING_ASSERT(__builtin_offsetof(struct virtblk_uring_info, logical_block_size) == 40);
VIRTBLK_URING_ASSERT(sizeof(struct virtblk_uring_info) == VIRTBLK_URING_INFO_SIZE_V0);

/* virtblk_uring_info.flags */
#define VIRTBLK_URING_INFO_RO		(1U << 0)	/* read-only now */
#define VIRTBLK_URING_INFO_WRITE_CACHE	(1U << 1)	/* FLUSH matters */

/* virtblk_uring_info.driver_features */
#define VIRTBLK_URING_F_IO64		(1ULL << 0)	/* _IO64 and _IO64_VEC */
#define VIRTBLK_URING_F_FIXED_VEC	(1ULL << 1)	/* _VEC with FIXED */

/*
 * ioctls of the node; O_RDONLY is enough. BLKGETSIZE64, BLKSSZGET, BLKPBSZGET
 * and BLKROGET answer as on the block node. The size is in the struct, not in
 * the number, so that the number stays when the struct grows. -EINVAL: size is
 * too small or above 4096; -EFAULT; -ENODEV: the disk is gone.
 */
#define VIRTBLK_IOCTL_INFO		_IO(0xB2, 0x01)

#endif /* _UAPI_LINUX_VIRTIO_BLK_URING_H */
