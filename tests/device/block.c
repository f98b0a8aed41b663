// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: from a kick to the answer.
 *
 *	device_kick → rule → [held | delayed] → device_answer → execute → used
 *
 * Held and delayed requests are executed when they are answered. A reset makes
 * those still waiting stale: their buffers are gone, only the head is kept for
 * an answer that comes too late.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"

struct range {
	uint64_t sector;
	uint32_t num, flags;
};

/* Does [sector, sector + nr) lie on the disk? */
static bool on_disk(uint64_t sector, uint64_t nr)
{
	uint64_t capacity = config_get("capacity");

	return sector <= capacity && nr <= capacity - sector;
}

/* Move nr bytes at pos; beyond the backing's end zeroes are read */
static bool transfer(struct req *r, bool write, uint64_t skip, uint64_t pos,
		     uint64_t nr)
{
	for (unsigned int i = 0; i < r->nsegs && nr; i++) {
		struct seg *s = &r->seg[i];
		uint64_t off = skip, n;
		ssize_t ret;

		if (s->write == write)	/* a write reads the driver's memory */
			continue;
		if (off >= s->len) {
			skip -= s->len;
			continue;
		}
		skip = 0;
		n = s->len - off < nr ? s->len - off : nr;
		if (write) {
			ret = pwrite(dev.backing, (char *)s->p + off, n, pos);
			if (ret != (ssize_t)n)
				return false;
		} else {
			ret = pread(dev.backing, (char *)s->p + off, n, pos);
			if (ret < 0)
				return false;
			memset((char *)s->p + off + ret, 0, n - ret);
			r->written += n;
		}
		pos += n;
		nr -= n;
	}
	return !nr;
}

static uint8_t read_write(struct req *r, bool write, bool append)
{
	uint64_t bytes = write ? r->out_len - HEADER_SIZE : r->in_len - 1;
	uint64_t block = has_feature(F_BLK_SIZE) ? config_get("blk_size") : 512;
	uint64_t sector = r->sector, nr = bytes / SECTOR_SIZE;
	uint8_t status;

	/* the wrong direction leaves nothing to move */
	if (!bytes || bytes % SECTOR_SIZE || (block && bytes % block) ||
	    !on_disk(sector, nr))
		return S_IOERR;
	if (write) {
		if (has_feature(F_RO))
			return S_IOERR;
		status = zone_before_write(&sector, nr, append);
		if (status)
			return status;
	}
	if (!transfer(r, write, write ? HEADER_SIZE : 0, sector * SECTOR_SIZE,
		      bytes))
		return S_IOERR;
	if (write)
		zone_after_write(sector, nr);
	r->append_sector = sector;
	return S_OK;
}

static bool punch(uint64_t sector, uint64_t nr)
{
	struct stat st;
	uint64_t pos = sector * SECTOR_SIZE, len = nr * SECTOR_SIZE;

	/* fallocate dislikes what lies behind the end: nothing to erase there */
	if (fstat(dev.backing, &st) || pos >= (uint64_t)st.st_size || !len)
		return true;
	if (len > st.st_size - pos)
		len = st.st_size - pos;
	return !fallocate(dev.backing, FALLOC_FL_PUNCH_HOLE |
			  FALLOC_FL_KEEP_SIZE, pos, len);
}

/* One range of a discard, write zeroes or secure erase against its limits */
static uint8_t check_range(struct req *r, const struct range *g)
{
	const char *max = r->type == T_DISCARD ? "max_discard_sectors" :
			  r->type == T_WRITE_ZEROES ? "max_write_zeroes_sectors" :
			  "max_secure_erase_sectors";
	uint64_t limit = config_get(max), align;

	if (g->flags & ~(r->type == T_WRITE_ZEROES ? 1u : 0u))
		return S_UNSUPP;
	if (!on_disk(g->sector, g->num) || (limit && g->num > limit))
		return S_IOERR;
	if (r->type == T_SECURE_ERASE) {
		align = config_get("secure_erase_sector_alignment");
		if (align && (g->sector % align || g->num % align))
			return S_IOERR;
	}
	return S_OK;
}

static uint8_t erase(struct req *r, unsigned int feature, const char *max_seg)
{
	uint64_t bytes = r->out_len - HEADER_SIZE, limit;
	struct range g;

	if (!has_feature(feature))
		return S_UNSUPP;
	if (has_feature(F_RO) || !bytes || bytes % sizeof(g))
		return S_IOERR;
	limit = config_get(max_seg);
	if (limit && bytes / sizeof(g) > limit)
		return S_IOERR;
	/* all ranges are checked before the first is touched */
	for (uint64_t off = 0; off < bytes; off += sizeof(g)) {
		uint8_t status;

		req_read(r, HEADER_SIZE + off, &g, sizeof(g));
		status = check_range(r, &g);
		if (status)
			return status;
	}
	for (uint64_t off = 0; off < bytes; off += sizeof(g)) {
		req_read(r, HEADER_SIZE + off, &g, sizeof(g));
		if (!punch(g.sector, g.num))
			return S_IOERR;
	}
	return S_OK;
}

static uint8_t answer_bytes(struct req *r, const void *data, uint64_t len)
{
	if (r->in_len < len + 1)
		return S_IOERR;
	r->written = req_write(r, 0, data, len);
	return S_OK;
}

