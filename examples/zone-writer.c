// SPDX-License-Identifier: MIT
/*
 * Appends standard input to the first empty zone of a zoned virtio-blk disk, and
 * says where each piece came to lie:
 *
 *	zone-writer /dev/vdac0 < data
 *
 * A zone is written from its start to its end only. Instead of keeping account of how
 * far it is written, ZONE_APPEND names the zone, and the completion says which sector
 * the data went to: in the second half of the CQE, so the ring has 32-byte CQEs. Several
 * appends may be under way at once, here DEPTH, and their order is the disk's.
 *
 * Build: cc -o zone-writer zone-writer.c -luring
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <virtblk_uring_helpers.h>

#define DEPTH	4
#define ZONES	64		/* per report */

static struct virtblk_uring_info info;
static struct io_uring ring;
static int disk;

static void die(const char *what, int err)
{
	fprintf(stderr, "zone-writer: %s%s%s\n", what, err ? ": " : "", err ? strerror(err) : "");
	exit(1);
}

/* Submits all that is prepared, waits for n completions, leaves at an error */
static void complete(unsigned int n, const char *what, uint64_t sectors[])
{
	struct virtblk_result r;
	struct io_uring_cqe *cqe;
	char words[200];
	int ret;

	ret = io_uring_submit(&ring);
	if (ret < 0)
		die("cannot submit", -ret);
	while (n--) {
		ret = io_uring_wait_cqe(&ring, &cqe);
		if (ret)
			die("cannot wait", -ret);
		r = virtblk_result(&ring, cqe);
		if (sectors)
			sectors[cqe->user_data] = r.result;
		io_uring_cqe_seen(&ring, cqe);
		if (r.err) {
			fprintf(stderr, "zone-writer: %s: %s\n", what,
				virtblk_result_words(r, words, sizeof(words)));
			exit(1);
		}
	}
}

static unsigned int report(uint64_t sector, unsigned int max, struct virtblk_zone *zones)
{
	static char buf[VIRTBLK_REPORT_BYTES(ZONES)];
	unsigned int i, n;

	virtblk_prep_zone_report(io_uring_get_sqe(&ring), virtblk_form(&ring), disk, sector,
				 buf, VIRTBLK_REPORT_BYTES(max));
	complete(1, "report", NULL);
	n = virtblk_report_zones(buf, VIRTBLK_REPORT_BYTES(max));
	for (i = 0; i < n; i++)
		zones[i] = virtblk_report_zone(buf, i);
	return n;
}

static struct virtblk_zone first_empty(void)
{
	struct virtblk_zone zones[ZONES];
	uint64_t sector = 0;
	unsigned int i, n;

	while (sector < info.capacity && (n = report(sector, ZONES, zones))) {
		for (i = 0; i < n; i++)
			if (zones[i].state == VIRTBLK_ZONE_EMPTY)
				return zones[i];
		sector = zones[n - 1].start + info.zone_sectors;
	}
	die("no zone is empty", 0);
	return zones[0];
}

static void append(const struct virtblk_zone *zone, char *buf, uint32_t block)
{
	uint64_t sectors[DEPTH], number = 0, room = zone->capacity * 512 / block;
	struct io_uring_sqe *sqe;
	unsigned int i, n;
	size_t got;

	while ((got = fread(buf, 1, (size_t)DEPTH * block, stdin))) {
		n = (got + block - 1) / block;
		memset(buf + got, 0, (size_t)n * block - got);
		if (number + n > room)
			die("the zone is too small for the data", 0);
		for (i = 0; i < n; i++) {
			sqe = io_uring_get_sqe(&ring);	/* never NULL: DEPTH of them */
			virtblk_prep_zone_append(sqe, virtblk_form(&ring), disk, zone->start,
						 buf + (size_t)i * block, block);
			sqe->user_data = i;
		}
		complete(n, "append", sectors);
		for (i = 0; i < n; i++)
			printf("block %llu is at sector %llu\n", (unsigned long long)number++,
			       (unsigned long long)sectors[i]);
	}
}

int main(int argc, char **argv)
{
	struct virtblk_zone zone;
	uint32_t block;
	char *buf;
	int ret;

	if (argc != 2 || argv[1][0] == '-')
		die("usage: zone-writer /dev/vdXc0 < DATA", 0);
	disk = open(argv[1], O_RDWR);
	if (disk < 0)
		die(argv[1], errno);
	ret = virtblk_query_info(disk, &info);
	if (ret)
		die("not a passthrough node of virtio_blk (/dev/vdXc0)", -ret);
	if (!virtblk_accepts(&info, VIRTIO_BLK_T_ZONE_APPEND))
		die("this disk has no zones, or is read-only", 0);
	ret = io_uring_queue_init(DEPTH, &ring, virtblk_setup_flags(&info));
	if (ret)
		die("no ring", -ret);

	block = info.write_granularity > info.logical_block_size ?
		info.write_granularity : info.logical_block_size;
	if (posix_memalign((void **)&buf, 4096, (size_t)DEPTH * block))
		die("no memory", ENOMEM);
	zone = first_empty();
	append(&zone, buf, block);
	report(zone.start, 1, &zone);
	printf("the zone at sector %llu is %s, written up to sector %llu\n",
	       (unsigned long long)zone.start, virtblk_zone_state_name(zone.state),
	       (unsigned long long)zone.wp);
	return 0;
}
