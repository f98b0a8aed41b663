// SPDX-License-Identifier: GPL-2.0-only
/* io_uring-vblk: the command line */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#ifndef VERSION
#define VERSION "unknown"
#endif

static const struct options defaults = {
	.depth = 128, .batch_submit = 32, .batch_complete = 32, .bs = 4096,
	.threads = 1, .polled = true, .fixedbufs = true, .regfiles = true,
	.direct = true, .random = true, .ringfd = true,
	.iovecs = 1, .seed = 1, .defer = -1, .sqpoll_cpu = -1,
};

static const char help_text[] =
"Usage: " TOOL " [options] DISK...\n"
"\n"
"I/O at a steady depth on virtio-blk disks, through the block node /dev/vdX (-u0)\n"
"or by io_uring passthrough through /dev/vdXc0 (-u1). One line a second:\n"
"IOPS, bandwidth, I/Os submitted and reaped per system call. Reads, unless -W.\n"
"\n"
"As t/io_uring has them (0 or 1 where nothing else is said):\n"
"  -d N   I/Os in flight [128]          -s N   submit in batches of [32]\n"
"  -c N   reap in batches of [32]       -b N   bytes per I/O, k/M allowed [4096]\n"
"  -p B   polled completion [1]         -B B   registered buffers [1]\n"
"  -F B   registered files [1]          -n N   threads [1]\n"
"  -O B   O_DIRECT on the block node [1]  -N B no-ops, no disk [0]\n"
"  -t B   latency percentiles [0]       -T HZ  rate of the CPU's counter [measured]\n"
"  -r S   seconds to run [until SIGINT] -R B   random offsets [1]\n"
"  -V B   vectored I/O [0]              -X B   registered ring descriptor [1]\n"
"  -u B   passthrough [0]               -P B   run on the disk's NUMA node [0]\n"
"  -H F   buffers in this hugetlbfs file  -D 0  t/io_uring's, without effect\n"
"  -S B   preadv2, no ring [0]          -a B   legacy aio, no ring [0]\n"
"\n"
"What is done:\n"
"  -W             allow writing; alone: only writes. Refused on a disk in use\n"
"  --mix SPEC     weights, e.g. read=70,write=25,trim=5 (also zeroes, flush)\n"
"  --verify       write data that tells where it belongs, check every read of it,\n"
"                 and read all of it back through the block node at the end\n"
"  --seed N       of offsets and data [1]\n"
"  --offset N, --size N   the range, k/M/G/T or % allowed [the whole disk]\n"
"  --ios N        stop after this many I/Os per thread\n"
"  --rate N       open loop: start N I/Os a second whatever the disk does, and\n"
"                 count latency from when each was due\n"
"  --iovecs N     iovecs per I/O with -V1 [1]\n"
"  --continue     go on after an I/O error (the exit status still tells)\n"
"\n"
"How:\n"
"  --sqe64        passthrough by 64-byte SQEs (Linux 6.12 and newer)\n"
"  --sqe128       128-byte SQEs on the block side too\n"
"  --defer B      IORING_SETUP_DEFER_TASKRUN [where the kernel has it]\n"
"  --sqpoll       a kernel thread submits   --sqpoll-cpu N   --sqpoll-idle MS\n"
"  --huge         buffers in huge pages\n"
"  --pin LIST     threads to these CPUs, e.g. 0,2-3\n"
"\n"
"Comparing:\n"
"  --compare      block and passthrough by turns on one disk, as a table\n"
"  --matrix       the same for depths 1, 8, 32: plain, registered, polled\n"
"  --repeats N    pairs of runs, each -r seconds [5; -r 1]\n"
"\n"
"  --json   results as JSON (the lines go to stderr)   --help   --version\n"
"\n"
"Exit status: 0 all I/O succeeded, 1 an I/O failed or the run was refused, 2 usage.\n"
"N may carry k, M, G, T.  See io_uring-vblk(1).\n";

static void __attribute__((noreturn)) usage_error(const char *opt, const char *arg,
						  const char *want)
{
	fprintf(stderr, TOOL ": %s: '%s' is not %s (--help lists the options)\n",
		opt, arg, want);
	exit(2);
}

