// SPDX-License-Identifier: GPL-2.0-only
/*
 * A TCG plugin that counts what a guest executes between two marker
 * instructions, by translation block.
 *
 * A block's instructions are counted when it is entered, on the virtual CPU
 * that enters it, and only while the gate is open; so opening and closing the
 * gate costs nothing and may happen around every single system call. A block
 * that is left early by a fault counts whole: a few instructions per fault.
 * Every iteration of a "rep" instruction counts as one, as TCG executes it.
 *
 * Markers are user-mode instructions that do nothing on any x86 CPU:
 *	nopl MARK+n(%rax)	n = 0 clear, 1 open, 2 close, 3 report
 * A report appends one section to the file given as out=FILE:
 *	section USER KERNEL	instructions in either half of the address space
 *	cpu N KERNEL		the same by virtual CPU
 *	t ADDRESS LENGTH TIMES	a kernel block: instructions in it, entries
 *	end
 *
 * QEMU's header for plugins isn't packaged by distributions, so what is used of
 * it (version 1 of the interface, QEMU 6.2 to 8.2) is declared here.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marker.h"

struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct plugin_info {
	const char *target;
	struct { int min, cur; } version;
	bool system;
	struct { int now, max; } vcpus;
};

enum { CB_NO_REGS = 0 };

typedef void (*exec_cb)(unsigned int vcpu, void *data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
		void (*cb)(uint64_t id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
		exec_cb cb, int flags, void *data);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *i,
		exec_cb cb, int flags, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(
		const struct qemu_plugin_tb *tb, size_t index);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

/* One translated block; the same code translated again finds it again */
struct block {
	struct block *next;
	uint64_t addr;
	uint32_t len;
	uint64_t times[];		/* by virtual CPU */
};

#define BUCKETS (1 << 16)

static struct block *table[BUCKETS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool gate;
static int vcpus;
static FILE *out;

static bool in_kernel(uint64_t addr)
{
	return addr >> 63;
}

static struct block *find_block(uint64_t addr, uint32_t len)
{
	struct block **head = &table[(addr * 0x9e3779b97f4a7c15u >> 40) % BUCKETS];
	struct block *b;

	pthread_mutex_lock(&table_lock);
	for (b = *head; b; b = b->next)
		if (b->addr == addr && b->len == len)
			break;
	if (!b) {
		b = calloc(1, sizeof(*b) + vcpus * sizeof(b->times[0]));
		if (!b) {
			fprintf(stderr, "meter: out of memory\n");
			abort();
		}
		b->addr = addr;
		b->len = len;
		b->next = *head;
		*head = b;
	}
	pthread_mutex_unlock(&table_lock);
	return b;
}

static void on_block(unsigned int vcpu, void *data)
{
	struct block *b = data;

	if (gate)
		b->times[vcpu]++;
}

static void clear(void)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct block *b = table[i]; b; b = b->next)
			memset(b->times, 0, vcpus * sizeof(b->times[0]));
}

static uint64_t block_times(const struct block *b)
{
	uint64_t sum = 0;

	for (int cpu = 0; cpu < vcpus; cpu++)
		sum += b->times[cpu];
	return sum;
}

static uint64_t sum_half(bool kernel, int cpu)
{
	uint64_t sum = 0;

	for (int i = 0; i < BUCKETS; i++)
		for (struct block *b = table[i]; b; b = b->next)
			if (in_kernel(b->addr) == kernel)
				sum += b->len * (cpu < 0 ? block_times(b) :
						 b->times[cpu]);
	return sum;
}

static void report(void)
{
	fprintf(out, "section %" PRIu64 " %" PRIu64 "\n",
		sum_half(false, -1), sum_half(true, -1));
	for (int cpu = 0; cpu < vcpus; cpu++)
		fprintf(out, "cpu %d %" PRIu64 "\n", cpu, sum_half(true, cpu));
	for (int i = 0; i < BUCKETS; i++)
		for (struct block *b = table[i]; b; b = b->next)
			if (in_kernel(b->addr) && block_times(b))
				fprintf(out, "t %" PRIx64 " %u %" PRIu64 "\n",
					b->addr, b->len, block_times(b));
	fprintf(out, "end\n");
	fflush(out);
}

static void on_marker(unsigned int vcpu, void *data)
{
	pthread_mutex_lock(&table_lock);
	switch ((uintptr_t)data) {
	case MARK_CLEAR:
		gate = false;
		clear();
		break;
	case MARK_OPEN:
		gate = true;
		break;
	case MARK_CLOSE:
		gate = false;
		break;
	case MARK_REPORT:
		report();
		break;
	}
	pthread_mutex_unlock(&table_lock);
}

/* nopl disp32(%rax) is 0f 1f 80 and the displacement */
static int marker_of(const struct qemu_plugin_insn *insn)
{
	const unsigned char *code = qemu_plugin_insn_data(insn);
	uint32_t disp;

	if (qemu_plugin_insn_size(insn) != 7 || memcmp(code, "\x0f\x1f\x80", 3))
		return -1;
	memcpy(&disp, code + 3, sizeof(disp));
	return disp >= MARK && disp <= MARK + MARK_REPORT ? (int)(disp - MARK) : -1;
}

static void find_markers(const struct qemu_plugin_tb *tb, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		int mark = marker_of(insn);

		if (mark >= 0)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker,
					CB_NO_REGS, (void *)(uintptr_t)mark);
	}
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t len = qemu_plugin_tb_n_insns(tb);
	uint64_t addr = qemu_plugin_tb_vaddr(tb);

	if (!in_kernel(addr))
		find_markers(tb, len);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, CB_NO_REGS,
					     find_block(addr, len));
}

EXPORT int qemu_plugin_install(uint64_t id, const struct plugin_info *info,
			       int argc, char **argv)
{
	const char *path = argc == 1 && !strncmp(argv[0], "out=", 4) ?
			   argv[0] + 4 : NULL;

	if (!path || !info->system || strcmp(info->target, "x86_64")) {
		fprintf(stderr, "meter: use with qemu-system-x86_64 as -plugin meter.so,out=FILE\n");
		return 1;
	}
	out = fopen(path, "w");
	if (!out) {
		perror(path);
		return 1;
	}
	vcpus = info->vcpus.max;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
