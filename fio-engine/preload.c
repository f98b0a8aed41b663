/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fio's own io_uring engines, patched, as an object for a fio that is already
 * there:
 *
 *	ioengine=external:/path/fio-vblk.so	in a job, or
 *	LD_PRELOAD=/path/fio-vblk.so		for jobs left as they are
 *
 * Compiled in the root of fio's prepared source. fio and everything it
 * declares comes from the program that loads this.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "fio.h"

/*
 * A preloaded object is loaded into fio's child processes as well, where none
 * of this exists: what is looked up when loading must be allowed to be absent.
 */
#pragma weak register_ioengine
#pragma weak unregister_ioengine
#pragma weak page_mask
#pragma weak page_size
#pragma weak read_only
#pragma weak fio_debug
#pragma weak generic_get_file_size

/*
 * Whether this was preloaded: then it stands before the C library in the order
 * of loading, else behind. Only then its engines take the place of fio's own;
 * fio asks for the other one by get_ioengine().
 */
static bool vblk_preloaded(void)
{
	struct link_map *self = NULL, *map;
	Dl_info info;

	if (!register_ioengine)
		return false;
	if (!dladdr1((void *)vblk_preloaded, &info, (void **)&self,
		     RTLD_DL_LINKMAP) || !self)
		return false;
	for (map = _r_debug.r_map; map && map != self; map = map->l_next)
		if (strstr(map->l_name, "/libc.so."))
			return false;
	return true;
}

static void vblk_register(struct ioengine_ops *ops)
{
	if (vblk_preloaded())
		register_ioengine(ops);
}

static void vblk_unregister(struct ioengine_ops *ops)
{
	if (vblk_preloaded())
		unregister_ioengine(ops);
}

#define register_ioengine	vblk_register
#define unregister_ioengine	vblk_unregister
#include "engines/io_uring.c"

__attribute__((visibility("default")))
void get_ioengine(struct ioengine_ops **ops)
{
	*ops = &ioengine_uring_cmd;
}
