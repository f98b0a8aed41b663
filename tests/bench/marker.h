/* SPDX-License-Identifier: GPL-2.0-only */
/* The instructions by which the client speaks to the plugin (plugin.c) */
#ifndef BENCH_MARKER_H
#define BENCH_MARKER_H

#define MARK		0x6b6c6200
#define MARK_CLEAR	0
#define MARK_OPEN	1
#define MARK_CLOSE	2
#define MARK_REPORT	3

#define marker(n)	asm volatile("nopl %c0(%%rax)" :: "i"(MARK + (n)) : "memory")

#endif