static uint64_t parse_number(const char *opt, const char *arg, uint64_t min, uint64_t max)
{
	static const char units[] = "kmgt";
	const char *unit;
	char want[96], *end;
	unsigned long long v;
	unsigned int shift = 0;

	errno = 0;
	v = strtoull(arg, &end, 0);
	if (*end && (unit = strchr(units, *end | 0x20))) {
		shift = 10 * (unit - units + 1);
		end++;
	}
	if (errno || end == arg || *end || *arg == '-' || v > (UINT64_MAX >> shift) ||
	    (v << shift) < min || (v << shift) > max) {
		snprintf(want, sizeof(want), "a number from %llu to %llu",
			 (unsigned long long)min, (unsigned long long)max);
		usage_error(opt, arg, want);
	}
	return v << shift;
}

static bool parse_bool(const char *opt, const char *arg)
{
	return parse_number(opt, arg, 0, 1);
}

static double parse_seconds(const char *opt, const char *arg)
{
	char *end;
	double v = strtod(arg, &end);

	if (end == arg || *end || !isfinite(v) || v < 0)
		usage_error(opt, arg, "a number of seconds");
	return v;
}

/*
 * A percentage can't be turned into bytes before the disk is known: its
 * complement is kept, which no byte count on a disk comes near.
 */
static uint64_t parse_place(const char *opt, const char *arg)
{
	char *end;
	unsigned long v = strtoul(arg, &end, 10);

	if (end != arg && !strcmp(end, "%")) {
		if (v > 100)
			usage_error(opt, arg, "at most 100%");
		return ~(uint64_t)v;
	}
	return parse_number(opt, arg, 0, INT64_MAX);
}

