// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options, and the event loop.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

struct device dev = { .name = "vblk0", .nr_queues = 1, .queue_size = 128 };

static uint64_t size = 64 << 20;
static const char *file, *log_path, *script, *socket_path;
static char *assignments[64], *first_rules[64];
static unsigned int nr_assignments, nr_rules;

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "vblk-device: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

static void __attribute__((noreturn)) help(void)
{
	printf("Usage: vblk-device [OPTIONS]           a virtio-blk device by VDUSE\n"
	       "       vblk-device --ctl SOCKET COMMAND...  tell a running one\n"
	       "\n"
	       "  --name NAME         VDUSE device name (vblk0); then: vdpa dev add\n"
	       "                      name NAME mgmtdev vduse\n"
	       "  --adopt             take over the device of a server that vanished\n"
	       "  --vhost-user PATH   serve QEMU's vhost-user-blk-pci on this socket\n"
	       "  --socket PATH       listen for control commands\n"
	       "  --script PATH       commands to start with\n"
	       "  --rule RULE         a rule to start with (may repeat)\n"
	       "  --log PATH          append what the driver sends, as JSON lines\n"
	       "  --size BYTES        capacity (64M), held in memory ...\n"
	       "  --file PATH         ... or in this file, of its size\n"
	       "  --queues N          virtqueues (1); with more than 1 also MQ\n"
	       "  --queue-size N      entries of each (128)\n"
	       "  --feature NAME      offer it (may repeat); --no-feature NAME\n"
	       "  --set FIELD=VALUE   a value in the config space (may repeat)\n"
	       "  --serial TEXT       at most 20 bytes\n"
	       "  --lifetime A,B,C    pre_eol_info and both estimates\n"
	       "  --zoned hm|ha       host-managed or host-aware, zones of 4 MiB\n"
	       "  --zone-cap SECTORS  usable part of a zone\n"
	       "  --conv-zones N      conventional zones at the start\n"
	       "  --help, --version\n");
	config_help(stdout);
	control_help(stdout);
	exit(0);
}

static void zoned(const char *model)
{
	feature_set("zoned", true);
	if (!strcmp(model, "hm"))
		config_write_field("zone_model", 1);
	else if (!strcmp(model, "ha"))
		config_write_field("zone_model", 2);
	else
		die("--zoned takes hm or ha, not %s", model);
	config_write_field("zone_sectors", 8192);
	config_write_field("max_append_sectors", 1024);
	config_write_field("write_granularity", 4096);
}

static void number(const char *s, const char *option, uint64_t max, uint64_t *v)
{
	if (!parse_number(s, v) || *v > max)
		die("%s takes a number up to %llu, not %s", option,
		    (unsigned long long)max, s);
}

enum { O_NAME = 256, O_ADOPT, O_VHOST, O_SOCKET, O_SCRIPT, O_RULE, O_LOG,
       O_SIZE, O_FILE, O_QUEUES, O_QSIZE, O_FEATURE, O_NOFEATURE, O_SET,
       O_SERIAL, O_LIFETIME, O_ZONED, O_ZONECAP, O_CONV, O_CTL, O_HELP,
       O_VERSION };

static const struct option options[] = {
	{ "name", 1, NULL, O_NAME }, { "adopt", 0, NULL, O_ADOPT },
	{ "vhost-user", 1, NULL, O_VHOST }, { "socket", 1, NULL, O_SOCKET },
	{ "script", 1, NULL, O_SCRIPT }, { "rule", 1, NULL, O_RULE },
	{ "log", 1, NULL, O_LOG }, { "size", 1, NULL, O_SIZE },
	{ "file", 1, NULL, O_FILE }, { "queues", 1, NULL, O_QUEUES },
	{ "queue-size", 1, NULL, O_QSIZE }, { "feature", 1, NULL, O_FEATURE },
	{ "no-feature", 1, NULL, O_NOFEATURE }, { "set", 1, NULL, O_SET },
	{ "serial", 1, NULL, O_SERIAL }, { "lifetime", 1, NULL, O_LIFETIME },
	{ "zoned", 1, NULL, O_ZONED }, { "zone-cap", 1, NULL, O_ZONECAP },
	{ "conv-zones", 1, NULL, O_CONV }, { "ctl", 1, NULL, O_CTL },
	{ "help", 0, NULL, O_HELP }, { "version", 0, NULL, O_VERSION },
	{ 0 }
};

/* Options that shape the device; false: not one of them */
static bool device_option(int o, const char *arg)
{
	uint64_t v;

	switch (o) {
	case O_QUEUES:
		number(arg, "--queues", MAX_QUEUES, &v);
		dev.nr_queues = v;
		return true;
	case O_QSIZE:
		number(arg, "--queue-size", 32768, &v);
		dev.queue_size = v;
		return true;
	case O_FEATURE:
	case O_NOFEATURE:
		if (!feature_set(arg, o == O_FEATURE))
			die("no feature is called %s (see --help)", arg);
		return true;
	case O_SERIAL:
		memcpy(dev.serial, arg, strnlen(arg, ID_BYTES));
		return true;
	case O_LIFETIME:
		if (sscanf(arg, "%hu,%hu,%hu", &dev.lifetime[0],
			   &dev.lifetime[1], &dev.lifetime[2]) != 3)
			die("--lifetime takes three numbers, not %s", arg);
		feature_set("lifetime", true);
		return true;
	case O_ZONED:
		zoned(arg);
		return true;
	case O_ZONECAP:
		number(arg, "--zone-cap", UINT64_MAX, &dev.zone_cap);
		return true;
	case O_CONV:
		number(arg, "--conv-zones", UINT32_MAX, &v);
		dev.conv_zones = v;
		return true;
	case O_SET:
		if (nr_assignments == 64)
			die("too many --set");
		assignments[nr_assignments++] = (char *)arg;
		return true;
	}
	return false;
}

