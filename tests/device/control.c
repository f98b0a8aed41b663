// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control language: one command per line, from a script or from clients of
 * a unix socket. An answer is any lines and then "ok" or "error: why".
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "device.h"

#define MAX_CLIENTS	8

static const struct { const char *name; uint32_t type; } types[] = {
	{ "in", T_IN }, { "out", T_OUT }, { "flush", T_FLUSH },
	{ "get_id", T_GET_ID }, { "get_lifetime", T_GET_LIFETIME },
	{ "discard", T_DISCARD }, { "write_zeroes", T_WRITE_ZEROES },
	{ "secure_erase", T_SECURE_ERASE }, { "zone_append", T_ZONE_APPEND },
	{ "zone_report", T_ZONE_REPORT }, { "zone_open", T_ZONE_OPEN },
	{ "zone_close", T_ZONE_CLOSE }, { "zone_finish", T_ZONE_FINISH },
	{ "zone_reset", T_ZONE_RESET }, { "zone_reset_all", T_ZONE_RESET_ALL },
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static struct rule {
	struct rule *next;
	int64_t type;			/* -1: any */
	uint64_t lo, hi;
	uint64_t skip, count;
	bool next_id;			/* used=next: the head plus 1 */
	struct action act;
} *rules;

static struct client {
	int fd;
	FILE *out;
	char line[1024];
	size_t len;
	char cond[32];			/* what it waits for */
	uint64_t want;
	int64_t deadline;
} clients[MAX_CLIENTS];

static int listener = -1;

static struct {
	char field[64];
	uint64_t value[2];
	bool on;
	unsigned int turn;
} flicker;

const char *type_name(uint32_t type)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (types[i].type == type)
			return types[i].name;
	return "?";
}

int type_number(const char *name)
{
	uint64_t v;

	for (size_t i = 0; i < COUNT(types); i++)
		if (!strcmp(types[i].name, name))
			return types[i].type;
	return parse_number(name, &v) && v <= 0x7fffffff ? (int)v : -1;
}

/* A or A-B */
static bool parse_range(const char *s, uint64_t *lo, uint64_t *hi)
{
	char a[32];
	const char *dash = strchr(s, '-');

	if (!dash)
		return parse_number(s, lo) && (*hi = *lo, true);
	snprintf(a, sizeof(a), "%.*s", (int)(dash - s), s);
	return parse_number(a, lo) && parse_number(dash + 1, hi) && *lo <= *hi;
}

/* One word of a rule: what it matches */
static bool rule_match_word(struct rule *u, const char *key, const char *val)
{
	if (!strcmp(key, "type"))
		return (u->type = type_number(val)) >= 0;
	if (!strcmp(key, "sector"))
		return parse_range(val, &u->lo, &u->hi);
	if (!strcmp(key, "skip"))
		return parse_number(val, &u->skip);
	if (!strcmp(key, "count"))
		return parse_number(val, &u->count);
	return false;
}

/* ... and what it does */
static bool rule_action_word(struct rule *u, const char *key, const char *val)
{
	struct action *a = &u->act;
	uint64_t v = 0, w;

	if (!strcmp(key, "config"))
		return snprintf(a->config, sizeof(a->config), "%s", val) > 0;
	if (!strcmp(key, "status") && !strcmp(val, "none"))
		return a->unwritten = true;
	if (!strcmp(key, "used") && !strcmp(val, "twice"))
		return a->twice = true;
	if (!strcmp(key, "used") && !strcmp(val, "next"))
		return u->next_id = true;
	if (!strcmp(key, "delay")) {
		if (!parse_range(val, &v, &w))
			return false;
		a->delay_lo = v;
		a->delay_hi = w;
		return true;
	}
	if (!parse_number(val, &v))
		return false;
	if (!strcmp(key, "status"))
		return (a->status = v) <= 255;
	if (!strcmp(key, "used"))
		return (a->used_id = v) <= UINT32_MAX;
	if (!strcmp(key, "len"))
		return (a->used_len = v) <= UINT32_MAX;
	if (!strcmp(key, "jump"))
		return (a->jump = v) <= UINT16_MAX;
	if (!strcmp(key, "nr_zones"))
		return (a->nr_zones = v) >= 0;
	return false;
}

