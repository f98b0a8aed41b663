// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio-blk: passthrough by io_uring, /dev/vdXc0
 *
 * Stages 1 to 4 on the way down, 7 and 8 on the way up, in this order below;
 * virtblk.h lists them all. include/uapi/linux/virtio_blk_uring.h says what a
 * program may rely on.
 */
#include <linux/compat.h>
#include <linux/ioprio.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/sched/signal.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "virtblk.h"

/* virtio 1.2, 5.2.6: struct virtio_blk_lifetime, and a zone report's header. */
#define VIRTBLK_LIFETIME_BYTES	6
#define VIRTBLK_REPORT_HEADER	64

/* Counters of one CPU, for /sys/class/vblk-generic/vdXc0/stat. */
struct virtblk_stat {
	u64	reads;
	u64	read_bytes;
	u64	writes;
	u64	write_bytes;
	u64	others;
	u64	errors;
};

/**
 * struct virtblk_node - /dev/vdXc0
 * @dev:	the device; holds a reference of the disk until it is released,
 *		and an open descriptor holds @cdev, which holds @dev
 * @cdev:	the character device
 * @vblk:	the disk
 * @gone:	the disk is being removed: an inode still finds @cdev
 * @stat:	counters
 */
struct virtblk_node {
	struct device			dev;
	struct cdev			cdev;
	struct virtblk			*vblk;
	bool				gone;
	struct virtblk_stat __percpu	*stat;
};

static dev_t virtblk_devt;

/* ---- 1 decode ---- */

/**
 * struct virtblk_cmd - a command, read from the SQE once
 * @type:	VIRTIO_BLK_T_*
 * @ioprio:	0 or an IOPRIO_PRIO_VALUE
 * @sector:	512-byte units
 * @addr:	of the buffer or the iovecs
 * @len:	bytes, or number of iovecs; from stage 3 on bytes
 * @flag:	must be 0
 * @vec:	@addr and @len describe iovecs
 * @fixed:	the buffer is a registered one
 * @rule:	what holds for @type, from stage 2 on
 * @write:	the data goes to the device, from stage 2 on
 */
struct virtblk_cmd {
	u32	type;
	u32	ioprio;
	u64	sector;
	u64	addr;
	u32	len;
	u32	flag;
	bool	vec;
	bool	fixed;
	bool	write;
	const struct virtblk_rule *rule;
};

static __always_inline int virtblk_decode(struct io_uring_cmd *ioucmd,
					  unsigned int issue_flags,
					  struct virtblk_cmd *cmd)
{
	const void *payload = compat_cmd_payload(ioucmd);
	u32 op = ioucmd->cmd_op;

	if (op == VIRTBLK_URING_CMD_IO || op == VIRTBLK_URING_CMD_IO_VEC) {
		const struct virtblk_uring_cmd *c = payload;

		/* In a 64-byte SQE the rest would be the next SQE's. */
		if (!(issue_flags & IO_URING_F_SQE128))
			return -EOPNOTSUPP;
		cmd->type = READ_ONCE(c->type);
		cmd->ioprio = READ_ONCE(c->ioprio);
		cmd->sector = READ_ONCE(c->sector);
		cmd->addr = READ_ONCE(c->data);
		cmd->len = READ_ONCE(c->data_len);
		cmd->flag = READ_ONCE(c->flag);
	} else if (op == VIRTBLK_URING_CMD_IO64 ||
		   op == VIRTBLK_URING_CMD_IO64_VEC) {
		const struct virtblk_uring_cmd64 *c = payload;

		if (!COMPAT_IO64)
			return -EOPNOTSUPP;
		cmd->sector = READ_ONCE(c->sector);
		cmd->type = READ_ONCE(c->type);
		cmd->ioprio = READ_ONCE(c->ioprio);
		cmd->flag = READ_ONCE(c->flag);
		compat_cmd_buffer(ioucmd, &cmd->addr, &cmd->len);
	} else {
		return -ENOTTY;
	}
	/* The top bits are io_uring's own; MULTISHOT isn't for us. */
	if (ioucmd->flags & ~(IORING_URING_CMD_FIXED | GENMASK(31, 24)))
		return -EINVAL;
	cmd->vec = op == VIRTBLK_URING_CMD_IO_VEC ||
		   op == VIRTBLK_URING_CMD_IO64_VEC;
	cmd->fixed = ioucmd->flags & IORING_URING_CMD_FIXED;
	return 0;
}

/* ---- 2 policy ---- */

/* What a command's length has to be. */
enum virtblk_len {
	VIRTBLK_LEN_NONE = 1,	/* 0: no data */
	VIRTBLK_LEN_BLOCKS,	/* whole logical blocks, at least one */
	VIRTBLK_LEN_ID,		/* 20 bytes */
	VIRTBLK_LEN_LIFETIME,	/* 6 bytes */
	VIRTBLK_LEN_RANGES,	/* a list of ranges, at least one */
	VIRTBLK_LEN_REPORT,	/* at least a report's header */
	VIRTBLK_LEN_ANY,
};

/* virtblk_rule.flags */
enum {
	VIRTBLK_RULE_WRITE	= 1 << 0,	/* data goes to the device */
	VIRTBLK_RULE_CHANGES	= 1 << 1,	/* changes what is on the disk */
	VIRTBLK_RULE_SECTOR	= 1 << 2,	/* has a place on the disk */
	VIRTBLK_RULE_COPY	= 1 << 3,	/* small, or checked: copied */
};

/**
 * struct virtblk_rule - what holds for one type of command
 * @mode:	what the descriptor has to be open for
 * @feature:	device feature it needs, or VIRTBLK_NO_FEATURE
 * @len:	enum virtblk_len; 0 is no entry
 * @flags:	VIRTBLK_RULE_*. WRITE is from here, never from bit 0 of a known
 *		type: SECURE_ERASE is even and writes. Without SECTOR, sector
 *		must be 0 (virtio 1.2, 5.2.6).
 */
struct virtblk_rule {
	fmode_t	mode;
	u8	feature;
	u8	len;
	u8	flags;
};

/* A feature that every device has: see virtblk_cache_limits(). */
#define VIRTBLK_NO_FEATURE	63

