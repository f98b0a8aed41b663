// SPDX-License-Identifier: MIT
/*
 * Checks virtblk_uring_helpers.h without a disk: what each function writes into an
 * SQE, and what it reads from a CQE, byte by byte. Compiled as C and as C++.
 */
#include <stdlib.h>

#include <virtblk_uring_helpers.h>

static unsigned char entry[256];	/* an SQE of 128 bytes and what lies behind it */
static struct io_uring_sqe *const sqe = (struct io_uring_sqe *)entry;
static int bad;

static void same(const char *what, unsigned long long got, unsigned long long want)
{
	if (got == want)
		return;
	printf("FAIL examples-header-fields: %s: got %llu, wanted %llu\n", what, got, want);
	bad = 1;
}

static unsigned long long field(unsigned int at, unsigned int bytes)
{
	unsigned long long v = 0;

	memcpy(&v, entry + at, bytes);	/* little-endian machines only, as is this check */
	return v;
}

static void fresh(void)
{
	memset(entry, 0xee, sizeof(entry));
}

/* The SQE as the uapi header lays it out: 48 is where sqe->cmd begins */
static void wants(const char *what, enum virtblk_form form, int vec, unsigned int type,
		  unsigned long long sector, const void *data, unsigned int len, int index)
{
	int wide = form == VIRTBLK_SQE128;

	same(what, field(0, 1), IORING_OP_URING_CMD);
	same(what, field(4, 4), 7);
	same(what, field(8, 4), (wide ? 1 : 3) + vec);
	same(what, field(28, 4), index >= 0);
	same(what, field(40, 2), index >= 0 ? index : 0);
	same(what, field(wide ? 48 : 56, 4), type);
	same(what, field(wide ? 56 : 48, 8), sector);
	same(what, field(wide ? 64 : 16, 8), (uintptr_t)data);
	same(what, field(wide ? 72 : 24, 4), len);
	same(what, field(wide ? 76 : 62, 2), 0);
	/* nothing behind the command: in a ring that is the next SQE */
	same(what, field(wide ? 80 : 64, 8), 0xeeeeeeeeeeeeeeeeULL);
	fresh();
}

static void commands(enum virtblk_form f)
{
	struct virtio_blk_discard_write_zeroes r[2] = { virtblk_range(1, 2, 0), virtblk_range(3, 4, 1) };
	struct virtblk_lifetime life;
	static char b[4096];
	struct iovec v[3];
	unsigned int t;

	fresh();
	memset(v, 0, sizeof(v));
	virtblk_prep_read(sqe, f, 7, 1ULL << 40, b, 4096);
	wants("read", f, 0, 0, 1ULL << 40, b, 4096, -1);
	virtblk_prep_readv(sqe, f, 7, 9, v, 3);
	wants("readv", f, 1, 0, 9, v, 3, -1);
	virtblk_prep_read_fixed(sqe, f, 7, 9, b, 512, 5);
	wants("read_fixed", f, 0, 0, 9, b, 512, 5);
	virtblk_prep_readv_fixed(sqe, f, 7, 9, v, 2, 0);
	wants("readv_fixed", f, 1, 0, 9, v, 2, 0);
	virtblk_prep_write(sqe, f, 7, 9, b, 512);
	wants("write", f, 0, 1, 9, b, 512, -1);
	virtblk_prep_writev(sqe, f, 7, 9, v, 3);
	wants("writev", f, 1, 1, 9, v, 3, -1);
	virtblk_prep_write_fixed(sqe, f, 7, 9, b, 512, 65535);
	wants("write_fixed", f, 0, 1, 9, b, 512, 65535);
	virtblk_prep_writev_fixed(sqe, f, 7, 9, v, 3, 1);
	wants("writev_fixed", f, 1, 1, 9, v, 3, 1);
	virtblk_prep_flush(sqe, f, 7);
	wants("flush", f, 0, 4, 0, NULL, 0, -1);
	virtblk_prep_get_id(sqe, f, 7, b);
	wants("get_id", f, 0, 8, 0, b, 20, -1);
	virtblk_prep_get_lifetime(sqe, f, 7, &life);
	wants("get_lifetime", f, 0, 10, 0, &life, 6, -1);
	virtblk_prep_discard(sqe, f, 7, r, 2);
	wants("discard", f, 0, 11, 0, r, 32, -1);
	virtblk_prep_write_zeroes(sqe, f, 7, r, 1);
	wants("write_zeroes", f, 0, 13, 0, r, 16, -1);
	virtblk_prep_secure_erase(sqe, f, 7, r, 1);
	wants("secure_erase", f, 0, 14, 0, r, 16, -1);
	virtblk_prep_zone_append(sqe, f, 7, 8192, b, 4096);
	wants("zone_append", f, 0, 15, 8192, b, 4096, -1);
	virtblk_prep_zone_appendv(sqe, f, 7, 8192, v, 3);
	wants("zone_appendv", f, 1, 15, 8192, v, 3, -1);
	virtblk_prep_zone_report(sqe, f, 7, 8192, b, 128);
	wants("zone_report", f, 0, 16, 8192, b, 128, -1);
	for (t = VIRTIO_BLK_T_ZONE_OPEN; t <= VIRTIO_BLK_T_ZONE_RESET; t += 2) {
		virtblk_prep_zone(sqe, f, 7, t, 8192);
		wants("zone", f, 0, t, 8192, NULL, 0, -1);
	}
	virtblk_prep_zone_reset_all(sqe, f, 7);
	wants("zone_reset_all", f, 0, 26, 0, NULL, 0, -1);
	virtblk_prep_read(sqe, f, 7, 0, b, 512);
	virtblk_set_ioprio(sqe, 0x4007);
	same("ioprio", f == VIRTBLK_SQE128 ? field(52, 4) : field(60, 2), 0x4007);
	same("range", r[1].sector << 16 | r[1].num_sectors << 8 | r[1].flags, 3 << 16 | 4 << 8 | 1);
}