static const char *cmd_rule(char *args)
{
	static char err[128];
	struct rule *u = calloc(1, sizeof(*u)), **p = &rules;
	char *word;

	*u = (struct rule){ .type = -1, .hi = UINT64_MAX, .count = UINT64_MAX,
			    .act = { .status = -1, .used_id = -1,
				     .used_len = -1, .nr_zones = -1 } };
	while ((word = strsep(&args, " "))) {
		char *key = strsep(&word, "=");

		if (!*key)
			continue;
		if (!word && !strcmp(key, "hold")) {
			u->act.hold = true;
		} else if (!word && !strcmp(key, "vanish")) {
			u->act.vanish = true;
		} else if (!word || (!rule_match_word(u, key, word) &&
				     !rule_action_word(u, key, word))) {
			snprintf(err, sizeof(err), "rule: don't understand "
				 "%s%s%s", key, word ? "=" : "", word ?: "");
			free(u);
			return err;
		}
	}
	while (*p)
		p = &(*p)->next;
	*p = u;
	return NULL;
}

/* The first rule that matches and isn't used up decides */
void rule_apply(struct req *r)
{
	static const struct action none = {
		.status = -1, .used_id = -1, .used_len = -1, .nr_zones = -1
	};

	r->act = none;
	for (struct rule *u = rules; u; u = u->next) {
		if ((u->type >= 0 && u->type != r->type) || !u->count ||
		    r->sector < u->lo || r->sector > u->hi)
			continue;
		if (u->skip) {
			u->skip--;
			continue;
		}
		u->count--;
		r->act = u->act;
		if (u->next_id)
			r->act.used_id = (r->head + 1) % r->vq->num;
		return;
	}
}

static const char *cmd_clear(char *args)
{
	struct rule *u;

	while ((u = rules)) {
		rules = u->next;
		free(u);
	}
	return NULL;
}

/* release [oldest|newest|random] [N] [hostile] */
static const char *cmd_release(char *args)
{
	const char *which = "oldest";
	uint64_t max = UINT32_MAX;
	bool hostile = false;
	char *word;

	while ((word = strsep(&args, " "))) {
		if (!*word)
			continue;
		if (!strcmp(word, "oldest") || !strcmp(word, "newest") ||
		    !strcmp(word, "random"))
			which = word;
		else if (!strcmp(word, "hostile"))
			hostile = true;
		else if (!parse_number(word, &max))
			return "release [oldest|newest|random] [N] [hostile]";
	}
	device_release(which, max, hostile);
	return NULL;
}

/* set FIELD=VALUE... [quiet] */
static const char *cmd_set(char *args)
{
	bool quiet = false;
	char *word, *err;

	while ((word = strsep(&args, " "))) {
		if (!strcmp(word, "quiet"))
			quiet = true;
		else if (*word && !config_set(word, &err))
			return err;
	}
	if (!quiet)
		dev.transport->config_changed();
	return NULL;
}

/* flicker FIELD A B | flicker off */
static const char *cmd_flicker(char *args)
{
	char a[32], b[32], probe[100], *err;

	if (!strcmp(args, "off")) {
		flicker.on = false;
		return NULL;
	}
	if (sscanf(args, "%63s %31s %31s", flicker.field, a, b) != 3 ||
	    !parse_number(a, &flicker.value[0]) ||
	    !parse_number(b, &flicker.value[1]))
		return "flicker FIELD A B, or flicker off";
	snprintf(probe, sizeof(probe), "%s=%s", flicker.field, a);
	if (!config_set(probe, &err))
		return err;
	flicker.on = true;
	return NULL;
}

/* Called on every turn of the event loop; true: come back soon */
bool control_flicker(void)
{
	if (!flicker.on)
		return false;
	for (int i = 0; i < 100; i++)
		config_write_field(flicker.field,
				   flicker.value[flicker.turn++ & 1]);
	return true;
}

/* queue N stop|start|noirq|irq|kick */
static const char *cmd_queue(char *args)
{
	unsigned int n;
	char what[16];
	struct vq *vq;

	if (sscanf(args, "%u %15s", &n, what) != 2 || n >= dev.nr_queues)
		return "queue N stop|start|noirq|irq";
	vq = &dev.vqs[n];
	if (!strcmp(what, "stop")) {
		vq->stopped = true;
	} else if (!strcmp(what, "start")) {
		vq->stopped = false;
		device_kick(vq);
	} else if (!strcmp(what, "noirq")) {
		vq->noirq = true;
	} else if (!strcmp(what, "irq")) {	/* once, and from now on */
		vq->noirq = false;
		dev.transport->irq(vq);
	} else {
		return "queue N stop|start|noirq|irq";
	}
	return NULL;
}

/* zone SECTOR STATE [WP] */
static const char *cmd_zone(char *args)
{
	unsigned long long sector;
	long long wp = -1;
	char state[16];

	if (sscanf(args, "%llu %15s %lld", &sector, state, &wp) < 2 ||
	    !zone_set(sector, state, wp))
		return "zone SECTOR STATE [WP]";
	return NULL;
}

