/* See stuck.h. */
#include "agent/stuck.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/core/agent/stuck_words.h"
#include "lib/base/desc.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"
#include "lib/loop/ready.h"

#define LINE_MAX_BYTES 512
#define PATH_BYTES 4096
#define CMDLINE_MAX (256 * 1024)

/* ---- where one hangs */

/* Calls whose first argument is a descriptor, and whether a path relative to it is the second. */
static const struct stuck_number calls[] = {
	{ SYS_openat, true },    { SYS_newfstatat, true }, { SYS_readlinkat, true },
	{ SYS_faccessat, true }, { SYS_faccessat2, true }, { SYS_statx, true },
	{ SYS_read, false },     { SYS_pread64, false },   { SYS_getdents64, false },
	{ SYS_fstat, false },    { SYS_close, false },
};

static char *link_of(pid_t pid, const char *what)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/%s", (int)pid, what);
	char target[PATH_BYTES];
	ssize_t n = mo_readlink(path, target, sizeof(target) - 1);
	return n > 0 ? mo_strndup(target, (size_t)n) : NULL;
}

/* A text in its memory. */
static char *text_of(pid_t pid, uint64_t address)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/mem", (int)pid);
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_RDONLY, 0);
	char text[PATH_BYTES];
	ssize_t n = fd < 0 ? -1 : mo_read_at(fd, text, sizeof(text), (off_t)address);
	return n > 0 && memchr(text, 0, (size_t)n) && *text ? mo_strdup(text) : NULL;
}

char *stuck_file(pid_t pid)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/syscall", (int)pid);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct stuck_call c;

	if (mo_read_file(path, LINE_MAX_BYTES, &b) < 0 || !b.data ||
	    !stuck_call_read(b.data, calls, ELEMENTSOF(calls), &c))
		return NULL;
	_cleanup_(mo_freep) char *text = c.has_path ? text_of(pid, c.path_address) : NULL;
	if (text && *text == '/')
		return TAKE_PTR(text);
	_cleanup_(mo_freep) char *what = c.fd < 0 ? mo_strdup("cwd") : mo_printf("fd/%d", c.fd),
				 *base = link_of(pid, what);
	if (!c.has_path)
		return TAKE_PTR(base);
	return text && base ? mo_path(base, "%s", text) : NULL;
}

/* ---- orphans */

static void orphan_free(struct orphan *o)
{
	mo_ready_free(o->gone);
	mo_close(o->fd);
	free(o->at);
	free(o->file);
	free(o->area);
	free(o->object);
	free(o);
}

void orphans_drop(struct orphans *all, struct orphan *o)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i] == o) {
			all->items[i] = all->items[--all->n];
			orphan_free(o);
			return;
		}
}

void orphans_done(struct orphans *o)
{
	while (o->n > 0)
		orphan_free(o->items[--o->n]);
	free(o->items);
	*o = (struct orphans){ 0 };
}

static void on_end(void *arg)
{
	struct orphan *o = arg;
	o->ended(o->arg, o); /* which drops it */
}

static char *comm_of(pid_t pid)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/comm", (int)pid);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	return mo_read_file(path, LINE_MAX_BYTES, &b) == 0 && b.data
		       ? mo_strndup(b.data, strcspn(b.data, "\n"))
		       : NULL;
}

static bool ours(pid_t pid)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d", (int)pid);
	struct stat st;
	return mo_stat(path, &st) == 0 && st.st_uid == mo_uid();
}

struct pass {
	sd_event *loop;
	const char *root;
	void (*ended)(void *arg, struct orphan *o);
	void *arg;
	struct orphans *found;
};

/* One that a person started by hand is none: a helper's agent takes it along with SIGKILL
 * (PR_SET_PDEATHSIG), which stays pending in one that hangs. The start time before and after:
 * what was read is of this process. */
static int visit(void *arg, pid_t pid)
{
	struct pass *p = arg;
	struct mo_proc before, after;
	_cleanup_(mo_freep) char *comm = comm_of(pid), *parent = NULL, *path = NULL;
	_cleanup_(mo_buf_done) struct mo_buf line = { 0 };
	struct helper_words words;
	if (!(mo_streq(comm, "moe-discover") || mo_streq(comm, "moe-probe")) || !ours(pid) ||
	    mo_proc_read(pid, &before) < 0 || before.state == 'Z' || before.state == 'X' ||
	    !mo_proc_sigkill_pending(pid))
		return 0;
	parent = comm_of(before.ppid);
	path = mo_printf("/proc/%d/cmdline", (int)pid);
	if (mo_read_file(path, CMDLINE_MAX, &line) < 0 || !line.len || line.data[line.len - 1])
		return 0;
	helper_words_read(line.data, line.len, &words);
	if (!helper_is_orphan(comm, parent, &words, p->root))
		return 0;
	struct orphan *o = mo_alloc(sizeof(*o));
	*o = (struct orphan){ .pid = pid,
			      .at = mo_strdup(words.at),
			      .area = mo_strdup(words.area),
			      .object = mo_strdup(words.object),
			      .fd = mo_proc_open(pid),
			      .ended = p->ended,
			      .arg = p->arg };
	bool same = o->fd >= 0 && mo_proc_read(pid, &after) == 0 &&
		    after.start_time == before.start_time;
	if (!same || mo_ready_new(p->loop, o->fd, on_end, o, &o->gone) < 0) {
		orphan_free(o);
		return 0;
	}
	*MO_GROW(p->found->items, p->found->n) = o;
	return 0;
}

int orphans_find(sd_event *loop, const char *root, void (*ended)(void *arg, struct orphan *o),
		 void *arg, struct orphans *ret)
{
	struct pass p = { .loop = loop, .root = root, .ended = ended, .arg = arg, .found = ret };
	return mo_proc_each(visit, &p);
}
