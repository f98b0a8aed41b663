/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FIO_VBLK_CLAIM_H
#define FIO_VBLK_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether somebody uses the disk behind the node @path: a file system, swap,
 * md, LVM, dm, or any program that has it exclusively. If so, @by says who.
 */
bool vblk_claimed(const char *path, char *by, size_t size);

#endif
