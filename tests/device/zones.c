// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zones: the state machine of virtio 1.2, 5.2.6 for host-managed disks (zones
 * that must be written at their write pointer) and host-aware ones (that only
 * like to be). Limits on open and active zones come from the config space.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { ZT_CONV = 1, ZT_SWR = 2, ZT_SWP = 3 };
enum { ZS_NOT_WP = 0, ZS_EMPTY = 1, ZS_IOPEN = 2, ZS_EOPEN = 3, ZS_CLOSED = 4,
       ZS_RDONLY = 13, ZS_FULL = 14, ZS_OFFLINE = 15 };
enum { MODEL_NONE = 0, MODEL_HM = 1, MODEL_HA = 2 };

static const struct { uint8_t state; const char *name; } state_names[] = {
	{ ZS_NOT_WP, "not_wp" }, { ZS_EMPTY, "empty" }, { ZS_IOPEN, "iopen" },
	{ ZS_EOPEN, "eopen" }, { ZS_CLOSED, "closed" },
	{ ZS_RDONLY, "readonly" }, { ZS_FULL, "full" },
	{ ZS_OFFLINE, "offline" },
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

const char *zone_state_name(uint8_t state)
{
	for (size_t i = 0; i < COUNT(state_names); i++)
		if (state_names[i].state == state)
			return state_names[i].name;
	return "?";
}

/* Lay the zones out over the capacity; a last one may be shorter */
void zones_init(void)
{
	uint64_t zs = config_get("zone_sectors");
	uint64_t capacity = config_get("capacity");

	free(dev.zones);
	dev.zones = NULL;
	dev.nr_zones = 0;
	if (!zs || config_get("zone_model") == MODEL_NONE)
		return;
	dev.nr_zones = (capacity + zs - 1) / zs;
	dev.zones = calloc(dev.nr_zones, sizeof(*dev.zones));
	for (unsigned int i = 0; i < dev.nr_zones; i++) {
		struct zone *z = &dev.zones[i];

		z->start = z->wp = i * zs;
		z->len = z->start + zs > capacity ? capacity - z->start : zs;
		z->cap = dev.zone_cap && dev.zone_cap < z->len ?
			 dev.zone_cap : z->len;
		z->type = config_get("zone_model") == MODEL_HM ? ZT_SWR : ZT_SWP;
		z->state = ZS_EMPTY;
		if (i < dev.conv_zones) {
			z->type = ZT_CONV;
			z->state = ZS_NOT_WP;
			z->cap = z->len;
		}
	}
}

static struct zone *zone_of(uint64_t sector)
{
	uint64_t zs = config_get("zone_sectors");

	if (!dev.nr_zones || !zs || sector / zs >= dev.nr_zones)
		return NULL;
	return &dev.zones[sector / zs];
}

static unsigned int count(uint8_t a, uint8_t b, uint8_t c)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < dev.nr_zones; i++) {
		uint8_t s = dev.zones[i].state;

		n += s == a || s == b || s == c;
	}
	return n;
}

/* A closed zone that was never written is empty again */
static void close_zone(struct zone *z)
{
	z->state = z->wp == z->start ? ZS_EMPTY : ZS_CLOSED;
}

/* Is there room to open z? Implicitly opened zones are closed to make some */
static uint8_t may_open(struct zone *z)
{
	uint64_t max_open = config_get("max_open_zones");
	uint64_t max_active = config_get("max_active_zones");

	if (z->state == ZS_IOPEN || z->state == ZS_EOPEN)
		return S_OK;
	if (max_active && z->state == ZS_EMPTY &&
	    count(ZS_IOPEN, ZS_EOPEN, ZS_CLOSED) >= max_active)
		return S_ZONE_ACTIVE_RESOURCE;
	if (!max_open || count(ZS_IOPEN, ZS_EOPEN, ZS_EOPEN) < max_open)
		return S_OK;
	for (unsigned int i = 0; i < dev.nr_zones; i++)
		if (dev.zones[i].state == ZS_IOPEN) {
			close_zone(&dev.zones[i]);
			return S_OK;
		}
	return S_ZONE_OPEN_RESOURCE;
}

/*
 * May nr sectors be written at *sector? For an append *sector names the zone
 * and becomes the place. Marks the zone implicitly open.
 */
