// SPDX-License-Identifier: GPL-2.0-only
/*
 * Feature bits by name and the config space by field. Nothing here refuses a
 * value: nonsense is what this device is for.
 */
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

/* struct virtio_blk_config (virtio 1.2, 5.2.4), little-endian */
static const struct field {
	const char *name;
	unsigned int off, size;
} fields[] = {
	{ "capacity", 0, 8 },
	{ "size_max", 8, 4 },
	{ "seg_max", 12, 4 },
	{ "cylinders", 16, 2 },
	{ "heads", 18, 1 },
	{ "sectors", 19, 1 },
	{ "blk_size", 20, 4 },
	{ "physical_block_exp", 24, 1 },
	{ "alignment_offset", 25, 1 },
	{ "min_io_size", 26, 2 },
	{ "opt_io_size", 28, 4 },
	{ "wce", 32, 1 },
	{ "num_queues", 34, 2 },
	{ "max_discard_sectors", 36, 4 },
	{ "max_discard_seg", 40, 4 },
	{ "discard_sector_alignment", 44, 4 },
	{ "max_write_zeroes_sectors", 48, 4 },
	{ "max_write_zeroes_seg", 52, 4 },
	{ "write_zeroes_may_unmap", 56, 1 },
	{ "max_secure_erase_sectors", 60, 4 },
	{ "max_secure_erase_seg", 64, 4 },
	{ "secure_erase_sector_alignment", 68, 4 },
	{ "zone_sectors", 72, 4 },
	{ "max_open_zones", 76, 4 },
	{ "max_active_zones", 80, 4 },
	{ "max_append_sectors", 84, 4 },
	{ "write_granularity", 88, 4 },
	{ "zone_model", 92, 1 },
};

static const struct { const char *name; unsigned int bit; } names[] = {
	{ "size_max", F_SIZE_MAX }, { "seg_max", F_SEG_MAX },
	{ "geometry", F_GEOMETRY }, { "ro", F_RO },
	{ "blk_size", F_BLK_SIZE }, { "flush", F_FLUSH },
	{ "topology", F_TOPOLOGY }, { "config_wce", F_CONFIG_WCE },
	{ "mq", F_MQ }, { "discard", F_DISCARD },
	{ "write_zeroes", F_WRITE_ZEROES }, { "lifetime", F_LIFETIME },
	{ "secure_erase", F_SECURE_ERASE }, { "zoned", F_ZONED },
	{ "indirect_desc", F_INDIRECT_DESC }, { "event_idx", F_EVENT_IDX },
	{ "version_1", F_VERSION_1 }, { "access_platform", F_ACCESS_PLATFORM },
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const struct field *find(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(fields); i++)
		if (strlen(fields[i].name) == len &&
		    !strncmp(fields[i].name, name, len))
			return &fields[i];
	return NULL;
}

/* Decimal or 0x…, with K, M, G or T behind it */
bool parse_number(const char *s, uint64_t *v)
{
	static const char units[] = "KMGT";
	char *end;
	const char *u;

	errno = 0;
	*v = strtoull(s, &end, 0);
	if (end == s || errno)
		return false;
	u = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (u) {
		*v <<= 10 * (u - units + 1);
		end++;
	}
	return !*end;
}

uint64_t config_get(const char *name)
{
	const struct field *f = find(name, strlen(name));
	uint64_t v = 0;

	memcpy(&v, dev.config + f->off, f->size);
	return le64toh(v);
}

static void put(const struct field *f, uint64_t v)
{
	v = htole64(v);
	memcpy(dev.config + f->off, &v, f->size);
	if (dev.transport && dev.transport->config_write)
		dev.transport->config_write(f->off, f->size);
}

void config_write_field(const char *name, uint64_t v)
{
	put(find(name, strlen(name)), v);
}

/* FIELD=VALUE; *err says what is wrong with it */
bool config_set(const char *assignment, char **err)
{
	const char *eq = strchr(assignment, '=');
	const struct field *f;
	uint64_t v;

	*err = "no FIELD=VALUE";
	if (!eq)
		return false;
	*err = "no such config field (see --help)";
	f = find(assignment, eq - assignment);
	if (!f)
		return false;
	*err = "the value is not a number";
	if (!parse_number(eq + 1, &v))
		return false;
	put(f, v);
	return true;
}

bool feature_set(const char *name, bool on)
{
	uint64_t bit = 64;

	for (size_t i = 0; i < COUNT(names); i++)
		if (!strcmp(names[i].name, name))
			bit = names[i].bit;
	if (bit == 64 && (!parse_number(name, &bit) || bit > 63))
		return false;
	if (on)
		dev.features |= BIT(bit);
	else
		dev.features &= ~BIT(bit);
	return true;
}

/* As negotiated: before that nothing holds */
bool has_feature(unsigned int bit)
{
	return dev.driver_features & BIT(bit);
}

void config_help(FILE *f)
{
	fprintf(f, "\nFeatures (or a bit number):");
	for (size_t i = 0; i < COUNT(names); i++)
		fprintf(f, "%s%s", i % 5 ? " " : "\n  ", names[i].name);
	fprintf(f, "\n\nConfig fields:");
	for (size_t i = 0; i < COUNT(fields); i++)
		fprintf(f, "%s%s", i % 3 ? " " : "\n  ", fields[i].name);
	fprintf(f, "\n");
}