#define VIRTBLK_RULE(m, f, l, fl) \
	{ .mode = (m), .feature = (f), .len = VIRTBLK_LEN_##l, .flags = (fl) }

#define VIRTBLK_RANGES_RULE(f) \
	VIRTBLK_RULE(FMODE_WRITE, f, RANGES, VIRTBLK_RULE_WRITE | \
		     VIRTBLK_RULE_CHANGES | VIRTBLK_RULE_COPY)

#define VIRTBLK_ZONE_RULE(fl) \
	VIRTBLK_RULE(FMODE_WRITE, VIRTIO_BLK_F_ZONED, NONE, \
		     VIRTBLK_RULE_CHANGES | (fl))

static const struct virtblk_rule virtblk_rules[] = {
	[VIRTIO_BLK_T_IN] =
		VIRTBLK_RULE(FMODE_READ, VIRTBLK_NO_FEATURE, BLOCKS,
			     VIRTBLK_RULE_SECTOR),
	[VIRTIO_BLK_T_OUT] =
		VIRTBLK_RULE(FMODE_WRITE, VIRTBLK_NO_FEATURE, BLOCKS,
			     VIRTBLK_RULE_WRITE | VIRTBLK_RULE_CHANGES |
			     VIRTBLK_RULE_SECTOR),
	[VIRTIO_BLK_T_FLUSH] =
		VIRTBLK_RULE(0, VIRTIO_BLK_F_FLUSH, NONE, 0),
	[VIRTIO_BLK_T_GET_ID] =
		VIRTBLK_RULE(FMODE_READ, VIRTBLK_NO_FEATURE, ID,
			     VIRTBLK_RULE_COPY),
	[VIRTIO_BLK_T_GET_LIFETIME] =
		VIRTBLK_RULE(FMODE_READ, VIRTIO_BLK_F_LIFETIME, LIFETIME,
			     VIRTBLK_RULE_COPY),
	[VIRTIO_BLK_T_DISCARD] =
		VIRTBLK_RANGES_RULE(VIRTIO_BLK_F_DISCARD),
	[VIRTIO_BLK_T_WRITE_ZEROES] =
		VIRTBLK_RANGES_RULE(VIRTIO_BLK_F_WRITE_ZEROES),
	[VIRTIO_BLK_T_SECURE_ERASE] =
		VIRTBLK_RANGES_RULE(VIRTIO_BLK_F_SECURE_ERASE),
	[VIRTIO_BLK_T_ZONE_APPEND] =
		VIRTBLK_RULE(FMODE_WRITE, VIRTIO_BLK_F_ZONED, BLOCKS,
			     VIRTBLK_RULE_WRITE | VIRTBLK_RULE_CHANGES |
			     VIRTBLK_RULE_SECTOR),
	[VIRTIO_BLK_T_ZONE_REPORT] =
		VIRTBLK_RULE(FMODE_READ, VIRTIO_BLK_F_ZONED, REPORT,
			     VIRTBLK_RULE_SECTOR),
	[VIRTIO_BLK_T_ZONE_OPEN] = VIRTBLK_ZONE_RULE(VIRTBLK_RULE_SECTOR),
	[VIRTIO_BLK_T_ZONE_CLOSE] = VIRTBLK_ZONE_RULE(VIRTBLK_RULE_SECTOR),
	[VIRTIO_BLK_T_ZONE_FINISH] = VIRTBLK_ZONE_RULE(VIRTBLK_RULE_SECTOR),
	[VIRTIO_BLK_T_ZONE_RESET] = VIRTBLK_ZONE_RULE(VIRTBLK_RULE_SECTOR),
	[VIRTIO_BLK_T_ZONE_RESET_ALL] = VIRTBLK_ZONE_RULE(0),
};

/* Numbers the driver knows nothing of, for those who do; by direction. */
static const struct virtblk_rule virtblk_raw_rules[] = {
	VIRTBLK_RULE(FMODE_WRITE, VIRTBLK_NO_FEATURE, ANY,
		     VIRTBLK_RULE_CHANGES | VIRTBLK_RULE_SECTOR),
	VIRTBLK_RULE(FMODE_WRITE, VIRTBLK_NO_FEATURE, ANY,
		     VIRTBLK_RULE_CHANGES | VIRTBLK_RULE_SECTOR |
		     VIRTBLK_RULE_WRITE),
};

static const struct virtblk_rule *virtblk_find_rule(u32 type)
{
	if (likely(type < ARRAY_SIZE(virtblk_rules))) {
		const struct virtblk_rule *rule =
			&virtblk_rules[array_index_nospec(type,
						ARRAY_SIZE(virtblk_rules))];

		if (likely(rule->len))
			return rule;
	}
	return &virtblk_raw_rules[type & VIRTIO_BLK_T_OUT];
}

static bool virtblk_never(u32 type)
{
	return (type & ~VIRTIO_BLK_T_OUT) == VIRTIO_BLK_T_SCSI_CMD ||
	       type & VIRTIO_BLK_T_BARRIER;
}

static int virtblk_check_ioprio(u32 ioprio)
{
	if (ioprio > U16_MAX)
		return -EINVAL;
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_NONE:
	case IOPRIO_CLASS_BE:
	case IOPRIO_CLASS_IDLE:
		return 0;
	case IOPRIO_CLASS_RT:
		/* As ioprio_check_cap() has it. */
		return capable(CAP_SYS_ADMIN) || capable(CAP_SYS_NICE) ?
			0 : -EPERM;
	default:
		return -EINVAL;
	}
}

static const struct virtblk_ranges *
virtblk_ranges_of(const struct virtblk *vblk, u32 type)
{
	switch (type) {
	case VIRTIO_BLK_T_DISCARD:
		return &vblk->discard;
	case VIRTIO_BLK_T_WRITE_ZEROES:
		return &vblk->write_zeroes;
	default:
		return &vblk->secure_erase;
	}
}

/* The length rules of all but reads and writes. */
static bool virtblk_odd_len_ok(const struct virtblk *vblk,
			       const struct virtblk_cmd *cmd, u64 len)
{
	const size_t range = sizeof(struct virtio_blk_discard_write_zeroes);

	switch (cmd->rule->len) {
	case VIRTBLK_LEN_NONE:
		return !len;
	case VIRTBLK_LEN_ID:
		return len == VIRTIO_BLK_ID_BYTES;
	case VIRTBLK_LEN_LIFETIME:
		return len == VIRTBLK_LIFETIME_BYTES;
	case VIRTBLK_LEN_RANGES:
		return len && !(len % range) &&
		       len / range <= virtblk_ranges_of(vblk, cmd->type)->max_seg;
	case VIRTBLK_LEN_REPORT:
		return len >= VIRTBLK_REPORT_HEADER;
	default:
		return true;
	}
}

/*
 * The length rule, for @len bytes: once in stage 2, and for vectored commands
 * in stage 3, where their length is known.
 */
static __always_inline int virtblk_check_len(const struct virtblk *vblk,
					     const struct virtblk_cmd *cmd,
					     u64 len)
{
	if (len > vblk->lim.max_bytes)
		return -EINVAL;
	if (unlikely(cmd->rule->len != VIRTBLK_LEN_BLOCKS))
		return virtblk_odd_len_ok(vblk, cmd, len) ? 0 : -EINVAL;
	if (!len || len & vblk->lim.block_mask)
		return -EINVAL;
	if (unlikely(cmd->type == VIRTIO_BLK_T_ZONE_APPEND) &&
	    vblk->max_append_sectors &&
	    len >> SECTOR_SHIFT > vblk->max_append_sectors)
		return -EINVAL;
	return 0;
}

/* What is looked at only if a command isn't a plain read or write. */
static int virtblk_policy_odd(const struct virtblk *vblk,
			      const struct virtblk_cmd *cmd)
{
	/* SCSI left the specification, the barrier never worked. */
	if (virtblk_never(cmd->type))
		return -EOPNOTSUPP;
	/* Nobody can say what it does. */
	if (cmd->rule->len == VIRTBLK_LEN_ANY && !capable(CAP_SYS_RAWIO))
		return -EACCES;
	/* DISCARD on a zoned device: offered, and of no use. */
	if (cmd->rule->len == VIRTBLK_LEN_RANGES &&
	    vblk->features & BIT_ULL(cmd->rule->feature) &&
	    !virtblk_ranges_of(vblk, cmd->type)->max_sectors)
		return -EOPNOTSUPP;
	return 0;
}

/*
 * May this descriptor send this command to this disk, and does it make sense?
 * Reads nothing but the table, the device's features and the limits.
 */
static __always_inline int virtblk_policy(const struct virtblk *vblk,
					  fmode_t mode, struct virtblk_cmd *cmd,
					  unsigned int issue_flags)
{
	const struct virtblk_rule *rule = virtblk_find_rule(cmd->type);
	int err;

	cmd->rule = rule;
	cmd->write = rule->flags & VIRTBLK_RULE_WRITE;

	if (unlikely(cmd->flag))
		return -EINVAL;
	if (unlikely(cmd->ioprio)) {
		err = virtblk_check_ioprio(cmd->ioprio);
		if (err)
			return err;
	}
	if (unlikely(rule->mode & ~mode))
		return virtblk_never(cmd->type) ? -EOPNOTSUPP : -EACCES;
	if (unlikely(rule->len != VIRTBLK_LEN_BLOCKS)) {
		err = virtblk_policy_odd(vblk, cmd);
		if (err)
			return err;
	}
	if (unlikely(!(vblk->features & BIT_ULL(rule->feature))))
		return -EOPNOTSUPP;
	/* The device's word or the administrator's. */
	if (rule->flags & VIRTBLK_RULE_CHANGES &&
	    unlikely(get_disk_ro(vblk->disk)))
		return -EROFS;
	/* Without a polled queue the reaper would wait for ever. */
	if (unlikely(issue_flags & IO_URING_F_IOPOLL) &&
	    !vblk->io_queues[HCTX_TYPE_POLL])
		return -EOPNOTSUPP;

	if (rule->len == VIRTBLK_LEN_BLOCKS) {
		if (unlikely(cmd->sector << SECTOR_SHIFT &
			     vblk->lim.block_mask))
			return -EINVAL;
	} else if (!(rule->flags & VIRTBLK_RULE_SECTOR) && cmd->sector) {
		return -EINVAL;
	}
	if (unlikely(cmd->vec) && rule->len != VIRTBLK_LEN_NONE)
		return 0;	/* stage 3 knows the length */
	return virtblk_check_len(vblk, cmd, cmd->len);
}

/* ---- 3 pin ---- */

/**
 * struct virtblk_map - a command's buffer, if it isn't simply one segment
 * @len:	bytes
 * @nr_user:	entries of @user
 * @nr:		entries of @sg
 * @nr_pages:	entries of @pages
 * @last_len:	of the last entry of @user
 * @end:	where that one ends
 * @read:	the device writes into it
 * @bounce:	kernel memory that the device works on instead of the user's
 * @sg:		what the device gets: @user, or what describes @bounce
 * @user:	the user's memory, NULL while it is being counted
 * @pages:	the pinned pages, one for each pin; none if the buffer is a
 *		registered one
 */
