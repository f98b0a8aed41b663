// SPDX-License-Identifier: GPL-2.0-only
/* io_uring-vblk: every refusal says what it was and what to do */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

#include "tool.h"

void complain(const char *fmt, ...)
{
	va_list ap;

	fputs(TOOL ": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void remark(const char *fmt, ...)
{
	va_list ap;

	fputs("note: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void explain_open(const char *path, int err)
{
	const char *hint = "";

	switch (err) {
	case EACCES:
	case EPERM:
		hint = ": you need to be root or in the node's group (often 'disk'), and with "
		       "SELinux its policy must allow it";
		break;
	case ENOENT:
		hint = ": is the disk there, and is this project's virtio_blk loaded "
		       "(ls /dev/vd*; the in-tree driver makes no /dev/vdXc0)?";
		break;
	case EROFS:
		hint = ": the disk is read-only, so no -W";
		break;
	case EBUSY:
		hint = ": somebody holds it exclusively";
		break;
	case EINVAL:
		hint = ": no O_DIRECT here; try -O0";
		break;
	}
	complain("%s: cannot open: %s%s", path, strerror(err), hint);
}

static void memlock_words(char *out, size_t len, size_t need)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_MEMLOCK, &lim) || lim.rlim_cur == RLIM_INFINITY)
		snprintf(out, len, "%zu KiB needed", need / 1024);
	else
		snprintf(out, len, "%zu KiB needed, the locked-memory limit (RLIMIT_MEMLOCK, "
			 "ulimit -l) is %llu KiB", need / 1024,
			 (unsigned long long)lim.rlim_cur / 1024);
}

void explain_ring(const struct worker *w, int err)
{
	char mem[160];

	switch (err) {
	case EPERM:
		complain("no ring: %s: %s", strerror(err), w->o->sqpoll ?
			 "this kernel keeps --sqpoll for privileged users" :
			 "io_uring is off for you here (sysctl kernel.io_uring_disabled, or a "
			 "container's seccomp filter)");
		break;
	case ENOSYS:
		complain("no ring: this kernel was built without io_uring");
		break;
	case ENOMEM:
		memlock_words(mem, sizeof(mem), (size_t)w->o->depth * 192);
		complain("no ring: %s: %s; use a smaller -d or raise the limit",
			 strerror(err), mem);
		break;
	case EINVAL:
		complain("no ring: this kernel refuses the flags 0x%x: %s%s%s", w->setup_flags,
			 w->o->defer == 1 ? "try without --defer 1; " : "",
			 w->o->sqpoll ? "try without --sqpoll, or check --sqpoll-cpu; " : "",
			 w->cqe32 ? "passthrough needs Linux 5.19 or newer" : "");
		break;
	default:
		complain("no ring: %s", strerror(err));
	}
}

void explain_buffers(const struct worker *w, int err)
{
	char mem[160];

	memlock_words(mem, sizeof(mem), w->area_len * w->o->threads);
	if (err == ENOMEM)
		complain("buffers not registered: %s: %s; raise it, lower -d, -b or -n, or use -B0",
			 strerror(err), mem);
	else
		complain("buffers not registered: %s (%s); -B0 does without", strerror(err), mem);
}

/* Why may this have happened? Only for what a user can act upon */
static const char *io_hint(const struct worker *w, const struct slot *s, int err, uint64_t status)
{
	const struct target *t = s->r ? s->r->t : NULL;
	bool pt = t && t->passthrough;

	switch (err) {
	case EOPNOTSUPP:
		if (status)
			return "; the device doesn't know the command";
		if (w->o->polled)
			return "; polled I/O needs poll queues: load virtio_blk with poll_queues=1 "
			       "or more, or use -p0";
		if (pt && w->o->sqe64)
			return "; 64-byte SQEs need Linux 6.12 or newer";
		if (pt && w->o->vectored && w->o->fixedbufs)
			return "; this kernel has no vectored registered buffers: use -B0";
		return "; the disk lacks the feature";
	case EACCES:
		return "; the descriptor isn't open for it, or a security module (SELinux: "
		       "io_uring cmd) denies it";
	case EPERM:
		return "; a security module denies it, or the I/O priority needs CAP_SYS_NICE";
	case EROFS:
		return "; the disk is read-only";
	case ENODEV:
		return "; the disk is gone";
	case ENOTTY:
		return "; not a virtio-blk passthrough node, or an older driver";
	case EINVAL:
		return pt ? "; more than a limit of the disk, or not whole blocks" :
			    "; not whole blocks, or more than a limit";
	case ENOMEM:
		return "; short of memory";
	}
	return "";
}

void explain_io(const struct worker *w, const struct slot *s, int res, uint64_t status,
		char *out, size_t len)
{
	const struct target *t = s->r ? s->r->t : NULL;
	int err = res < 0 ? -res : EIO, n;

	n = snprintf(out, len, "%s: %s", t ? t->path : "no-op", op_names[s->op]);
	if (t && s->op != OP_FLUSH)
		n += snprintf(out + n, len - n, " of %u bytes at byte %llu", w->o->bs,
			      (unsigned long long)slot_byte(s, w->o));
	if (res >= 0)
		snprintf(out + n, len - n, ": only %d bytes were done", res);
	else if (status)
		snprintf(out + n, len - n, ": the device answered %s (status %llu): %s%s",
			 virtblk_status_name(status), (unsigned long long)status, strerror(err),
			 io_hint(w, s, err, status));
	else
		snprintf(out + n, len - n, ": %s%s", strerror(err), io_hint(w, s, err, status));
}
