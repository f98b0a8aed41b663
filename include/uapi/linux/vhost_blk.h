/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
/*
 * /dev/vhost-blk: virtio-blk queues served by the host's kernel
 *
 * What belongs to every vhost device (owner, memory table, rings, eventfds,
 * workers) is in <linux/vhost.h>; these commands are the rest. The order:
 *
 *	VHOST_BLK_SET_QUEUES		(one queue otherwise)
 *	VHOST_SET_OWNER, VHOST_SET_FEATURES, VHOST_SET_MEM_TABLE
 *	VHOST_SET_VRING_NUM, _ADDR, _BASE, _KICK, _CALL, _ERR for each queue
 *	VHOST_NEW_WORKER, VHOST_ATTACH_VRING_WORKER, if one is not enough
 *	VHOST_BLK_SET_BACKEND
 *
 * The config space is the caller's. A seg_max above 1022 is more than vhost
 * can take in one request.
 */
#ifndef _LINUX_VHOST_BLK_H
#define _LINUX_VHOST_BLK_H

#include <linux/types.h>
#include <linux/vhost.h>

/* The most queues, and the most ranges in one discard or write-zeroes */
#define VHOST_BLK_MAX_QUEUES	1024
#define VHOST_BLK_MAX_RANGES	256

#define VHOST_BLK_SERIAL_BYTES	20

/*
 * struct vhost_blk_backend - the file that all queues are served from
 * @fd: a regular file or block device open with O_DIRECT and not O_APPEND, at
 *	least for reading; without the right to write, writing requests fail.
 *	-1 stops the device.
 * @flags: 0
 * @serial: what the guest's GET_ID answers, filled up with zero bytes
 * @reserved: 0
 */
struct vhost_blk_backend {
	__s32 fd;
	__u32 flags;
	__u8 serial[VHOST_BLK_SERIAL_BYTES];
	__u32 reserved;
};

/*
 * Starts every queue that has addresses, gives running queues another file, or
 * stops. Stop and change come back when what was in flight has been answered.
 * A queue that was given a broken ring does nothing until stop and start.
 */
#define VHOST_BLK_SET_BACKEND	_IOW(VHOST_VIRTIO, 0x90, struct vhost_blk_backend)

/* The number of queues, before VHOST_SET_OWNER; -EBUSY afterwards */
#define VHOST_BLK_SET_QUEUES	_IOW(VHOST_VIRTIO, 0x91, __u32)

#endif