struct virtblk_map {
	u32			len;
	unsigned int		nr_user;
	unsigned int		nr;
	unsigned int		nr_pages;
	u32			last_len;
	phys_addr_t		end;
	bool			read;
	void			*bounce;
	struct scatterlist	*sg;
	struct scatterlist	*user;
	struct page		*pages[];
};

/**
 * struct virtblk_buf - a command's buffer between stages 3 and 4
 * @map:	if not NULL, the buffer; else one segment:
 * @page:	its page, NULL if there is no data
 * @offset:	where it starts in @page
 * @pinned:	@page is to be unpinned
 */
struct virtblk_buf {
	struct virtblk_map	*map;
	struct page		*page;
	unsigned int		offset;
	bool			pinned;
};

/* A piece of user memory. */
struct virtblk_piece {
	u64	addr;
	u64	len;
};

static void virtblk_map_free(struct virtblk_map *map)
{
	if (map->nr_pages)
		unpin_user_pages_dirty_lock(map->pages, map->nr_pages,
					    map->read);
	if (map->bounce) {
		kvfree(map->bounce);
		kvfree(map->sg);
	}
	kvfree(map->user);
	kvfree(map);
}

/*
 * Appends contiguous memory to the user's, or only counts it. What goes on
 * where the last entry ended joins it, up to the largest segment.
 */
static void virtblk_map_add(struct virtblk_map *map, struct page *page,
			    unsigned int offset, size_t len, u32 max_segment)
{
	phys_addr_t at = page_to_phys(page) + offset;

	while (len) {
		bool joins = map->nr_user && at == map->end &&
			     map->last_len < max_segment;
		u32 part = min_t(size_t, len, joins ?
				 max_segment - map->last_len : max_segment);

		if (!joins) {
			if (map->user)
				sg_set_page(&map->user[map->nr_user],
					    page + offset / PAGE_SIZE, 0,
					    offset_in_page(offset));
			map->nr_user++;
			map->last_len = 0;
		}
		map->last_len += part;
		if (map->user)
			map->user[map->nr_user - 1].length = map->last_len;
		at += part;
		map->end = at;
		offset += part;
		len -= part;
	}
}

/* Pins one piece's pages. */
static int virtblk_pin_piece(struct virtblk_map *map,
			     const struct virtblk_piece *piece)
{
	unsigned long addr = piece->addr & PAGE_MASK;
	int nr, left = DIV_ROUND_UP_ULL(offset_in_page(piece->addr) +
					piece->len, PAGE_SIZE);

	if (!piece->len)
		return 0;
	for (; left; left -= nr) {
		nr = pin_user_pages_fast(addr, left,
					 map->read ? FOLL_WRITE : 0,
					 map->pages + map->nr_pages);
		if (nr <= 0)
			return nr == -ENOMEM ? -ENOMEM : -EFAULT;
		map->nr_pages += nr;
		addr += (unsigned long)nr << PAGE_SHIFT;
	}
	return 0;
}

/* From pinned pages to segments: pages that follow each other go in at once. */
static void virtblk_add_pieces(struct virtblk_map *map,
			       const struct virtblk_piece *piece,
			       unsigned int nr, u32 max_segment)
{
	struct page **pages = map->pages;

	for (; nr; nr--, piece++) {
		unsigned int offset = offset_in_page(piece->addr);
		u64 left = piece->len;

		while (left) {
			u64 run = PAGE_SIZE - offset;
			unsigned int n = 1;

			while (run < left && pages[n] == pages[n - 1] + 1) {
				run += PAGE_SIZE;
				n++;
			}
			run = min(run, left);
			virtblk_map_add(map, pages[0], offset, run,
					max_segment);
			pages += n;
			left -= run;
			offset = 0;
		}
	}
}

/* Between counting the entries and filling them in. */
static int virtblk_alloc_user(struct virtblk_map *map)
{
	unsigned int entries = map->nr_user;

	if (!entries)
		return -EINVAL;
	map->user = kvmalloc_array(entries, sizeof(*map->user),
				   GFP_KERNEL_ACCOUNT);
	if (!map->user)
		return -ENOMEM;
	sg_init_table(map->user, entries);
	map->sg = map->user;
	map->nr_user = 0;
	return 0;
}

static unsigned int virtblk_count_pages(const struct virtblk_piece *piece,
					unsigned int nr)
{
	unsigned int pages = 0;

	for (; nr; nr--, piece++)
		pages += DIV_ROUND_UP_ULL(offset_in_page(piece->addr) +
					  piece->len, PAGE_SIZE);
	return pages;
}

static struct virtblk_map *virtblk_map_alloc(const struct virtblk_cmd *cmd,
					     unsigned int pages)
{
	struct virtblk_map *map;

	map = kvmalloc(struct_size(map, pages, pages), GFP_KERNEL_ACCOUNT);
	if (!map)
		return NULL;
	memset(map, 0, sizeof(*map));
	map->len = cmd->len;
	map->read = !cmd->write;
	return map;
}

static struct virtblk_map *virtblk_pin_user(const struct virtblk *vblk,
					    const struct virtblk_cmd *cmd,
					    const struct virtblk_piece *piece,
					    unsigned int nr)
{
	u32 max_segment = vblk->lim.max_segment_size;
	struct virtblk_map *map;
	unsigned int i;
	int err = 0;

	map = virtblk_map_alloc(cmd, virtblk_count_pages(piece, nr));
	if (!map)
		return ERR_PTR(-ENOMEM);
	for (i = 0; !err && i < nr; i++)
		err = fatal_signal_pending(current) ?
			-EINTR : virtblk_pin_piece(map, &piece[i]);
	if (!err) {
		virtblk_add_pieces(map, piece, nr, max_segment);
		err = virtblk_alloc_user(map);
	}
	if (err) {
		virtblk_map_free(map);
		return ERR_PTR(err);
	}
	virtblk_add_pieces(map, piece, nr, max_segment);
	return map;
}

/*
 * The part of a registered buffer that @iter describes. Its nr_segs is not
 * looked at: before 6.12 it counted the whole rest of the buffer.
 */
static void virtblk_add_bvecs(struct virtblk_map *map,
			      const struct iov_iter *iter, u32 max_segment)
{
	const struct bio_vec *bv = iter->bvec;
	size_t left, skip = iter->iov_offset;

	for (left = iter->count; left; bv++, skip = 0) {
		size_t len = min_t(size_t, left, bv->bv_len - skip);

		virtblk_map_add(map, bv->bv_page, bv->bv_offset + skip, len,
				max_segment);
		left -= len;
	}
}

static struct virtblk_map *virtblk_map_bvecs(const struct virtblk *vblk,
					     const struct virtblk_cmd *cmd,
					     const struct iov_iter *iter)
{
	u32 max_segment = vblk->lim.max_segment_size;
	struct virtblk_map *map;
	int err;

	map = virtblk_map_alloc(cmd, 0);
	if (!map)
		return ERR_PTR(-ENOMEM);
	virtblk_add_bvecs(map, iter, max_segment);
	err = virtblk_alloc_user(map);
	if (err) {
		virtblk_map_free(map);
		return ERR_PTR(err);
	}
	virtblk_add_bvecs(map, iter, max_segment);
	return map;
}

/* Copies to what the device gets, or back to the user's memory. */
static int virtblk_bounce(struct virtblk_map *map)
{
	map->bounce = kvmalloc(map->len, GFP_KERNEL_ACCOUNT);
	if (!map->bounce)
		return -ENOMEM;
	map->nr = virtblk_sg_count(map->bounce, map->len);
	map->sg = kvmalloc_array(map->nr, sizeof(*map->sg), GFP_KERNEL_ACCOUNT);
	if (!map->sg)
		return -ENOMEM;
	virtblk_sg_fill(map->sg, map->bounce, map->len);

	/* Never hand out what the heap held, even if the device writes less. */
	if (map->read)
		memset(map->bounce, 0, map->len);
	else
		sg_copy_to_buffer(map->user, map->nr_user, map->bounce,
				  map->len);
	return 0;
}

static bool virtblk_map_aligned(const struct virtblk *vblk,
				const struct virtblk_map *map)
{
	unsigned int i;

	for (i = 0; i < map->nr_user; i++)
		if ((map->user[i].offset | map->user[i].length) &
		    vblk->lim.dma_mask)
			return false;
	return true;
}