uint8_t zone_before_write(uint64_t *sector, uint64_t nr, bool append)
{
	struct zone *z = zone_of(*sector);
	uint64_t granularity = config_get("write_granularity") / SECTOR_SIZE;
	uint8_t status;

	if (!has_feature(F_ZONED) || !z)
		return append ? S_ZONE_INVALID_CMD : S_OK;
	if (append) {
		if (z->type == ZT_CONV || *sector != z->start ||
		    nr > config_get("max_append_sectors"))
			return S_ZONE_INVALID_CMD;
		*sector = z->wp;
	}
	if (z->state == ZS_RDONLY || z->state == ZS_OFFLINE)
		return S_IOERR;
	if (z->type != ZT_SWR)
		return S_OK;
	if (z->state == ZS_FULL || *sector + nr > z->start + z->cap)
		return S_ZONE_INVALID_CMD;
	if (*sector != z->wp || (granularity && nr % granularity))
		return S_ZONE_UNALIGNED_WP;
	status = may_open(z);
	if (!status && z->state != ZS_EOPEN)
		z->state = ZS_IOPEN;
	return status;
}

void zone_after_write(uint64_t sector, uint64_t nr)
{
	struct zone *z = zone_of(sector);

	if (!has_feature(F_ZONED) || !z || z->type == ZT_CONV)
		return;
	if (sector + nr > z->wp)
		z->wp = sector + nr;
	if (z->state == ZS_EMPTY || z->state == ZS_CLOSED)
		z->state = ZS_IOPEN;
	if (z->wp >= z->start + z->cap) {
		z->wp = z->start + z->len;
		z->state = ZS_FULL;
	}
}

uint8_t zone_report(struct req *r)
{
	struct { uint64_t nr_zones; uint8_t reserved[56]; } head = { 0 };
	struct {
		uint64_t cap, start, wp;
		uint8_t type, state, reserved[38];
	} d;
	uint64_t room = r->in_len - 1, n = 0;
	struct zone *z = zone_of(r->sector);

	if (room < sizeof(head) || !z)
		return S_ZONE_INVALID_CMD;
	for (; z < dev.zones + dev.nr_zones &&
	       sizeof(head) + (n + 1) * sizeof(d) <= room; z++, n++) {
		memset(&d, 0, sizeof(d));
		d.cap = htole64(z->cap);
		d.start = htole64(z->start);
		d.wp = htole64(z->wp);
		d.type = z->type;
		d.state = z->state;
		req_write(r, sizeof(head) + n * sizeof(d), &d, sizeof(d));
	}
	head.nr_zones = htole64(r->act.nr_zones >= 0 ? (uint64_t)r->act.nr_zones : n);
	req_write(r, 0, &head, sizeof(head));
	r->written = sizeof(head) + n * sizeof(d);
	return S_OK;
}

static void reset_zone(struct zone *z)
{
	if (z->type == ZT_CONV || z->state == ZS_RDONLY || z->state == ZS_OFFLINE)
		return;
	fallocate(dev.backing, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  z->start * SECTOR_SIZE, z->len * SECTOR_SIZE);
	z->wp = z->start;
	z->state = ZS_EMPTY;
}

static uint8_t finish_zone(struct zone *z)
{
	uint8_t status = z->state == ZS_EMPTY || z->state == ZS_CLOSED ?
			 may_open(z) : S_OK;

	if (status)
		return status;
	z->wp = z->start + z->len;
	z->state = ZS_FULL;
	return S_OK;
}

/* Open, close, finish, reset and reset all */
uint8_t zone_manage(struct req *r)
{
	struct zone *z = zone_of(r->sector);
	uint8_t status;

	if (r->type == T_ZONE_RESET_ALL) {
		for (unsigned int i = 0; i < dev.nr_zones; i++)
			reset_zone(&dev.zones[i]);
		return S_OK;
	}
	if (!z || r->sector != z->start || z->type == ZT_CONV ||
	    z->state == ZS_RDONLY || z->state == ZS_OFFLINE)
		return S_ZONE_INVALID_CMD;
	switch (r->type) {
	case T_ZONE_RESET:
		reset_zone(z);
		return S_OK;
	case T_ZONE_FINISH:
		return finish_zone(z);
	case T_ZONE_CLOSE:
		if (z->state == ZS_EMPTY || z->state == ZS_FULL)
			return S_ZONE_INVALID_CMD;
		close_zone(z);
		return S_OK;
	}
	if (z->state == ZS_FULL)
		return S_ZONE_INVALID_CMD;
	status = may_open(z);
	if (!status)
		z->state = ZS_EOPEN;
	return status;
}

/* For the control socket: put a zone into any state */
bool zone_set(uint64_t sector, const char *state, int64_t wp)
{
	struct zone *z = zone_of(sector);

	for (size_t i = 0; z && i < COUNT(state_names); i++)
		if (!strcmp(state_names[i].name, state)) {
			z->state = state_names[i].state;
			if (wp >= 0)
				z->wp = wp;
			return true;
		}
	return false;
}