static void show_zones(FILE *out)
{
	for (unsigned int i = 0; i < dev.nr_zones; i++) {
		struct zone *z = &dev.zones[i];

		fprintf(out, "%llu len=%llu cap=%llu wp=%llu type=%u state=%s\n",
			(unsigned long long)z->start, (unsigned long long)z->len,
			(unsigned long long)z->cap, (unsigned long long)z->wp,
			z->type, zone_state_name(z->state));
	}
}

static bool counter(const char *name, uint64_t *v)
{
	if (!strcmp(name, "held"))
		*v = dev.nr_held;
	else if (!strcmp(name, "delayed"))
		*v = dev.nr_delayed;
	else if (!strcmp(name, "requests"))
		*v = dev.requests;
	else if (!strcmp(name, "answers"))
		*v = dev.answers;
	else if (!strcmp(name, "resets"))
		*v = dev.resets;
	else if (!strcmp(name, "status"))
		*v = dev.status;
	else
		return false;
	return true;
}

static void show_stat(FILE *out)
{
	static const char *const names[] = {
		"held", "delayed", "requests", "answers", "resets", "status"
	};
	uint64_t v = 0;

	for (size_t i = 0; i < COUNT(names); i++) {
		counter(names[i], &v);
		fprintf(out, "%s=%llu\n", names[i], (unsigned long long)v);
	}
	fprintf(out, "features=%#llx\n", (unsigned long long)dev.driver_features);
}

static const char *cmd_show(char *args, FILE *out)
{
	if (!strcmp(args, "zones"))
		show_zones(out);
	else if (!strcmp(args, "stat"))
		show_stat(out);
	else
		return "show stat|zones";
	return NULL;
}

static const char *cmd_mark(char *args)
{
	log_event("\"mark\",\"text\":\"%s\"", args);
	return NULL;
}

static const char *cmd_irq(char *args)
{
	dev.transport->config_changed();
	return NULL;
}

static const char *cmd_quit(char *args)
{
	dev.quit = true;
	return NULL;
}

static const struct {
	const char *name;
	const char *(*run)(char *args);
	const char *help;
} commands[] = {
	{ "rule", cmd_rule,
	  "[type=T] [sector=A[-B]] [skip=N] [count=N] ACTION...: what to do with\n"
	  "      matching requests; the first matching rule decides. Actions:\n"
	  "      status=N (answer with that byte, don't execute) status=none (leave\n"
	  "      the byte unwritten) hold  delay=MS[-MS]  vanish (the process ends)\n"
	  "      used=N|next|twice (wrong ids)  len=N (used length)\n"
	  "      jump=N (used index)  nr_zones=N  config=FIELD=VALUE (and interrupt)" },
	{ "clear", cmd_clear, "forget all rules" },
	{ "release", cmd_release,
	  "[oldest|newest|random] [N] [hostile]: answer held requests;\n"
	  "      hostile: also those of before a reset, into the new ring" },
	{ "set", cmd_set,
	  "FIELD=VALUE... [quiet]: change the config space, and interrupt unless quiet" },
	{ "flicker", cmd_flicker, "FIELD A B | off: write A and B in turn, for ever" },
	{ "queue", cmd_queue,
	  "N stop|start|noirq|irq: stop looking at the ring; keep interrupts back" },
	{ "zone", cmd_zone, "SECTOR STATE [WP]: put a zone into a state" },
	{ "irq", cmd_irq, "a config interrupt for nothing" },
	{ "mark", cmd_mark, "TEXT: a line for the log" },
	{ "quit", cmd_quit, "end the process and destroy the device" },
};

void control_help(FILE *f)
{
	fprintf(f, "\nCommands of the socket and of scripts:\n");
	for (size_t i = 0; i < COUNT(commands); i++)
		fprintf(f, "  %s %s\n", commands[i].name, commands[i].help);
	fprintf(f, "  show stat|zones\n"
		"  wait held|delayed|requests|answers|resets|status=N [SECONDS]\n"
		"\nTypes:");
	for (size_t i = 0; i < COUNT(types); i++)
		fprintf(f, "%s%s", i % 5 ? " " : "\n  ", types[i].name);
	fprintf(f, "\n");
}

/* Runs one line, what it says goes to out; returns what is wrong with it */
const char *control_run(char *line, FILE *out)
{
	const char *err = "no such command (see --help)";
	char *args;

	line[strcspn(line, "#\n")] = '\0';
	line += strspn(line, " \t");
	if (!*line)
		return NULL;
	args = line + strcspn(line, " ");
	if (*args)
		*args++ = '\0';
	if (!strcmp(line, "show"))
		return cmd_show(args, out);
	for (size_t i = 0; i < COUNT(commands); i++)
		if (!strcmp(line, commands[i].name))
			err = commands[i].run(args);
	return err;
}