/* Small payloads, and lists that are checked, are always copied. */
static bool virtblk_copies(const struct virtblk_cmd *cmd)
{
	return cmd->rule->flags & VIRTBLK_RULE_COPY;
}

/* From the user's memory to what the device can take. */
static int virtblk_map_finish(const struct virtblk *vblk,
			      const struct virtblk_cmd *cmd,
			      struct virtblk_map *map)
{
	int err;

	map->nr = map->nr_user;
	if (virtblk_copies(cmd) || !virtblk_map_aligned(vblk, map)) {
		/* A copy has a piece a page: none is made in vain. */
		if (DIV_ROUND_UP(map->len, PAGE_SIZE) > vblk->lim.max_segments)
			return -EINVAL;
		err = virtblk_bounce(map);
		if (err)
			return err;
	}
	return map->nr <= vblk->lim.max_segments ? 0 : -EINVAL;
}

static int virtblk_copy_iovec(const struct virtblk_cmd *cmd, bool compat,
			      struct virtblk_piece *piece)
{
	void __user *from = u64_to_user_ptr(cmd->addr);
	u32 i;

	for (i = 0; i < cmd->len; i++, piece++) {
		if (compat) {
			struct compat_iovec v;

			if (copy_from_user(&v, from, sizeof(v)))
				return -EFAULT;
			from += sizeof(v);
			piece->addr = v.iov_base;
			piece->len = v.iov_len;
		} else {
			struct iovec v;

			if (copy_from_user(&v, from, sizeof(v)))
				return -EFAULT;
			from += sizeof(v);
			piece->addr = (unsigned long)v.iov_base;
			piece->len = v.iov_len;
		}
	}
	return 0;
}

/* Copies the iovecs, once; then their total is the command's length. */
static int virtblk_get_pieces(const struct virtblk *vblk,
			      struct virtblk_cmd *cmd, bool compat,
			      struct virtblk_piece **pieces)
{
	struct virtblk_piece *p;
	u64 total = 0;
	int err;
	u32 i;

	if (!cmd->len || cmd->len > UIO_MAXIOV)
		return -EINVAL;
	p = kmalloc_array(cmd->len, sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return -ENOMEM;
	err = virtblk_copy_iovec(cmd, compat, p);
	for (i = 0; !err && i < cmd->len; i++) {
		/* Checked one by one, so that the sum can't wrap. */
		if (p[i].len > vblk->lim.max_bytes)
			err = -EINVAL;
		total += p[i].len;
	}
	if (!err)
		err = virtblk_check_len(vblk, cmd, total);
	if (err) {
		kfree(p);
		return err;
	}
	cmd->len = total;
	*pieces = p;
	return 0;
}

static int virtblk_set_map(const struct virtblk *vblk,
			   const struct virtblk_cmd *cmd,
			   struct virtblk_map *map, struct virtblk_buf *buf)
{
	int err;

	if (IS_ERR(map))
		return PTR_ERR(map);
	err = virtblk_map_finish(vblk, cmd, map);
	if (err) {
		virtblk_map_free(map);
		return err;
	}
	buf->map = map;
	return 0;
}

static int virtblk_pin_vec(const struct virtblk *vblk, struct virtblk_cmd *cmd,
			   bool compat, struct virtblk_buf *buf)
{
	struct virtblk_piece *pieces;
	u32 nr = cmd->len;
	int err;

	err = virtblk_get_pieces(vblk, cmd, compat, &pieces);
	if (err)
		return err;
	if (cmd->len)
		err = virtblk_set_map(vblk, cmd,
				      virtblk_pin_user(vblk, cmd, pieces, nr),
				      buf);
	kfree(pieces);
	return err;
}

static int virtblk_pin_plain(const struct virtblk *vblk,
			     const struct virtblk_cmd *cmd,
			     struct virtblk_buf *buf)
{
	struct virtblk_piece piece = { .addr = cmd->addr, .len = cmd->len };
	unsigned int offset = offset_in_page(cmd->addr);
	int nr;

	/* One page is most of what databases send: no map for it. */
	if (offset + cmd->len <= PAGE_SIZE && !virtblk_copies(cmd) &&
	    !((offset | cmd->len) & vblk->lim.dma_mask)) {
		nr = pin_user_pages_fast(cmd->addr & PAGE_MASK, 1,
					 cmd->write ? 0 : FOLL_WRITE,
					 &buf->page);
		if (nr != 1)
			return nr == -ENOMEM ? -ENOMEM : -EFAULT;
		buf->offset = offset;
		buf->pinned = true;
		return 0;
	}
	return virtblk_set_map(vblk, cmd,
			       virtblk_pin_user(vblk, cmd, &piece, 1), buf);
}

static int virtblk_pin_fixed(const struct virtblk *vblk,
			     struct virtblk_cmd *cmd,
			     struct io_uring_cmd *ioucmd,
			     unsigned int issue_flags, struct virtblk_buf *buf)
{
	struct iov_iter iter compat_uninitialized;
	const struct bio_vec *bv;
	unsigned int offset;
	int err;

	if (cmd->vec) {
		if (!COMPAT_FIXED_VEC)
			return -EOPNOTSUPP;
		if (!cmd->len || cmd->len > UIO_MAXIOV)
			return -EINVAL;
		err = compat_import_fixed_vec(cmd->addr, cmd->len,
					      cmd->write ? WRITE : READ, &iter,
					      ioucmd, issue_flags);
		if (err)
			return err;
		err = virtblk_check_len(vblk, cmd, iov_iter_count(&iter));
		if (err)
			return err;
		cmd->len = iov_iter_count(&iter);
		if (!cmd->len)
			return 0;
	} else {
		err = compat_import_fixed(cmd->addr, cmd->len,
					  cmd->write ? WRITE : READ, &iter,
					  ioucmd, issue_flags);
		if (err)
			return err;
	}

	bv = iter.bvec;
	offset = bv->bv_offset + iter.iov_offset;
	if (iter.iov_offset + cmd->len <= bv->bv_len &&
	    cmd->len <= vblk->lim.max_segment_size && !virtblk_copies(cmd) &&
	    !((offset | cmd->len) & vblk->lim.dma_mask)) {
		buf->page = bv->bv_page;
		buf->offset = offset;
		return 0;
	}
	return virtblk_set_map(vblk, cmd, virtblk_map_bvecs(vblk, cmd, &iter),
			       buf);
}

/* The list was copied: what is checked here is what is sent. */
static int virtblk_check_ranges(const struct virtblk *vblk,
				const struct virtblk_cmd *cmd,
				const struct virtblk_map *map)
{
	const struct virtblk_ranges *r = virtblk_ranges_of(vblk, cmd->type);
	const struct virtio_blk_discard_write_zeroes *range = map->bounce;
	u32 block = (vblk->lim.block_mask + 1) >> SECTOR_SHIFT;
	u32 alignment = max3(r->alignment, block, 1u);
	u32 flags = 0;
	size_t i;

	if (cmd->type == VIRTIO_BLK_T_WRITE_ZEROES)
		flags = VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
	for (i = 0; i < cmd->len / sizeof(*range); i++) {
		u64 sector = le64_to_cpu(range[i].sector);
		u32 nr = le32_to_cpu(range[i].num_sectors);
		u32 odd;

		if (le32_to_cpu(range[i].flags) & ~flags || nr > r->max_sectors)
			return -EINVAL;
		div_u64_rem(sector, alignment, &odd);
		if (odd)
			return -EINVAL;
		/* The disk's last range may be shorter than the others. */
		if (nr % alignment &&
		    (nr % block || sector + nr != get_capacity(vblk->disk)))
			return -EINVAL;
	}
	return 0;
}

/* ---- 3 pin: coherence with the block node's page cache ---- */

/* Only what lies on the disk counts. Returns the number of sectors. */
static u64 virtblk_clip(struct virtblk *vblk, u64 sector, u64 nr)
{
	u64 capacity = get_capacity(vblk->disk);

	return sector < capacity ? min(nr, capacity - sector) : 0;
}

static int virtblk_drop_range(struct virtblk *vblk, u64 sector, u64 nr)
{
	struct address_space *mapping = vblk->mapping;

	nr = virtblk_clip(vblk, sector, nr);
	if (!nr || !READ_ONCE(mapping->nrpages))
		return 0;
	return invalidate_inode_pages2_range(mapping,
			sector >> (PAGE_SHIFT - SECTOR_SHIFT),
			(sector + nr - 1) >> (PAGE_SHIFT - SECTOR_SHIFT));
}

/* Returns 0, -EAGAIN if it would have to wait but may not, or -EIO. */
static int virtblk_sync_range(struct virtblk *vblk, u64 sector, u64 nr,
			      bool drop, bool nonblock)
{
	struct address_space *mapping = vblk->mapping;
	loff_t start, end;

	nr = virtblk_clip(vblk, sector, nr);
	if (!nr || !READ_ONCE(mapping->nrpages))
		return 0;
	start = sector << SECTOR_SHIFT;
	end = start + (nr << SECTOR_SHIFT) - 1;

	if (nonblock) {
		bool unwritten = mapping_tagged(mapping, PAGECACHE_TAG_DIRTY) ||
			mapping_tagged(mapping, PAGECACHE_TAG_WRITEBACK);

		if (!drop && !unwritten)
			return 0;
		return filemap_range_has_page(mapping, start, end) ?
			-EAGAIN : 0;
	}
	if (filemap_write_and_wait_range(mapping, start, end))
		return -EIO;
	if (drop && virtblk_drop_range(vblk, sector, nr))
		return -EIO;
	return 0;
}

/*
 * The range a command without a list of ranges works on. Where in the zone an
 * append goes isn't known before, so its range is the zone.
 */
static u64 virtblk_cmd_range(const struct virtblk *vblk,
			     const struct virtblk_cmd *cmd)
{
	switch (cmd->type) {
	case VIRTIO_BLK_T_IN:
	case VIRTIO_BLK_T_OUT:
		return cmd->len >> SECTOR_SHIFT;
	case VIRTIO_BLK_T_ZONE_APPEND:
	case VIRTIO_BLK_T_ZONE_RESET:
		/* A host-aware device's zones aren't looked at. */
		return vblk->zone_sectors ?: U64_MAX;
	case VIRTIO_BLK_T_ZONE_RESET_ALL:
		return U64_MAX;
	default:
		return 0;
	}
}

static int virtblk_sync_cache(struct virtblk *vblk,
			      const struct virtblk_cmd *cmd,
			      const struct virtblk_buf *buf,
			      unsigned int issue_flags)
{
	bool nonblock = issue_flags & IO_URING_F_NONBLOCK;
	const struct virtio_blk_discard_write_zeroes *range;
	int err = 0;
	size_t i;

	if (likely(!READ_ONCE(vblk->mapping->nrpages)))
		return 0;
	if (cmd->rule->len != VIRTBLK_LEN_RANGES)
		return virtblk_sync_range(vblk, cmd->sector,
					  virtblk_cmd_range(vblk, cmd),
					  cmd->rule->flags & VIRTBLK_RULE_CHANGES,
					  nonblock);
	range = buf->map->bounce;
	for (i = 0; !err && i < cmd->len / sizeof(*range); i++)
		err = virtblk_sync_range(vblk, le64_to_cpu(range[i].sector),
					 le32_to_cpu(range[i].num_sectors),
					 true, nonblock);
	return err;
}

static void virtblk_unpin(struct virtblk_buf *buf)
{
	if (buf->map)
		virtblk_map_free(buf->map);
	else if (buf->pinned)
		unpin_user_page(buf->page);
}

/*
 * All that may fault, sleep or allocate, before a request is taken: one that
 * waits for a page of this very disk must not hold a tag meanwhile.
 */
static int virtblk_pin(struct virtblk *vblk, struct virtblk_cmd *cmd,
		       struct io_uring_cmd *ioucmd, unsigned int issue_flags,
		       struct virtblk_buf *buf)
{
	int err = 0;