static void completion(int res, unsigned long long big, unsigned int ring_flags,
		       unsigned int cqe_flags, const char *want)
{
	struct io_uring_cqe *cqe = (struct io_uring_cqe *)calloc(1, 32);
	struct io_uring ring;
	struct virtblk_result r;
	char got[100], text[200];

	memset(&ring, 0, sizeof(ring));
	ring.flags = ring_flags;
	cqe->res = res;
	cqe->flags = cqe_flags;
	memcpy((char *)cqe + 16, &big, sizeof(big));
	r = virtblk_result(&ring, cqe);
	free(cqe);
	snprintf(got, sizeof(got), "%d %d %u %llu %.27s", r.err, r.answered, r.status,
		 (unsigned long long)r.result, virtblk_result_words(r, text, sizeof(text)));
	if (!strcmp(got, want))
		return;
	printf("FAIL examples-header-fields: completion: got %s, wanted %s\n", got, want);
	bad = 1;
}

static void zones(void)
{
	uint64_t words[24] = { 9 };
	struct virtblk_zone z;

	words[16] = 6144, words[17] = 8192, words[18] = 8200, words[19] = 0x0102;
	z = virtblk_report_zone(words, 1);
	same("zones that fit", virtblk_report_zones(words, sizeof(words)), 2);
	same("zones in no room", virtblk_report_zones(words, 63), 0);
	same("zone", z.capacity << 32 | z.start << 16 | z.wp, 6144ULL << 32 | 8192 << 16 | 8200);
	same("zone type", z.type, VIRTBLK_ZONE_SEQ_REQUIRED);
	same("zone state", z.state, VIRTBLK_ZONE_EMPTY);
}

int main(void)
{
	struct virtblk_uring_info info;

	commands(VIRTBLK_SQE128);
	commands(VIRTBLK_SQE64);
	completion(0, 8192, IORING_SETUP_CQE32, 0, "0 1 0 8192 done");
	completion(0, 8192, 0, 0, "0 1 0 0 done");
	completion(-EIO, 1, IORING_SETUP_CQE32, 0, "5 1 1 0 the device answered IOERR (");
	completion(-EIO, 1, 0, VIRTBLK_CQE_F_32, "5 1 1 0 the device answered IOERR (");
	completion(-EINVAL, 0, IORING_SETUP_CQE32, 0, "22 0 0 0 no answer of the device: In");
	zones();
	same("INFO on a bad descriptor", -virtblk_query_info(-1, &info), EBADF);
	if (!bad)
		printf("PASS examples-header-fields (0.0 s)\n");
	return bad;
}
