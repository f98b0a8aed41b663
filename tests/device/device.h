/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vblk-device: a virtio-blk device that does as a test tells it.
 *
 *   transport  vduse.c, vhost-user.c	who we are plugged into, guest memory
 *   ring       ring.c			split virtqueues: chains in, used out
 *   requests   block.c			what each command means
 *   zones      zones.c			zone states and write pointers
 *   config     config.c		feature bits and the config space
 *   control    control.c		rules and the commands of the socket
 *   log        log.c			one JSON line per event
 *   main.c				options and the event loop
 *
 * One thread does everything, so that the order of events is the order in the
 * log and nothing here needs a lock.
 */
#ifndef VBLK_DEVICE_H
#define VBLK_DEVICE_H

#include <linux/virtio_ring.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_QUEUES	64
#define CONFIG_SIZE	96
#define SECTOR_SIZE	512
#define HEADER_SIZE	16	/* type, ioprio, sector: virtio 1.2, 5.2.6 */
#define ID_BYTES	20
#define BIT(n)		(1ULL << (n))

/* Request types, status bytes and features of virtio 1.2, 5.2 */
enum {
	T_IN = 0, T_OUT = 1, T_FLUSH = 4, T_GET_ID = 8, T_GET_LIFETIME = 10,
	T_DISCARD = 11, T_WRITE_ZEROES = 13, T_SECURE_ERASE = 14,
	T_ZONE_APPEND = 15, T_ZONE_REPORT = 16, T_ZONE_OPEN = 18,
	T_ZONE_CLOSE = 20, T_ZONE_FINISH = 22, T_ZONE_RESET = 24,
	T_ZONE_RESET_ALL = 26,
};

enum {
	S_OK = 0, S_IOERR = 1, S_UNSUPP = 2, S_ZONE_INVALID_CMD = 3,
	S_ZONE_UNALIGNED_WP = 4, S_ZONE_OPEN_RESOURCE = 5,
	S_ZONE_ACTIVE_RESOURCE = 6,
};

enum {
	F_SIZE_MAX = 1, F_SEG_MAX = 2, F_GEOMETRY = 4, F_RO = 5,
	F_BLK_SIZE = 6, F_FLUSH = 9, F_TOPOLOGY = 10, F_CONFIG_WCE = 11,
	F_MQ = 12, F_DISCARD = 13, F_WRITE_ZEROES = 14, F_LIFETIME = 15,
	F_SECURE_ERASE = 16, F_ZONED = 17, F_INDIRECT_DESC = 28,
	F_EVENT_IDX = 29, F_VERSION_1 = 32, F_ACCESS_PLATFORM = 33,
};

/* One piece of a request's chain, already translated */
struct seg {
	void *p;
	uint32_t len;
	bool write;			/* the device may write it */
};

/* What a rule makes of the requests it matches; see control.c */
struct action {
	int status;			/* -1: as executed, else this byte */
	bool unwritten;			/* leave the status byte alone */
	bool hold, vanish, twice;
	int64_t used_id;		/* -1: the right one */
	int64_t used_len;		/* -1: the right one */
	unsigned int jump;		/* used index runs ahead by this */
	unsigned int delay_lo, delay_hi; /* ms */
	int64_t nr_zones;		/* -1: the right one */
	char config[64];		/* FIELD=VALUE written on arrival */
};

struct vq {
	unsigned int index, num;
	bool ready, stopped, noirq;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t last_avail, used_idx;
	int kickfd;
};

struct req {
	struct req *next;
	uint64_t seq;
	struct vq *vq;
	uint16_t head;
	bool indirect;
	bool stale;			/* the device was reset meanwhile */
	const char *bad;		/* why the chain makes no request */
	struct seg *seg;
	unsigned int nsegs;
	uint64_t out_len, in_len;	/* readable and writable bytes */
	uint32_t type, ioprio;
	uint64_t sector;
	uint64_t written;		/* bytes put into writable segments */
	uint64_t append_sector;
	int64_t due;			/* ms, when a delayed one is answered */
	struct action act;
};

/* What carries us: VDUSE in the same kernel or vhost-user from QEMU */
struct transport {
	const char *name;
	void (*start)(void);
	void *(*map)(uint64_t addr, uint64_t len);
	void (*irq)(struct vq *vq);
	void (*config_changed)(void);	/* interrupt */
	void (*config_write)(unsigned int off, unsigned int len);
	int (*fds)(struct pollfd *p);	/* adds its descriptors, says how many */
	void (*event)(int fd);
	void (*stop)(void);
};

struct zone {
	uint64_t start, len, cap, wp;
	uint8_t type, state;
};

struct device {
	const struct transport *transport;
	const char *name;
	uint64_t features, driver_features;
	uint8_t config[CONFIG_SIZE];
	unsigned int nr_queues, queue_size;
	struct vq vqs[MAX_QUEUES];
	uint8_t status;
	unsigned int resets;
	bool quit;

	int backing;			/* memfd or file */
	char serial[ID_BYTES];
	uint16_t lifetime[3];

	struct zone *zones;
	unsigned int nr_zones, conv_zones;
	uint64_t zone_cap;		/* sectors */

	struct req *held, *delayed;
	unsigned int nr_held, nr_delayed;
	uint64_t requests, answers;
};

extern struct device dev;

/* main.c */
int64_t now_ms(void);
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ring.c */
bool ring_start(struct vq *vq, uint64_t desc, uint64_t avail, uint64_t used,
		uint16_t last_avail);
struct req *ring_pop(struct vq *vq);
void ring_push(struct vq *vq, uint32_t id, uint32_t len, unsigned int jump);
void ring_notify(struct vq *vq, uint16_t old);
void req_free(struct req *r);
uint64_t req_read(struct req *r, uint64_t off, void *buf, uint64_t len);
uint64_t req_write(struct req *r, uint64_t off, const void *buf, uint64_t len);

/* block.c */
void device_kick(struct vq *vq);
void device_reset(void);
void device_answer(struct req *r);
int64_t device_run_delayed(void);
unsigned int device_release(const char *which, unsigned int max, bool hostile);
uint64_t resized(uint64_t sectors);

/* zones.c */
void zones_init(void);
uint8_t zone_before_write(uint64_t *sector, uint64_t nr, bool append);
void zone_after_write(uint64_t sector, uint64_t nr);
uint8_t zone_report(struct req *r);
uint8_t zone_manage(struct req *r);
const char *zone_state_name(uint8_t state);
bool zone_set(uint64_t sector, const char *state, int64_t wp);

/* config.c */
bool config_set(const char *assignment, char **err);
uint64_t config_get(const char *field);
void config_write_field(const char *field, uint64_t value);
bool feature_set(const char *name, bool on);
bool has_feature(unsigned int bit);
bool parse_number(const char *s, uint64_t *v);
void config_help(FILE *f);

/* control.c */
void control_listen(const char *path);
int control_fds(struct pollfd *p);
void control_event(int fd);
void control_check_waiters(void);
const char *control_run(char *line, FILE *out);
void control_script(const char *path);
bool control_flicker(void);
void rule_apply(struct req *r);
int control_client(const char *path, char **commands);
void control_help(FILE *f);
int type_number(const char *name);
const char *type_name(uint32_t type);

/* log.c */
void log_open(const char *path);
void log_request(struct req *r);
void log_answer(struct req *r, int status, uint32_t id, uint32_t len);
void log_event(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* transports */
extern const struct transport vduse_transport, vhost_user_transport;
void vduse_set_adopt(bool adopt);
void vhost_user_set_socket(const char *path);

#endif