	buf->map = NULL;
	buf->page = NULL;
	buf->pinned = false;
	if (cmd->rule->len == VIRTBLK_LEN_NONE)
		cmd->len = 0;
	else if (!cmd->len && !cmd->vec)
		;	/* an unknown type without data */
	else if (cmd->fixed)
		err = virtblk_pin_fixed(vblk, cmd, ioucmd, issue_flags, buf);
	else if (cmd->vec)
		err = virtblk_pin_vec(vblk, cmd,
				      compat_cmd_is_compat(ioucmd, issue_flags),
				      buf);
	else
		err = virtblk_pin_plain(vblk, cmd, buf);
	if (err)
		return err;

	if (cmd->rule->len == VIRTBLK_LEN_RANGES)
		err = virtblk_check_ranges(vblk, cmd, buf->map);
	if (!err)
		err = virtblk_sync_cache(vblk, cmd, buf, issue_flags);
	if (err)
		virtblk_unpin(buf);
	return err;
}

/* ---- 4 request ---- */

/* virtblk_pdu.flags */
enum {
	VIRTBLK_PDU_MAP		= 1 << 0,	/* map, else page */
	VIRTBLK_PDU_PINNED	= 1 << 1,	/* page is to be unpinned */
	VIRTBLK_PDU_READ	= 1 << 2,	/* and has been written into */
	VIRTBLK_PDU_STALE	= 1 << 3,	/* cached pages are stale now */
	VIRTBLK_PDU_RANGES	= 1 << 4,	/* those of map's ranges */
	VIRTBLK_PDU_APPEND	= 1 << 5,	/* sector is a result, too */
	VIRTBLK_PDU_BIG_CQE	= 1 << 6,	/* somewhere to put a result */
	VIRTBLK_PDU_ANSWERED	= 1 << 7,	/* status is the device's */
};

/**
 * struct virtblk_pdu - what a command remembers, in the io_uring_cmd itself
 * @page:	the one pinned page
 * @map:	or the map
 * @next:	from stage 7 on: the next command of the same task work
 * @later:	or of the same work
 * @sector:	where it works; after a ZONE_APPEND, where it went
 * @sectors:	how far, for dropping cached pages afterwards; U32_MAX: all
 * @qid:	which virtqueue to poll
 * @flags:	VIRTBLK_PDU_*
 * @status:	the device's status byte, or an errno if there was no answer
 *
 * The request is gone when stage 8 looks at this. @qid is never overwritten: a
 * poller may read it while the command ends.
 */
struct virtblk_pdu {
	union {
		struct page		*page;
		struct virtblk_map	*map;
	};
	union {
		struct io_uring_cmd	*next;
		struct llist_node	later;
	};
	u64			sector;
	u32			sectors;
	u16			qid;
	u8			flags;
	u8			status;
};

static struct virtblk_pdu *virtblk_cmd_pdu(struct io_uring_cmd *ioucmd)
{
	BUILD_BUG_ON(sizeof(struct virtblk_pdu) > sizeof(ioucmd->pdu));
	return (struct virtblk_pdu *)&ioucmd->pdu;
}

static struct request *virtblk_alloc_request(struct virtblk *vblk,
					     const struct virtblk_cmd *cmd,
					     unsigned int issue_flags)
{
	blk_opf_t opf = cmd->write ? REQ_OP_DRV_OUT : REQ_OP_DRV_IN;
	blk_mq_req_flags_t flags = 0;

	if (issue_flags & IO_URING_F_NONBLOCK) {
		opf |= REQ_NOWAIT;
		flags |= BLK_MQ_REQ_NOWAIT;
	}
	if (issue_flags & IO_URING_F_IOPOLL)
		opf |= REQ_POLLED;
	return blk_mq_alloc_request(vblk->disk->queue, opf, flags);
}

static void virtblk_fill_request(struct virtblk *vblk,
				 const struct virtblk_cmd *cmd,
				 const struct virtblk_buf *buf,
				 struct request *req)
{
	struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);

	virtblk_prep_drv(vblk, req, cmd->type, cmd->sector, cmd->ioprio);
	vbr->to_device = cmd->write;
	if (buf->map) {
		vbr->data = buf->map->sg;
		vbr->nr_data = buf->map->nr;
	} else if (buf->page) {
		sg_set_page(vbr->sg, buf->page, cmd->len, buf->offset);
		sg_mark_end(vbr->sg);
		vbr->data = vbr->sg;
		vbr->nr_data = 1;
	}
}

