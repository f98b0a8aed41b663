// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts tracepoints and kprobes while a command runs: over the whole guest,
 * and those of the command itself. By perf counters, which neither slow the
 * counted nor lose any, as reading a trace would.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_EVENTS	8
#define MAX_CPUS	64

static struct event {
	const char *name;
	int all[MAX_CPUS], own;
} events[MAX_EVENTS];
static unsigned int n_events, n_cpus;

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "count: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(125);
}

static unsigned long event_id(const char *name)
{
	char path[256];
	unsigned long id;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%lu", &id) != 1)
		die("no event %s (%s)", name, path);
	fclose(f);
	return id;
}

static int open_counter(const char *name, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr),
		.config = event_id(name), .disabled = 1, .inherit = pid > 0,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1,
			 PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die("counting %s: %s", name, strerror(errno));
	return fd;
}

static void open_all(pid_t child)
{
	for (unsigned int i = 0; i < n_events; i++) {
		struct event *e = &events[i];

		for (unsigned int cpu = 0; cpu < n_cpus; cpu++)
			e->all[cpu] = open_counter(e->name, -1, cpu);
		e->own = open_counter(e->name, child, -1);
	}
}

static void for_all(unsigned long request)
{
	for (unsigned int i = 0; i < n_events; i++) {
		for (unsigned int cpu = 0; cpu < n_cpus; cpu++)
			ioctl(events[i].all[cpu], request, 0);
		ioctl(events[i].own, request, 0);
	}
}

static uint64_t value(int fd)
{
	uint64_t v;

	if (read(fd, &v, sizeof(v)) != sizeof(v))
		die("reading a counter: %s", strerror(errno));
	return v;
}

static void report(const char *file)
{
	FILE *f = fopen(file, "we");

	if (!f)
		die("%s: %s", file, strerror(errno));
	for (unsigned int i = 0; i < n_events; i++) {
		const char *name = strchr(events[i].name, '/') + 1;
		uint64_t all = 0;

		for (unsigned int cpu = 0; cpu < n_cpus; cpu++)
			all += value(events[i].all[cpu]);
		fprintf(f, "%s\"%s\": %llu, \"%s_own\": %llu", i ? ", " : "{", name,
			(unsigned long long)all, name,
			(unsigned long long)value(events[i].own));
	}
	fprintf(f, "}\n");
	fclose(f);
}

static void usage(void)
{
	puts("usage: count FILE EVENT… -- COMMAND…\n"
	     "Runs COMMAND and writes to FILE, as JSON, how often each EVENT (GROUP/NAME as\n"
	     "under /sys/kernel/tracing/events) happened meanwhile: NAME on all CPUs,\n"
	     "NAME_own in COMMAND's own threads. Ends as COMMAND does, or with 125.");
	exit(0);
}

static pid_t start(char **command, int go)
{
	pid_t child = fork();
	char c;

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child)
		return child;
	/* until the counters are there */
	if (read(go, &c, 1) != 1)
		_exit(125);
	execvp(command[0], command);
	fprintf(stderr, "count: %s: %s\n", command[0], strerror(errno));
	_exit(125);
}

int main(int argc, char **argv)
{
	int at = 2, status, go[2];
	pid_t child;

	if (argc < 2 || !strcmp(argv[1], "--help"))
		usage();
	for (; at < argc && strcmp(argv[at], "--"); at++) {
		if (n_events == MAX_EVENTS || !strchr(argv[at], '/'))
			die("%s: not GROUP/NAME, or too many", argv[at]);
		events[n_events++].name = argv[at];
	}
	if (at + 1 >= argc)
		die("no command; see --help");
	n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (n_cpus > MAX_CPUS || pipe2(go, O_CLOEXEC))
		die("cannot start");
	child = start(argv + at + 1, go[0]);
	open_all(child);
	for_all(PERF_EVENT_IOC_ENABLE);
	if (write(go[1], "g", 1) != 1 || waitpid(child, &status, 0) != child)
		die("waiting: %s", strerror(errno));
	for_all(PERF_EVENT_IOC_DISABLE);
	report(argv[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
