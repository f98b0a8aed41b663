// SPDX-License-Identifier: MIT
/*
 * Sends what virtblk_uring_helpers.h prepares to a disk, in both forms of the SQE, and
 * says how it ended; what is read must be what was written before. A test: the device's
 * own log tells what it was sent.
 *
 *	check-node /dev/vdXc0 plain|zones
 *
 * IT WRITES to the first 64 KiB, or resets all zones.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <virtblk_uring_helpers.h>

static struct virtblk_uring_info info;
static struct io_uring ring;
static enum virtblk_form form;
static int disk, bad;
static struct io_uring_sqe *sqe;
static char *out, *in;			/* two registered buffers of 4096 bytes */

static struct io_uring_sqe *next(void)
{
	return sqe = io_uring_get_sqe(&ring);
}

/* Sends what next() gave; complains unless it ends with this error */
static struct virtblk_result sent(const char *name, int want)
{
	struct io_uring_cqe *cqe;
	struct virtblk_result r;
	char words[200];

	if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &cqe))
		exit(2);
	r = virtblk_result(&ring, cqe);
	io_uring_cqe_seen(&ring, cqe);
	if (r.err != want) {
		printf("%s, %s SQE: %s\n", name, form == VIRTBLK_SQE128 ? "128-byte" : "64-byte",
		       virtblk_result_words(r, words, sizeof(words)));
		bad = 1;
	}
	return r;
}

static void same(const char *name, const void *got, const void *want, size_t len)
{
	if (!memcmp(got, want, len))
		return;
	printf("%s: other data\n", name);
	bad = 1;
}

static void written_and_read(void)
{
	struct iovec to[2] = { { out, 1024 }, { out + 1024, 3072 } };
	struct iovec from[2] = { { in, 3072 }, { in + 3072, 1024 } };
	int fixed_vec = info.driver_features & VIRTBLK_URING_F_FIXED_VEC ? 0 : EOPNOTSUPP;

	virtblk_prep_write(next(), form, disk, 8, out, 4096), sent("write", 0);
	virtblk_prep_writev(next(), form, disk, 16, to, 2), sent("writev", 0);
	virtblk_prep_write_fixed(next(), form, disk, 24, out, 4096, 0), sent("write_fixed", 0);
	virtblk_prep_writev_fixed(next(), form, disk, 32, to, 2, 0);
	sent("writev_fixed", fixed_vec);

	virtblk_prep_read(next(), form, disk, 8, in, 4096), sent("read", 0);
	same("read", in, out, 4096);
	memset(in, 0, 4096);
	virtblk_prep_readv(next(), form, disk, 16, from, 2), sent("readv", 0);
	same("readv", in, out, 4096);
	memset(in, 0, 4096);
	virtblk_prep_read_fixed(next(), form, disk, 24, in, 4096, 1), sent("read_fixed", 0);
	same("read_fixed", in, out, 4096);
	virtblk_prep_readv_fixed(next(), form, disk, 32, from, 2, 1);
	sent("readv_fixed", fixed_vec);
}

static void plain(void)
{
	struct virtio_blk_discard_write_zeroes two[2] = { virtblk_range(40, 8, 0), virtblk_range(64, 8, 0) };
	struct virtio_blk_discard_write_zeroes unmap;
	struct virtblk_lifetime life;
	char id[VIRTIO_BLK_ID_BYTES];

	written_and_read();
	virtblk_prep_flush(next(), form, disk), sent("flush", 0);
	virtblk_prep_discard(next(), form, disk, two, 2), sent("discard", 0);
	unmap = virtblk_range(48, 8, VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP);
	virtblk_prep_write_zeroes(next(), form, disk, &unmap, 1), sent("write_zeroes", 0);
	virtblk_prep_secure_erase(next(), form, disk, two, 1), sent("secure_erase", 0);
	virtblk_prep_get_id(next(), form, disk, id), sent("get_id", 0);
	same("get_id", id, "helpers", 8);
	virtblk_prep_get_lifetime(next(), form, disk, &life), sent("get_lifetime", 0);
	if (virtblk_le16(life.pre_eol_info) != 1 || virtblk_le16(life.device_lifetime_est_typ_b) != 3)
		same("get_lifetime", "1", "2", 1);
	virtblk_prep_read(next(), form, disk, 56, in, 512);
	virtblk_set_ioprio(sqe, 2 << 13 | 5), sent("ioprio", 0);
	virtblk_prep_read(next(), form, disk, info.capacity, in, 512);
	if (sent("past the end", EIO).status != VIRTIO_BLK_S_IOERR)
		same("past the end's status", "1", "2", 1);
}