static void virtblk_fill_pdu(struct virtblk *vblk,
			     const struct virtblk_cmd *cmd,
			     const struct virtblk_buf *buf,
			     const struct request *req,
			     unsigned int issue_flags, struct virtblk_pdu *pdu)
{
	u8 flags = cmd->write ? 0 : VIRTBLK_PDU_READ;

	pdu->page = buf->page;
	if (buf->pinned)
		flags |= VIRTBLK_PDU_PINNED;
	if (buf->map) {
		pdu->map = buf->map;
		flags |= VIRTBLK_PDU_MAP;
	}
	if (issue_flags & IO_URING_F_CQE32)
		flags |= VIRTBLK_PDU_BIG_CQE;
	if (cmd->rule->flags & VIRTBLK_RULE_CHANGES) {
		pdu->sector = cmd->sector;
		pdu->sectors = min_t(u64, virtblk_cmd_range(vblk, cmd),
				     U32_MAX);
		flags |= VIRTBLK_PDU_STALE;
		if (cmd->rule->len == VIRTBLK_LEN_RANGES)
			flags |= VIRTBLK_PDU_RANGES;
		if (cmd->type == VIRTIO_BLK_T_ZONE_APPEND)
			flags |= VIRTBLK_PDU_APPEND;
	}
	pdu->flags = flags;
	pdu->qid = req->mq_hctx->queue_num;
}

static void virtblk_count(struct virtblk_node *node,
			  const struct virtblk_cmd *cmd)
{
	if (cmd->type == VIRTIO_BLK_T_IN) {
		this_cpu_inc(node->stat->reads);
		this_cpu_add(node->stat->read_bytes, cmd->len);
	} else if (cmd->type == VIRTIO_BLK_T_OUT) {
		this_cpu_inc(node->stat->writes);
		this_cpu_add(node->stat->write_bytes, cmd->len);
	} else {
		this_cpu_inc(node->stat->others);
	}
}

/* Apart from virtblk_send(), which would clear a plug's memory for nothing. */
static noinline void virtblk_send_plugged(struct request *req)
{
	struct blk_plug plug;

	blk_start_plug(&plug);
	blk_execute_rq_nowait(req, false);
	blk_finish_plug(&plug);
}

/*
 * A plug hands the request to queue_rqs, past the software queues. io_uring
 * starts one for batches only.
 */
static void virtblk_send(struct request *req)
{
	if (compat_execute_at_head(req))
		blk_execute_rq_nowait(req, true);
	else if (current->plug)
		blk_execute_rq_nowait(req, false);
	else
		virtblk_send_plugged(req);
}

COMPAT_END_IO_DECLARE(virtblk_uring_end_io);

/* Stages 1 to 4. Returns -EIOCBQUEUED, or why the command was not sent. */
static int virtblk_submit(struct virtblk_node *node,
			  struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	struct virtblk *vblk = node->vblk;
	struct virtblk_cmd cmd compat_uninitialized;
	struct virtblk_buf buf compat_uninitialized;
	struct request *req;
	int err;

	err = virtblk_decode(ioucmd, issue_flags, &cmd);
	if (unlikely(err))
		return err;
	err = virtblk_policy(vblk, ioucmd->file->f_mode, &cmd, issue_flags);
	if (unlikely(err))
		return err;
	err = virtblk_pin(vblk, &cmd, ioucmd, issue_flags, &buf);
	if (unlikely(err))
		return err;

	req = virtblk_alloc_request(vblk, &cmd, issue_flags);
	if (IS_ERR(req)) {
		virtblk_unpin(&buf);
		return PTR_ERR(req);
	}
	virtblk_fill_request(vblk, &cmd, &buf, req);
	virtblk_fill_pdu(vblk, &cmd, &buf, req, issue_flags,
			 virtblk_cmd_pdu(ioucmd));
	req->end_io = virtblk_uring_end_io;
	req->end_io_data = ioucmd;
	virtblk_count(node, &cmd);
	/* From here it may complete at any time. */
	virtblk_send(req);
	return -EIOCBQUEUED;
}

static int virtblk_uring_cmd(struct io_uring_cmd *ioucmd,
			     unsigned int issue_flags)
{
	int ret = virtblk_submit(ioucmd->file->private_data, ioucmd,
				 issue_flags);

	/* It would have to wait: io_uring sends it here again from a worker. */
	if (unlikely(ret == -EAGAIN))
		compat_cmd_keep_sqe(ioucmd, issue_flags);
	return ret;
}

/* ---- 7 end_io ---- */

static void virtblk_uring_task_work(struct io_uring_cmd *ioucmd,
				    unsigned int issue_flags);
COMPAT_CMD_TASK_WORK(virtblk_uring_tw, virtblk_uring_task_work)

/*
 * Takes along what the request knows. @status is only set for a request that
 * the device has not answered: where it has, what the answer means is decided
 * in stage 8.
 */
static struct io_uring_cmd *virtblk_leave(struct request *req,
					  blk_status_t status)
{
	struct io_uring_cmd *ioucmd = req->end_io_data;
	struct virtblk_pdu *pdu = virtblk_cmd_pdu(ioucmd);
	struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);

	pdu->next = NULL;
	if (unlikely(status)) {
		pdu->status = -blk_status_to_errno(status);
		return ioucmd;
	}
	pdu->flags |= VIRTBLK_PDU_ANSWERED;
	pdu->status = virtblk_status(vbr);
	if (unlikely(vbr->append) && pdu->status == VIRTIO_BLK_S_OK) {
		struct virtblk *vblk = req->q->queuedata;

		pdu->sector = virtio64_to_cpu(vblk->vdev, vbr->in.sector);
	}
	return ioucmd;
}

static void virtblk_finish_later(struct io_uring_cmd *ioucmd);

/*
 * A polled ring's commands need no task work, and must not wait for any: exec()
 * polls until none is left, in a task that runs no task work by then.
 */
static enum rq_end_io_ret virtblk_end_io(struct request *req,
					 blk_status_t status)
{
	struct io_uring_cmd *ioucmd = virtblk_leave(req, status);

	if (req->cmd_flags & REQ_POLLED)
		virtblk_finish_later(ioucmd);
	else
		compat_cmd_in_task_lazy(ioucmd, virtblk_uring_tw);
	return RQ_END_IO_FREE;
}
COMPAT_END_IO(virtblk_uring_end_io, virtblk_end_io)

static void virtblk_flush_to_task(struct virtblk_chain *chain)
{
	if (!chain->first)
		return;
	/* A lazy wake-up counts one CQE for each task work. */
	if (chain->first == chain->last)
		compat_cmd_in_task_lazy(chain->first, virtblk_uring_tw);
	else
		compat_cmd_in_task(chain->first, virtblk_uring_tw);
	chain->first = NULL;
}

/**
 * virtblk_uring_gather() - stage 7 for a request that ends in a batch
 * @req:	a REQ_OP_DRV_* request; if it is a command, blk-mq has only to
 *		free it afterwards
 * @chain:	takes the command, until virtblk_uring_flush()
 */
void virtblk_uring_gather(struct request *req, struct virtblk_chain *chain)
{
	struct io_uring_cmd *ioucmd;

	if (req->end_io != virtblk_uring_end_io)
		return;
	req->end_io = NULL;
	ioucmd = virtblk_leave(req, BLK_STS_OK);
	if (req->cmd_flags & REQ_POLLED) {
		virtblk_cmd_pdu(ioucmd)->next = chain->polled;
		chain->polled = ioucmd;
		return;
	}
	if (chain->first && !compat_cmd_same_owner(chain->first, ioucmd))
		virtblk_flush_to_task(chain);
	if (chain->first)
		virtblk_cmd_pdu(chain->last)->next = ioucmd;
	else
		chain->first = ioucmd;
	chain->last = ioucmd;
}

/* ---- 8 task work ---- */

static int virtblk_status_errno(u8 status)
{
	switch (status) {
	case VIRTIO_BLK_S_OK:
		return 0;
	case VIRTIO_BLK_S_UNSUPP:
		return -EOPNOTSUPP;
	case VIRTIO_BLK_S_ZONE_INVALID_CMD:
	case VIRTIO_BLK_S_ZONE_UNALIGNED_WP:
		return -EINVAL;
	case VIRTIO_BLK_S_ZONE_OPEN_RESOURCE:
		return -ETOOMANYREFS;
	case VIRTIO_BLK_S_ZONE_ACTIVE_RESOURCE:
		return -EOVERFLOW;
	default:
		return -EIO;
	}
}

/*
 * What the block node has read into its cache meanwhile is stale. Also after a
 * failure: nobody knows how far the device got.
 */
static void virtblk_drop_stale(struct virtblk *vblk,
			       const struct virtblk_pdu *pdu)
{
	const struct virtio_blk_discard_write_zeroes *range;
	u64 sector = pdu->sector;
	size_t i;

	if (!(pdu->flags & VIRTBLK_PDU_RANGES)) {
		if (pdu->flags & VIRTBLK_PDU_APPEND && vblk->zone_sectors)
			sector = round_down(sector, vblk->zone_sectors);
		virtblk_drop_range(vblk, sector, pdu->sectors == U32_MAX ?
				   U64_MAX : pdu->sectors);
		return;
	}
	range = pdu->map->bounce;
	for (i = 0; i < pdu->map->len / sizeof(*range); i++)
		virtblk_drop_range(vblk, le64_to_cpu(range[i].sector),
				   le32_to_cpu(range[i].num_sectors));
}