void control_script(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	const char *err;

	if (!f)
		die("can't read the script %s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		err = control_run(line, stdout);
		if (err)
			die("%s: %s", path, err);
	}
	fclose(f);
}

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(a.sun_path))
		die("the socket's path is longer than %zu bytes: %s",
		    sizeof(a.sun_path) - 1, path);
	strcpy(a.sun_path, path);
	return a;
}

void control_listen(const char *path)
{
	struct sockaddr_un a = address(path);

	unlink(path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(listener, (void *)&a, sizeof(a)) || listen(listener, 8))
		die("can't listen on %s: %s", path, strerror(errno));
}

int control_fds(struct pollfd *p)
{
	int n = 0;

	if (listener >= 0)
		p[n++] = (struct pollfd){ .fd = listener, .events = POLLIN };
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (clients[i].out)
			p[n++] = (struct pollfd){ .fd = clients[i].fd,
						  .events = POLLIN };
	return n;
}

static void accept_client(void)
{
	int fd = accept(listener, NULL, NULL);

	for (int i = 0; fd >= 0 && i < MAX_CLIENTS; i++)
		if (!clients[i].out) {
			clients[i] = (struct client){ .fd = fd,
						      .out = fdopen(fd, "w") };
			return;
		}
	close(fd);
}

/* wait NAME=N [SECONDS] is answered later: control_check_waiters() */
static bool client_wait(struct client *c, char *line)
{
	unsigned long long want;
	unsigned int seconds = 10;
	uint64_t v;

	if (strncmp(line, "wait ", 5))
		return false;
	if (sscanf(line + 5, "%31[a-z]=%llu %u", c->cond, &want, &seconds) < 2 ||
	    !counter(c->cond, &v)) {
		c->cond[0] = '\0';
		fprintf(c->out, "error: wait NAME=N [SECONDS]\n");
		return true;
	}
	c->want = want;
	c->deadline = now_ms() + seconds * 1000LL;
	return true;
}

static void client_input(struct client *c)
{
	ssize_t n = read(c->fd, c->line + c->len, sizeof(c->line) - 1 - c->len);
	char *end;

	if (n <= 0) {
		fclose(c->out);
		c->out = NULL;
		return;
	}
	c->len += n;
	c->line[c->len] = '\0';
	while ((end = strchr(c->line, '\n'))) {
		*end = '\0';
		if (!client_wait(c, c->line)) {
			const char *err = control_run(c->line, c->out);

			if (err)
				fprintf(c->out, "error: %s\n", err);
			else
				fprintf(c->out, "ok\n");
		}
		c->len -= end + 1 - c->line;
		memmove(c->line, end + 1, c->len + 1);
	}
	fflush(c->out);
}

void control_event(int fd)
{
	if (fd == listener) {
		accept_client();
		return;
	}
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (clients[i].out && clients[i].fd == fd)
			client_input(&clients[i]);
}

/* status is waited for as a value, all others count up to theirs */
void control_check_waiters(void)
{
	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *c = &clients[i];
		uint64_t v = 0;

		if (!c->out || !c->cond[0])
			continue;
		counter(c->cond, &v);
		if (!strcmp(c->cond, "status") ? v == c->want : v >= c->want)
			fprintf(c->out, "ok\n");
		else if (now_ms() > c->deadline)
			fprintf(c->out, "error: waited for %s=%llu in vain, it is %llu\n",
				c->cond, (unsigned long long)c->want,
				(unsigned long long)v);
		else
			continue;
		c->cond[0] = '\0';
		fflush(c->out);
	}
}

/* --ctl: send each command, print its answer without the "ok" */
int control_client(const char *path, char **command)
{
	struct sockaddr_un a = address(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char line[1024];
	FILE *in, *out;

	if (connect(fd, (void *)&a, sizeof(a)))
		die("can't reach a device at %s: %s", path, strerror(errno));
	in = fdopen(fd, "r");
	out = fdopen(dup(fd), "w");
	for (; *command; command++) {
		fprintf(out, "%s\n", *command);
		fflush(out);
		for (;;) {
			if (!fgets(line, sizeof(line), in))
				die("the device went away during: %s", *command);
			if (!strcmp(line, "ok\n"))
				break;
			if (!strncmp(line, "error:", 6)) {
				fputs(line, stderr);
				return 1;
			}
			fputs(line, stdout);
		}
	}
	return 0;
}