/* The zone at z, by a report of one */
static struct virtblk_zone zone(uint64_t z)
{
	static char report[VIRTBLK_REPORT_BYTES(1)];

	virtblk_prep_zone_report(next(), form, disk, z, report, sizeof(report));
	sent("zone_report", 0);
	return virtblk_report_zone(report, 0);
}

static void zones(void)
{
	uint64_t z = info.zone_sectors;
	struct iovec to[2] = { { out, 1024 }, { out + 1024, 3072 } };

	virtblk_prep_zone_reset_all(next(), form, disk), sent("zone_reset_all", 0);
	virtblk_prep_zone(next(), form, disk, VIRTIO_BLK_T_ZONE_OPEN, z), sent("zone_open", 0);
	virtblk_prep_zone_append(next(), form, disk, z, out, 4096);
	bad |= sent("zone_append", 0).result != z;
	virtblk_prep_zone_appendv(next(), form, disk, z, to, 2);
	virtblk_set_fixed(sqe, 0);
	if (!(info.driver_features & VIRTBLK_URING_F_FIXED_VEC))
		sqe->uring_cmd_flags = 0;
	bad |= sent("zone_appendv", 0).result != z + 8;
	virtblk_prep_zone(next(), form, disk, VIRTIO_BLK_T_ZONE_CLOSE, z), sent("zone_close", 0);
	bad |= zone(z).wp != z + 16 || zone(z).state != VIRTBLK_ZONE_CLOSED;
	virtblk_prep_zone(next(), form, disk, VIRTIO_BLK_T_ZONE_FINISH, z), sent("zone_finish", 0);
	bad |= zone(z).state != VIRTBLK_ZONE_FULL;
	virtblk_prep_write(next(), form, disk, z, out, 4096);
	bad |= !sent("write to a full zone", EINVAL).answered;
	virtblk_prep_zone(next(), form, disk, VIRTIO_BLK_T_ZONE_RESET, z), sent("zone_reset", 0);
	bad |= zone(z).state != VIRTBLK_ZONE_EMPTY || zone(z).type != VIRTBLK_ZONE_SEQ_REQUIRED;
}

int main(int argc, char **argv)
{
	struct iovec buffers[2];
	int i, forms;

	disk = argc == 3 ? open(argv[1], O_RDWR) : -1;
	if (disk < 0 || virtblk_query_info(disk, &info) || posix_memalign((void **)&out, 4096, 8192))
		return 2;
	in = out + 4096;
	for (i = 0; i < 4096; i++)
		out[i] = (char)(i * 7 + i / 256);
	buffers[0].iov_base = out, buffers[1].iov_base = in;
	buffers[0].iov_len = buffers[1].iov_len = 4096;
	forms = info.driver_features & VIRTBLK_URING_F_IO64 ? 2 : 1;
	for (i = 0; i < forms; i++) {
		if (io_uring_queue_init(4, &ring, IORING_SETUP_CQE32 | (i ? 0 : IORING_SETUP_SQE128)) ||
		    io_uring_register_buffers(&ring, buffers, 2))
			return 2;
		form = virtblk_form(&ring);
		argv[2][0] == 'z' ? zones() : plain();
		io_uring_queue_exit(&ring);
	}
	printf("%d forms %s\n", forms, bad ? "WRONG" : "right");
	return bad;
}