static void virtblk_release_buf(struct virtblk_pdu *pdu, bool done)
{
	if (pdu->flags & VIRTBLK_PDU_MAP) {
		struct virtblk_map *map = pdu->map;

		if (map->bounce && map->read && done)
			sg_copy_from_buffer(map->user, map->nr_user,
					    map->bounce, map->len);
		virtblk_map_free(map);
	} else if (pdu->flags & VIRTBLK_PDU_PINNED) {
		unpin_user_pages_dirty_lock(&pdu->page, 1,
					    pdu->flags & VIRTBLK_PDU_READ);
	}
}

/* The io_uring_cmd is gone when this returns. */
static void virtblk_finish_cmd(struct virtblk_node *node,
			       struct io_uring_cmd *ioucmd,
			       unsigned int issue_flags)
{
	struct virtblk_pdu *pdu = virtblk_cmd_pdu(ioucmd);
	struct virtblk *vblk = node->vblk;
	int res = -pdu->status;
	u64 result = 0;

	if (likely(pdu->flags & VIRTBLK_PDU_ANSWERED)) {
		res = virtblk_status_errno(pdu->status);
		result = pdu->status;
		if (!res && pdu->flags & VIRTBLK_PDU_APPEND)
			result = pdu->sector;
	}
	if (unlikely(res))
		this_cpu_inc(node->stat->errors);

	if (pdu->flags & VIRTBLK_PDU_STALE &&
	    unlikely(READ_ONCE(vblk->mapping->nrpages)))
		virtblk_drop_stale(vblk, pdu);
	virtblk_release_buf(pdu, !res);
	compat_cmd_done(ioucmd, res, result, pdu->flags & VIRTBLK_PDU_BIG_CQE,
			issue_flags);
}

static void virtblk_uring_task_work(struct io_uring_cmd *ioucmd,
				    unsigned int issue_flags)
{
	struct io_uring_cmd *next;

	for (; ioucmd; ioucmd = next) {
		next = virtblk_cmd_pdu(ioucmd)->next;
		/* A chain may hold commands of several disks. */
		virtblk_finish_cmd(ioucmd->file->private_data, ioucmd,
				   issue_flags);
	}
}

/*
 * On a polled ring done only tells the ring that the command has ended. Its
 * memory goes back to the ring's cache if that is the ring that polls: no
 * other's lock is held.
 */
static void virtblk_finish_polled(struct io_uring_cmd *ioucmd,
				  const void *ring)
{
	struct io_uring_cmd *next;

	for (; ioucmd; ioucmd = next) {
		next = virtblk_cmd_pdu(ioucmd)->next;
		virtblk_finish_cmd(ioucmd->file->private_data, ioucmd,
				   compat_cmd_ring(ioucmd) == ring ?
				   0 : IO_URING_F_UNLOCKED);
	}
}

/**
 * virtblk_uring_flush() - stage 8 for the commands of a batch
 * @chain:	filled by virtblk_uring_gather(). If that was by polling, this
 *		may sleep.
 */
void virtblk_uring_flush(struct virtblk_chain *chain)
{
	virtblk_flush_to_task(chain);
	if (chain->polled)
		virtblk_finish_polled(chain->polled, chain->ring);
}

/* Polled commands that ended one by one, where sleeping may be forbidden. */
static LLIST_HEAD(virtblk_later);

static void virtblk_later_work(struct work_struct *work)
{
	struct llist_node *node = llist_del_all(&virtblk_later), *next;

	for (; node; node = next) {
		struct virtblk_pdu *pdu =
			container_of(node, struct virtblk_pdu, later);

		next = node->next;
		pdu->next = NULL;
		virtblk_finish_polled(container_of((void *)pdu,
						   struct io_uring_cmd, pdu),
				      NULL);
	}
}
static DECLARE_WORK(virtblk_later_job, virtblk_later_work);

static void virtblk_finish_later(struct io_uring_cmd *ioucmd)
{
	llist_add(&virtblk_cmd_pdu(ioucmd)->later, &virtblk_later);
	/* On another CPU, if its poller keeps this one. */
	queue_work(virtblk_wq, &virtblk_later_job);
}

/**
 * virtblk_uring_flush_irq() - the same for a batch of an interrupt's
 * @chain:	filled by virtblk_uring_gather(). A polled command is in it only
 *		if blk-mq found no tags for the poll queues.
 */
void virtblk_uring_flush_irq(struct virtblk_chain *chain)
{
	struct io_uring_cmd *ioucmd = chain->polled, *next;

	virtblk_flush_to_task(chain);
	for (; unlikely(ioucmd); ioucmd = next) {
		next = virtblk_cmd_pdu(ioucmd)->next;
		virtblk_finish_later(ioucmd);
	}
}

/*
 * The command's own request may be finished, and even the disk removed, at any
 * moment; what is safe to look at is what the queue's usage counter keeps.
 */
static int virtblk_uring_iopoll(struct io_uring_cmd *ioucmd,
				struct io_comp_batch *iob,
				unsigned int poll_flags)
{
	struct virtblk_node *node = ioucmd->file->private_data;
	struct request_queue *q = node->vblk->disk->queue;
	const void *ring = compat_cmd_ring(ioucmd);
	DEFINE_IO_COMP_BATCH(own);
	int found;

	if (!percpu_ref_tryget(&q->q_usage_counter))
		return 0;
	found = virtblk_reap(node->vblk, virtblk_cmd_pdu(ioucmd)->qid, &own);
	percpu_ref_put(&q->q_usage_counter);
	/* Not in @iob, where nobody would know any more which ring polled. */
	if (own.complete)
		virtblk_end_batch(&own, ring);
	return found;
}

/* ---- the node ---- */

/* Every type this disk takes from a descriptor that is open for it. */
static u64 virtblk_commands(const struct virtblk *vblk)
{
	bool ro = get_disk_ro(vblk->disk);
	u64 mask = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(virtblk_rules); i++) {
		const struct virtblk_rule *rule = &virtblk_rules[i];

		if (!rule->len || !(vblk->features & BIT_ULL(rule->feature)) ||
		    (ro && rule->flags & VIRTBLK_RULE_CHANGES) ||
		    (rule->len == VIRTBLK_LEN_RANGES &&
		     !virtblk_ranges_of(vblk, i)->max_sectors))
			continue;
		mask |= BIT_ULL(i);
	}
	return mask;
}

static void virtblk_info_zones(struct virtblk *vblk,
			       struct virtblk_uring_info *info)
{
	struct request_queue *q = vblk->disk->queue;

	info->zone_model = vblk->zone_model;
	if (!vblk->zone_sectors)
		return;
	info->zone_sectors = vblk->zone_sectors;
	info->max_append_sectors = vblk->max_append_sectors;
	info->write_granularity = q->limits.zone_write_granularity;
	compat_zone_resources(vblk->disk, &info->max_open_zones,
			      &info->max_active_zones);
}

static void virtblk_fill_info(struct virtblk *vblk,
			      struct virtblk_uring_info *info)
{
	struct request_queue *q = vblk->disk->queue;
	u64 any = (u64)(vblk->lim.max_segments - 1) << PAGE_SHIFT;

	if (get_disk_ro(vblk->disk))
		info->flags |= VIRTBLK_URING_INFO_RO;
	if (compat_write_cache(q))
		info->flags |= VIRTBLK_URING_INFO_WRITE_CACHE;
	if (COMPAT_IO64)
		info->driver_features |= VIRTBLK_URING_F_IO64;
	if (COMPAT_FIXED_VEC)
		info->driver_features |= VIRTBLK_URING_F_FIXED_VEC;
	info->capacity = get_capacity(vblk->disk);
	info->virtio_features = vblk->features & ~BIT_ULL(VIRTBLK_NO_FEATURE);
	info->commands = virtblk_commands(vblk);
	info->logical_block_size = vblk->lim.block_mask + 1;
	info->physical_block_size = queue_physical_block_size(q);
	info->max_bytes = vblk->lim.max_bytes;
	info->max_bytes_any = min_t(u64, any, vblk->lim.max_bytes);
	info->max_segments = vblk->lim.max_segments;
	info->max_segment_size = vblk->lim.max_segment_size;
	info->dma_alignment = vblk->lim.dma_mask;
	info->poll_queues = vblk->io_queues[HCTX_TYPE_POLL];
	info->max_discard_sectors = vblk->discard.max_sectors;
	info->max_discard_seg = vblk->discard.max_seg;
	info->discard_alignment = vblk->discard.alignment;
	info->max_write_zeroes_sectors = vblk->write_zeroes.max_sectors;
	info->max_write_zeroes_seg = vblk->write_zeroes.max_seg;
	info->write_zeroes_may_unmap = vblk->write_zeroes_may_unmap;
	info->max_secure_erase_sectors = vblk->secure_erase.max_sectors;
	info->max_secure_erase_seg = vblk->secure_erase.max_seg;
	info->secure_erase_alignment = vblk->secure_erase.alignment;
	virtblk_info_zones(vblk, info);
}