static uint8_t execute(struct req *r)
{
	uint16_t life[3];

	switch (r->type) {
	case T_IN:
		return read_write(r, false, false);
	case T_OUT:
		return read_write(r, true, false);
	case T_FLUSH:
		if (!has_feature(F_FLUSH))
			return S_UNSUPP;
		return fdatasync(dev.backing) ? S_IOERR : S_OK;
	case T_GET_ID:
		return answer_bytes(r, dev.serial, ID_BYTES);
	case T_GET_LIFETIME:
		if (!has_feature(F_LIFETIME))
			return S_UNSUPP;
		for (int i = 0; i < 3; i++)
			life[i] = htole16(dev.lifetime[i]);
		return answer_bytes(r, life, sizeof(life));
	case T_DISCARD:
		return erase(r, F_DISCARD, "max_discard_seg");
	case T_WRITE_ZEROES:
		return erase(r, F_WRITE_ZEROES, "max_write_zeroes_seg");
	case T_SECURE_ERASE:
		return erase(r, F_SECURE_ERASE, "max_secure_erase_seg");
	case T_ZONE_APPEND:
		/*
		 * The writable part is the sector (8 bytes) and the status; a
		 * driver may leave a gap between them, as the in-tree one does
		 */
		if (!has_feature(F_ZONED))
			return S_UNSUPP;
		return r->in_len < 9 ? S_IOERR : read_write(r, true, true);
	case T_ZONE_REPORT:
		return has_feature(F_ZONED) ? zone_report(r) : S_UNSUPP;
	case T_ZONE_OPEN:
	case T_ZONE_CLOSE:
	case T_ZONE_FINISH:
	case T_ZONE_RESET:
	case T_ZONE_RESET_ALL:
		return has_feature(F_ZONED) ? zone_manage(r) : S_UNSUPP;
	}
	return S_UNSUPP;
}

/* Write result and status, say how many bytes were written */
static int finish(struct req *r)
{
	struct action *a = &r->act;
	uint8_t status;

	if (a->status >= 0)
		status = a->status;
	else
		status = r->bad ? S_IOERR : execute(r);
	if (r->type == T_ZONE_APPEND && r->in_len >= 9) {
		uint64_t le = htole64(r->append_sector);

		req_write(r, 0, &le, 8);
		r->written += 8;
	}
	if (a->unwritten)
		return -1;
	if (r->in_len)
		r->written += req_write(r, r->in_len - 1, &status, 1);
	return status;
}

void device_answer(struct req *r)
{
	struct action *a = &r->act;
	struct vq *vq = r->vq;
	uint16_t old = vq->used_idx;
	uint32_t id = r->head, len;
	int status = -1;

	if (vq->ready) {
		if (!r->stale)
			status = finish(r);
		if (a->used_id >= 0)
			id = a->used_id;
		len = a->used_len >= 0 ? a->used_len : (int64_t)r->written;
		log_answer(r, status, id, len);
		ring_push(vq, id, len, a->jump);
		if (a->twice)
			ring_push(vq, id, len, 0);
		dev.answers++;
		ring_notify(vq, old);
	}
	req_free(r);
}

static void append(struct req **list, struct req *r)
{
	while (*list)
		list = &(*list)->next;
	*list = r;
}

static void accept_request(struct req *r)
{
	char *err;

	dev.requests++;
	rule_apply(r);
	log_request(r);
	if (r->act.config[0]) {
		config_set(r->act.config, &err);
		dev.transport->config_changed();
	}
	if (r->act.vanish) {
		log_event("\"vanish\",\"req\":%llu", (unsigned long long)r->seq);
		_exit(0);
	}
	if (r->act.hold) {
		append(&dev.held, r);
		dev.nr_held++;
	} else if (r->act.delay_hi) {
		r->due = now_ms() + r->act.delay_lo + rand() %
			 (r->act.delay_hi - r->act.delay_lo + 1);
		append(&dev.delayed, r);
		dev.nr_delayed++;
	} else {
		device_answer(r);
	}
}

void device_kick(struct vq *vq)
{
	struct req *r;

	while (vq->ready && !vq->stopped && (r = ring_pop(vq)))
		accept_request(r);
}

/* Answer what is due; milliseconds until the next, -1 when there is none */
int64_t device_run_delayed(void)
{
	struct req **p = &dev.delayed, *r;
	int64_t now = now_ms(), next = -1;

	while ((r = *p)) {
		if (r->due <= now) {
			*p = r->next;
			dev.nr_delayed--;
			device_answer(r);
			continue;
		}
		if (next < 0 || r->due - now < next)
			next = r->due - now;
		p = &r->next;
	}
	return next;
}

/* The held request to take next: the oldest, the newest or any */
static struct req **pick(const char *which)
{
	struct req **p = &dev.held;
	unsigned int n = 0;

	if (!strcmp(which, "newest"))
		n = dev.nr_held - 1;
	else if (!strcmp(which, "random"))
		n = rand() % dev.nr_held;
	while (n--)
		p = &(*p)->next;
	return p;
}

/*
 * Answer up to max of the held requests. Stale ones are dropped, as a decent
 * device does, unless hostile: then the new ring gets the old head.
 */
unsigned int device_release(const char *which, unsigned int max, bool hostile)
{
	unsigned int done = 0;

	while (dev.held && done < max) {
		struct req **p = pick(which), *r = *p;

		*p = r->next;
		dev.nr_held--;
		done++;
		if (r->stale && !hostile)
			req_free(r);
		else
			device_answer(r);
	}
	return done;
}

void device_reset(void)
{
	struct req *r;

	dev.resets++;
	dev.driver_features = 0;
	for (unsigned int i = 0; i < MAX_QUEUES; i++)
		dev.vqs[i].ready = false;
	for (r = dev.held; r; r = r->next)
		r->stale = true;
	while ((r = dev.delayed)) {
		dev.delayed = r->next;
		req_free(r);
	}
	dev.nr_delayed = 0;
	log_event("\"reset\",\"held\":%u", dev.nr_held);
}