static void parse_mix(struct options *o, const char *arg)
{
	char *copy = strdup(arg), *save = NULL, *part, *weight;
	unsigned int sum = 0;
	int op;

	memset(o->mix, 0, sizeof(o->mix));
	for (part = strtok_r(copy, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
		weight = strchr(part, '=');
		if (weight)
			*weight++ = 0;
		for (op = 0; op < OP_NR && strcmp(part, op_names[op]); op++)
			;
		if (op == OP_NR)
			usage_error("--mix", part, "read, write, trim, zeroes or flush");
		o->mix[op] = weight ? parse_number("--mix", weight, 0, 1000000) : 1;
		sum += o->mix[op];
	}
	free(copy);
	if (!sum)
		usage_error("--mix", arg, "a mix: no weight is more than 0");
}

static void parse_pins(struct options *o, const char *arg)
{
	const char *p = arg;
	char *end;
	long from, to;

	o->npins = 0;
	while (*p) {
		from = to = strtol(p, &end, 10);
		if (end != p && *end == '-') {
			p = end + 1;
			to = strtol(p, &end, 10);
		}
		if (end == p || from < 0 || to < from || to > 65535 || (*end && *end != ','))
			usage_error("--pin", arg, "a list of CPUs such as 0,2-3");
		while (from <= to && o->npins < MAX_PINS)
			o->pin[o->npins++] = from++;
		p = *end ? end + 1 : end;
	}
}

enum { LONG_MIX = 256, LONG_VERIFY, LONG_SEED, LONG_OFFSET, LONG_SIZE, LONG_IOS, LONG_RATE,
       LONG_IOVECS, LONG_CONTINUE, LONG_SQE64, LONG_SQE128, LONG_DEFER, LONG_SQPOLL,
       LONG_SQPOLL_CPU, LONG_SQPOLL_IDLE, LONG_HUGE, LONG_PIN, LONG_COMPARE, LONG_MATRIX,
       LONG_REPEATS, LONG_JSON, LONG_HELP, LONG_VERSION };

static const struct option long_options[] = {
	{ "mix", 1, NULL, LONG_MIX }, { "verify", 0, NULL, LONG_VERIFY },
	{ "seed", 1, NULL, LONG_SEED }, { "offset", 1, NULL, LONG_OFFSET },
	{ "size", 1, NULL, LONG_SIZE }, { "ios", 1, NULL, LONG_IOS },
	{ "rate", 1, NULL, LONG_RATE }, { "iovecs", 1, NULL, LONG_IOVECS },
	{ "continue", 0, NULL, LONG_CONTINUE }, { "sqe64", 0, NULL, LONG_SQE64 },
	{ "sqe128", 0, NULL, LONG_SQE128 }, { "defer", 1, NULL, LONG_DEFER },
	{ "sqpoll", 0, NULL, LONG_SQPOLL }, { "sqpoll-cpu", 1, NULL, LONG_SQPOLL_CPU },
	{ "sqpoll-idle", 1, NULL, LONG_SQPOLL_IDLE }, { "huge", 0, NULL, LONG_HUGE },
	{ "pin", 1, NULL, LONG_PIN }, { "compare", 0, NULL, LONG_COMPARE },
	{ "matrix", 0, NULL, LONG_MATRIX }, { "repeats", 1, NULL, LONG_REPEATS },
	{ "json", 0, NULL, LONG_JSON }, { "help", 0, NULL, LONG_HELP },
	{ "version", 0, NULL, LONG_VERSION }, { NULL, 0, NULL, 0 }
};

static void parse_short(struct options *o, int opt, const char *arg)
{
	char name[3] = { '-', (char)opt, 0 };

	switch (opt) {
	case 'd': o->depth = parse_number(name, arg, 1, 32768); break;
	case 's': o->batch_submit = parse_number(name, arg, 0, 32768); break;
	case 'c': o->batch_complete = parse_number(name, arg, 0, 32768); break;
	case 'b': o->bs = parse_number(name, arg, SECTOR, 1 << 30); break;
	case 'n': o->threads = parse_number(name, arg, 1, 1024); break;
	case 'p': o->polled = parse_bool(name, arg); break;
	case 'B':
		o->fixedbufs = parse_bool(name, arg);
		o->fixedbufs_asked = true;
		break;
	case 'F': o->regfiles = parse_bool(name, arg); break;
	case 'O': o->direct = parse_bool(name, arg); break;
	case 'N': o->nop = parse_bool(name, arg); break;
	case 't': o->latency = parse_bool(name, arg); break;
	case 'R': o->random = parse_bool(name, arg); break;
	case 'X': o->ringfd = parse_bool(name, arg); break;
	case 'V': o->vectored = parse_bool(name, arg); break;
	case 'P': o->numa = parse_bool(name, arg); break;
	case 'u': o->passthrough = parse_bool(name, arg); break;
	case 'S': o->engine = parse_bool(name, arg) ? ENGINE_SYNC : o->engine; break;
	case 'a': o->engine = parse_bool(name, arg) ? ENGINE_AIO : o->engine; break;
	case 'H': o->hugefile = arg; break;
	case 'T': ticks_init(parse_number(name, arg, 1000, UINT64_MAX)); break;
	case 'r': o->runtime = parse_seconds(name, arg); break;
	case 'W': o->write = true; break;
	case 'D':
		if (parse_bool(name, arg))
			usage_error(name, arg, "0: no kernel maps buffers for DMA ahead");
		break;
	case 'h': fputs(help_text, stdout); exit(0);
	default: exit(2);	/* getopt has said why */
	}
}

static void parse_long(struct options *o, int opt, const char *name, const char *arg)
{
	switch (opt) {
	case LONG_MIX: parse_mix(o, arg); break;
	case LONG_VERIFY: o->verify = true; break;
	case LONG_SEED: o->seed = parse_number(name, arg, 0, UINT64_MAX); break;
	case LONG_OFFSET: o->offset = parse_place(name, arg); break;
	case LONG_SIZE: o->size = parse_place(name, arg); break;
	case LONG_IOS: o->ios = parse_number(name, arg, 1, INT64_MAX); break;
	case LONG_RATE: o->rate = parse_number(name, arg, 1, 1000000000); break;
	case LONG_IOVECS: o->iovecs = parse_number(name, arg, 1, MAX_IOVECS); break;
	case LONG_CONTINUE: o->keep_going = true; break;
	case LONG_SQE64: o->sqe64 = true; break;
	case LONG_SQE128: o->sqe128 = true; break;
	case LONG_DEFER: o->defer = parse_bool(name, arg); break;
	case LONG_SQPOLL: o->sqpoll = true; break;
	case LONG_SQPOLL_CPU: o->sqpoll_cpu = parse_number(name, arg, 0, 65535); break;
	case LONG_SQPOLL_IDLE: o->sqpoll_idle = parse_number(name, arg, 1, 1000000); break;
	case LONG_HUGE: o->huge = true; break;
	case LONG_PIN: parse_pins(o, arg); break;
	case LONG_MATRIX: o->matrix = o->compare = true; break;
	case LONG_COMPARE: o->compare = true; break;
	case LONG_REPEATS: o->repeats = parse_number(name, arg, 1, 1000); break;
	case LONG_JSON: o->json = true; break;
	case LONG_HELP: fputs(help_text, stdout); exit(0);
	case LONG_VERSION: puts(TOOL " " VERSION); exit(0);
	}
}

static void __attribute__((noreturn)) clash(const char *why)
{
	fprintf(stderr, TOOL ": %s\n", why);
	exit(2);
}

static void check_writing(struct options *o)
{
	bool any = false, writes = o->mix[OP_WRITE] || o->mix[OP_TRIM] || o->mix[OP_ZEROES];
	int op;

	for (op = 0; op < OP_NR; op++)
		any |= o->mix[op] != 0;
	if (writes && !o->write)
		clash("--mix asks for writing: say -W too, and be sure of the disk");
	if (!any)
		o->mix[o->write ? OP_WRITE : OP_READ] = 1;
	if (o->verify && !o->write)
		clash("--verify checks what this run has written: it needs -W");
}

/* Nothing that was asked for is left out in silence */
static void check_unused(const struct options *o)
{
	if (!o->sqpoll && (o->sqpoll_cpu >= 0 || o->sqpoll_idle))
		clash("--sqpoll-cpu and --sqpoll-idle belong to --sqpoll: say that too");
	if (o->repeats && !o->compare)
		clash("--repeats is of --compare and --matrix: say one of them");
	if (o->compare && (o->ios || o->nop))
		clash("--compare measures a disk for -r seconds: not with --ios or -N1");
	if (o->huge && o->hugefile)
		clash("--huge and -H are two places for the buffers: choose one");
	if (o->numa && o->npins)
		clash("-P1 and --pin are two choices of CPUs: choose one");
	if (o->iovecs > 1 && !o->vectored)
		clash("--iovecs needs -V1");
}

/* An IOPOLL ring takes no fsync, no fallocate and no discard */
static bool polls_block_commands(const struct options *o)
{
	return o->polled && (!o->passthrough || o->compare) &&
	       (o->mix[OP_TRIM] || o->mix[OP_ZEROES] || o->mix[OP_FLUSH]);
}

static void check_clashes(struct options *o)
{
	bool ring = o->engine == ENGINE_URING;

	check_writing(o);
	check_unused(o);
	if (!ring && (o->passthrough || o->compare || o->rate || o->sqpoll || o->nop))
		clash("-S and -a use no ring: not with -u1, -N1, --compare, --rate or --sqpoll");
	if (!ring && (o->mix[OP_TRIM] || o->mix[OP_ZEROES] || o->mix[OP_FLUSH]))
		clash("-S and -a only read and write");
	if (o->sqe64 && !o->passthrough && !o->compare)
		clash("--sqe64 is a form of passthrough: say -u1 too");
	if (o->sqe64 && o->sqe128)
		clash("--sqe64 and --sqe128 exclude each other");
	if (o->sqpoll && o->defer == 1)
		clash("--sqpoll leaves nothing to --defer 1: choose one");
	if (o->compare && o->npaths != 1)
		clash("--compare takes one disk");
	if (o->compare && o->verify)
		clash("--compare doesn't verify: run each side alone");
	if (o->vectored && o->fixedbufs_asked && o->fixedbufs && (!o->passthrough || o->compare))
		clash("-V1 with -B1 exists in passthrough (-u1) only: use -B0");
	if (ring && !o->nop && !o->matrix && polls_block_commands(o))
		clash("on the block side polled rings (-p1, the default) only read and write: use -p0");
	if (o->vectored && o->bs % (o->iovecs * SECTOR))
		clash("-b must give each of the --iovecs a whole number of sectors");
	if (!o->nop && !o->npaths)
		clash("name a disk: /dev/vdX with -u0, /dev/vdXc0 with -u1 (--help lists the options)");
	if (o->npaths > MAX_TARGETS)
		clash("at most 16 disks");
}

void options_parse(struct options *o, int argc, char **argv)
{
	int opt, index = 0;
	char name[40];

	*o = defaults;
	while ((opt = getopt_long(argc, argv, "d:s:c:b:p:B:F:n:N:O:t:T:a:r:D:R:X:S:P:V:u:H:Wh",
				  long_options, &index)) != -1) {
		if (opt < 256) {
			parse_short(o, opt, optarg);
			continue;
		}
		snprintf(name, sizeof(name), "--%s", long_options[index].name);
		parse_long(o, opt, name, optarg);
	}
	o->paths = argv + optind;
	o->npaths = argc - optind;
	check_clashes(o);

	/* As t/io_uring: a batch is at least 1 and never more than the depth */
	o->batch_submit = min_u(o->batch_submit ? o->batch_submit : 1, o->depth);
	o->batch_complete = min_u(o->batch_complete ? o->batch_complete : 1, o->depth);
	if (o->nop || o->engine != ENGINE_URING || (o->vectored && !o->fixedbufs_asked))
		o->fixedbufs = false;
	if (o->nop)
		o->polled = false;
	if (!o->repeats)
		o->repeats = 5;
}