static long virtblk_ioctl_info(const struct virtblk_uring_info *info,
			       void __user *arg)
{
	u32 size, known;

	if (get_user(size, (u32 __user *)arg))
		return -EFAULT;
	if (size < VIRTBLK_URING_INFO_SIZE_V0 || size > SZ_4K)
		return -EINVAL;
	known = min_t(u32, size, sizeof(*info));
	if (copy_to_user(arg, info, known) ||
	    put_user(known, (u32 __user *)arg) ||
	    clear_user(arg + known, size - known))
		return -EFAULT;
	return 0;
}

static long virtblk_ioctl(struct file *file, unsigned int cmd,
			  unsigned long arg)
{
	struct virtblk_node *node = file->private_data;
	struct virtblk *vblk = node->vblk;
	struct virtblk_uring_info info = { };
	void __user *to = (void __user *)arg;
	bool gone;

	/*
	 * The answer is copied out without the mutex: a page of it may have to
	 * be read from this disk.
	 */
	mutex_lock(&vblk->vdev_mutex);
	gone = !vblk->vdev;
	if (!gone)
		virtblk_fill_info(vblk, &info);
	mutex_unlock(&vblk->vdev_mutex);
	if (gone)
		return -ENODEV;

	switch (cmd) {
	case BLKGETSIZE64:
#ifdef CONFIG_COMPAT
	case _IOR(0x12, 114, compat_size_t):
#endif
		return put_user(info.capacity << SECTOR_SHIFT,
				(u64 __user *)to);
	case BLKSSZGET:
		return put_user((int)info.logical_block_size, (int __user *)to);
	case BLKPBSZGET:
		return put_user(info.physical_block_size,
				(unsigned int __user *)to);
	case BLKROGET:
		return put_user(info.flags & VIRTBLK_URING_INFO_RO ? 1 : 0,
				(int __user *)to);
	case VIRTBLK_IOCTL_INFO:
		return virtblk_ioctl_info(&info, to);
	default:
		return -ENOTTY;
	}
}

static int virtblk_open(struct inode *inode, struct file *file)
{
	struct virtblk_node *node = container_of(inode->i_cdev,
						 struct virtblk_node, cdev);

	if (READ_ONCE(node->gone))
		return -ENXIO;
	file->private_data = node;
	/* Every transfer is direct, so the flag asks for nothing. */
	file->f_mode |= FMODE_CAN_ODIRECT;
	return nonseekable_open(inode, file);
}

static const struct file_operations virtblk_node_fops = {
	.owner			= THIS_MODULE,
	.open			= virtblk_open,
	.unlocked_ioctl		= virtblk_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
	.uring_cmd		= virtblk_uring_cmd,
	.uring_cmd_iopoll	= virtblk_uring_iopoll,
};

/* reads, bytes, writes, bytes, other commands, commands that failed */
static ssize_t stat_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct virtblk_node *node = dev_get_drvdata(dev);
	struct virtblk_stat sum = { };
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct virtblk_stat *s = per_cpu_ptr(node->stat, cpu);

		sum.reads += s->reads;
		sum.read_bytes += s->read_bytes;
		sum.writes += s->writes;
		sum.write_bytes += s->write_bytes;
		sum.others += s->others;
		sum.errors += s->errors;
	}
	return sysfs_emit(buf, "%llu %llu %llu %llu %llu %llu\n",
			  sum.reads, sum.read_bytes, sum.writes,
			  sum.write_bytes, sum.others, sum.errors);
}
static DEVICE_ATTR_RO(stat);

static struct attribute *virtblk_node_attrs[] = {
	&dev_attr_stat.attr,
	NULL,
};
ATTRIBUTE_GROUPS(virtblk_node);

static struct class virtblk_class = {
	.name = virtblk_class_name,
};

static void virtblk_node_release(struct device *dev)
{
	struct virtblk_node *node = container_of(dev, struct virtblk_node, dev);

	put_disk(node->vblk->disk);
	free_percpu(node->stat);
	kfree(node);
}

/* The queue's limits in the form and place that the commands read them. */
static void virtblk_cache_limits(struct virtblk *vblk)
{
	struct request_queue *q = vblk->disk->queue;
	struct virtblk_limits *lim = &vblk->lim;
	u64 most;

	lim->block_mask = queue_logical_block_size(q) - 1;
	lim->dma_mask = queue_dma_alignment(q);
	lim->max_segments = queue_max_segments(q);
	lim->max_segment_size = queue_max_segment_size(q);
	most = (u64)lim->max_segments * lim->max_segment_size;
	most = min_t(u64, most, (u64)queue_max_hw_sectors(q) << SECTOR_SHIFT);
	most = min_t(u64, most, VIRTBLK_MAX_BYTES);
	lim->max_bytes = most & ~(u64)lim->block_mask;
	vblk->mapping = compat_bdev_mapping(vblk->disk->part0);
	/* No virtio feature, and so the rules' word for "none needed". */
	vblk->features |= BIT_ULL(VIRTBLK_NO_FEATURE);
}

/**
 * virtblk_node_add() - create /dev/vdXc0
 * @vblk:	the disk, added
 *
 * Return: 0, or a negative errno; the disk works without the node.
 */
int virtblk_node_add(struct virtblk *vblk)
{
	struct virtblk_node *node;
	int err;

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return -ENOMEM;
	node->stat = alloc_percpu(struct virtblk_stat);
	if (!node->stat) {
		kfree(node);
		return -ENOMEM;
	}
	virtblk_cache_limits(vblk);

	node->vblk = vblk;
	get_device(disk_to_dev(vblk->disk));
	device_initialize(&node->dev);
	node->dev.class = &virtblk_class;
	node->dev.parent = &vblk->vdev->dev;
	node->dev.groups = virtblk_node_groups;
	node->dev.release = virtblk_node_release;
	node->dev.devt = MKDEV(MAJOR(virtblk_devt), vblk->index);
	dev_set_drvdata(&node->dev, node);
	err = dev_set_name(&node->dev, "%sc0", vblk->disk->disk_name);
	if (err)
		goto err_put;

	cdev_init(&node->cdev, &virtblk_node_fops);
	node->cdev.owner = THIS_MODULE;
	err = cdev_device_add(&node->cdev, &node->dev);
	if (err)
		goto err_put;
	vblk->node = node;
	return 0;

err_put:
	put_device(&node->dev);
	return err;
}

/**
 * virtblk_node_del() - remove /dev/vdXc0; open descriptors stay and fail
 * @vblk:	the disk, not removed yet
 */
void virtblk_node_del(struct virtblk *vblk)
{
	if (!vblk->node)
		return;
	WRITE_ONCE(vblk->node->gone, true);
	cdev_device_del(&vblk->node->cdev, &vblk->node->dev);
	put_device(&vblk->node->dev);
	vblk->node = NULL;
}

/**
 * virtblk_node_init() - what all nodes share: numbers and the class
 *
 * Return: 0, or a negative errno.
 */
int virtblk_node_init(void)
{
	int err;

	err = alloc_chrdev_region(&virtblk_devt, 0, VIRTBLK_MAX_DISKS,
				  virtblk_class.name);
	if (err)
		return err;
	err = class_register(&virtblk_class);
	if (err)
		unregister_chrdev_region(virtblk_devt, VIRTBLK_MAX_DISKS);
	return err;
}

/**
 * virtblk_node_exit() - undo virtblk_node_init(), once no node is left
 */
void virtblk_node_exit(void)
{
	flush_work(&virtblk_later_job);
	class_unregister(&virtblk_class);
	unregister_chrdev_region(virtblk_devt, VIRTBLK_MAX_DISKS);
}
