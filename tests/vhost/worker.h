/* SPDX-License-Identifier: GPL-2.0-only */
/* vhost's workers came with Linux 6.5; an older libc's headers lack them. */
#ifndef VHOST_WORKER_H
#define VHOST_WORKER_H

#include <linux/vhost.h>

#ifndef VHOST_NEW_WORKER
struct vhost_worker_state {
	unsigned int worker_id;
};
struct vhost_vring_worker {
	unsigned int index, worker_id;
};
#define VHOST_NEW_WORKER	_IOR(VHOST_VIRTIO, 0x8, struct vhost_worker_state)
#define VHOST_FREE_WORKER	_IOW(VHOST_VIRTIO, 0x9, struct vhost_worker_state)
#define VHOST_ATTACH_VRING_WORKER _IOW(VHOST_VIRTIO, 0x15, struct vhost_vring_worker)
#define VHOST_GET_VRING_WORKER	_IOWR(VHOST_VIRTIO, 0x16, struct vhost_vring_worker)
#endif

#ifndef VHOST_SET_FORK_FROM_OWNER
#define VHOST_SET_FORK_FROM_OWNER _IOW(VHOST_VIRTIO, 0x84, __u8)
#endif

#endif