static void run_option(int o, char *arg, char **argv)
{
	switch (o) {
	case O_NAME: dev.name = arg; break;
	case O_ADOPT: vduse_set_adopt(true); break;
	case O_VHOST:
		dev.transport = &vhost_user_transport;
		vhost_user_set_socket(arg);
		break;
	case O_SOCKET: socket_path = arg; break;
	case O_SCRIPT: script = arg; break;
	case O_RULE:
		if (nr_rules == 64)
			die("too many --rule; use --script");
		first_rules[nr_rules++] = arg;
		break;
	case O_LOG: log_path = arg; break;
	case O_SIZE: number(arg, "--size", INT64_MAX, &size); break;
	case O_FILE: file = arg; break;
	case O_CTL: exit(control_client(arg, argv + optind));
	case O_VERSION: printf("vblk-device %s\n", VERSION); exit(0);
	case O_HELP: help();
	default: exit(2);	/* getopt has said why */
	}
}

static void open_backing(void)
{
	if (file) {
		dev.backing = open(file, O_RDWR);
		if (dev.backing < 0)
			die("%s: %s", file, strerror(errno));
		size = lseek(dev.backing, 0, SEEK_END);
		return;
	}
	dev.backing = memfd_create("vblk-device", 0);
	if (dev.backing < 0 || ftruncate(dev.backing, size))
		die("no memory for a disk of %llu bytes: %s",
		    (unsigned long long)size, strerror(errno));
}

/* What --feature and --set build on: a plain disk, as QEMU's */
static void defaults(void)
{
	static const char *const on[] = {
		"version_1", "access_platform", "seg_max", "blk_size", "flush",
		"indirect_desc", "event_idx"
	};

	for (size_t i = 0; i < sizeof(on) / sizeof(*on); i++)
		feature_set(on[i], true);
	config_write_field("seg_max", 126);
	config_write_field("blk_size", 512);
	config_write_field("num_queues", 1);
	config_write_field("max_discard_sectors", 1 << 16);
	config_write_field("max_discard_seg", 16);
	config_write_field("discard_sector_alignment", 8);
	config_write_field("max_write_zeroes_sectors", 1 << 16);
	config_write_field("max_write_zeroes_seg", 16);
	config_write_field("max_secure_erase_sectors", 1 << 16);
	config_write_field("max_secure_erase_seg", 16);
	config_write_field("secure_erase_sector_alignment", 8);
}

static void parse(int argc, char **argv)
{
	char *err, command[1100];
	const char *wrong;
	int o;

	defaults();
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!device_option(o, optarg))
			run_option(o, optarg, argv);
	if (optind < argc)
		die("don't know what to do with %s (see --help)", argv[optind]);
	open_backing();
	config_write_field("capacity", size / SECTOR_SIZE);
	if (dev.nr_queues > 1) {
		feature_set("mq", true);
		config_write_field("num_queues", dev.nr_queues);
	}
	for (unsigned int i = 0; i < nr_assignments; i++)
		if (!config_set(assignments[i], &err))
			die("--set %s: %s", assignments[i], err);
	zones_init();
	log_open(log_path);
	for (unsigned int i = 0; i < nr_rules; i++) {
		snprintf(command, sizeof(command), "rule %s", first_rules[i]);
		wrong = control_run(command, stdout);
		if (wrong)
			die("--rule %s: %s", first_rules[i], wrong);
	}
	if (script)
		control_script(script);
}

static void loop(void)
{
	struct pollfd p[MAX_QUEUES + 32];

	while (!dev.quit) {
		int64_t timeout = device_run_delayed();
		int n, transport_fds;

		control_check_waiters();
		if (timeout < 0 || timeout > 100)
			timeout = 100;	/* waiters have deadlines */
		if (control_flicker())
			timeout = 1;	/* leave the reader some time */
		n = transport_fds = dev.transport->fds(p);
		n += control_fds(p + n);
		if (poll(p, n, timeout) <= 0)
			continue;
		for (int i = 0; i < n; i++) {
			if (!p[i].revents)
				continue;
			if (i < transport_fds)
				dev.transport->event(p[i].fd);
			else
				control_event(p[i].fd);
		}
	}
}

static void on_term(int sig)
{
	dev.quit = true;
}

int main(int argc, char **argv)
{
	const struct transport *t;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	parse(argc, argv);
	t = dev.transport ?: &vduse_transport;
	dev.transport = NULL;	/* config writes are local until it has started */
	if (socket_path)
		control_listen(socket_path);
	dev.transport = t;
	t->start();
	printf("ready\n");
	fflush(stdout);
	loop();
	t->stop();
	return 0;
}
