/* Everything that the ranks started: killed until nothing is left, and proved empty. stepd is
 * the subreaper, so every descendant stays its descendant, whatever it forks, renames or
 * setsid()s: waitid(P_ALL) = ECHILD together with `populated 0` of the cgroup is proof. The
 * cgroup is an accelerator and a second net, never needed for the proof. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/stepd/tree.h"
#include "agent/stepd/process.h"
#include "agent/stepd/sources.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"

#define KILL_FIRST_US 2000 /* most trees are gone by then */
#define KILL_MAX_US 500000
#define STUCK_AFTER_US 5000000 /* D state with SIGKILL pending for that long is reported */
/* of one kill: each finds what was forked during the one before */
#define PASSES_MAX 16

struct process {
	pid_t pid, ppid;
	int64_t start_time;
	char state;
	bool ours;
};
struct table {
	struct process *items;
	size_t n;
};

static int table_add(void *arg, pid_t pid)
{
	struct table *t = arg;
	struct mo_proc p;
	if (mo_proc_read(pid, &p) < 0)
		return 0;
	struct process *e = MO_GROW(t->items, t->n);
	*e = (struct process){
		.pid = p.pid, .ppid = p.ppid, .start_time = p.start_time, .state = p.state
	};
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Whether the walk up the parents ends at this process. A chain is never longer than the table
 * (pids may be reused between two reads: no endless loop). */
static bool descends(const struct table *t, const struct process *p)
{
	pid_t self = mo_proc_self();
	for (size_t i = 0; p && i < t->n; i++) {
		if (p->ppid == self)
			return true;
		struct process key = { .pid = p->ppid };
		p = bsearch(&key, t->items, t->n, sizeof(key), by_pid);
	}
	return false;
}

static void table_read(struct table *t)
{
	mo_proc_each(table_add, t);
	if (t->n == 0)
		return;
	qsort(t->items, t->n, sizeof(*t->items), by_pid);
	for (size_t i = 0; i < t->n; i++)
		t->items[i].ours = descends(t, &t->items[i]);
}

size_t tree_kill_descendants(void)
{
	struct table t = { 0 };
	size_t killed = 0;
	table_read(&t);
	for (size_t i = 0; i < t.n; i++)
		if (t.items[i].ours && t.items[i].state != 'Z' && t.items[i].state != 'X')
			killed += (size_t)mo_proc_kill(t.items[i].pid, t.items[i].start_time);
	free(t.items);
	return killed;
}

static int cgroup_write(const struct stepd *s, const char *file, const char *text)
{
	_cleanup_(mo_freep) char *path = mo_path(s->cgroup, "%s", file);
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_WRONLY, 0);
	if (fd < 0)
		return -errno;
	return mo_write_all(fd, text, strlen(text));
}

/* Value of "KEY N" in a cgroup file, or fallback. */
static int64_t cgroup_value(const struct stepd *s, const char *file, const char *key,
			    int64_t fallback)
{
	_cleanup_(mo_freep) char *path = mo_path(s->cgroup, "%s", file);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (mo_read_file(path, 64 * 1024, &b) < 0 || !b.data)
		return fallback;
	size_t n = strlen(key);
	for (const char *line = b.data; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		int64_t v;
		_cleanup_(mo_freep) char *word =
			strncmp(line, key, n) == 0 && line[n] == ' '
				? mo_strndup(line + n + 1, strcspn(line + n + 1, "\n"))
				: NULL;
		if (word && mo_parse_i64(word, 0, INT64_MAX, &v) == 0)
			return v;
	}
	return fallback;
}

int64_t tree_oom_kills(const struct stepd *s)
{
	return s->cgroup ? cgroup_value(s, "memory.events", "oom_kill", 0) : 0;
}

bool tree_is_empty(struct stepd *s)
{
	siginfo_t si = { 0 };
	if (mo_proc_wait(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD)
		return false;
	return !s->cgroup || cgroup_value(s, "cgroup.events", "populated", 0) == 0;
}

void tree_check_empty(struct stepd *s)
{
	if (!s->killing || s->empty_reported || !tree_is_empty(s))
		return;
	s->empty_reported = true;
	stepd_queue(s, SE_EMPTY, NULL);
}

/* Main pids first: they hold GPUs and ports, and their peers' death is what everybody waits for. */
void tree_kill(struct stepd *s)
{
	process_signal_ranks(s, SIGKILL);
	if (!s->killing) {
		s->killing = true;
		s->kill_since_us = mo_clock_boot_us();
		s->kill_step_us = KILL_FIRST_US;
	}
	s->empty_reported = false;
	if (s->cgroup)
		cgroup_write(s, "cgroup.kill", "1"); /* Linux 5.14; the passes below do without */
	s->kill_next_us = mo_clock_boot_us() + s->kill_step_us;
	stepd_tick_in(s, s->kill_step_us);
}

static void tell_stuck(struct stepd *s)
{
	struct table t = { 0 };
	table_read(&t);
	for (size_t i = 0; i < t.n; i++) {
		if (!t.items[i].ours || t.items[i].state != 'D' ||
		    !mo_proc_sigkill_pending(t.items[i].pid))
			continue;
		struct note n;
		mo_desc_init(&note_desc, &n);
		n.pid = t.items[i].pid;
		n.start_time = t.items[i].start_time;
		n.text = mo_printf("process %d is in uninterruptible sleep with SIGKILL pending",
				   (int)n.pid);
		stepd_queue(s, SE_STUCK, &n);
	}
	free(t.items);
}

void tree_tick(struct stepd *s)
{
	int64_t now = mo_clock_boot_us();
	if (!s->killing || s->empty_reported)
		return;
	if (now >= s->kill_next_us) {
		size_t passes = 0;
		while (passes++ < PASSES_MAX && tree_kill_descendants() > 0)
			continue;
		if (now - s->kill_since_us > STUCK_AFTER_US)
			tell_stuck(s);
		s->kill_step_us = MO_MIN(s->kill_step_us * 2, KILL_MAX_US);
		s->kill_next_us = now + s->kill_step_us;
	}
	stepd_tick_in(s, MO_MAX(s->kill_next_us - now, 0));
}

static char *unit_cgroup(void)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (mo_read_file("/proc/self/cgroup", 64 * 1024, &b) < 0 || !b.data)
		return NULL;
	const char *own = strncmp(b.data, "0::", 3) == 0 ? b.data : strstr(b.data, "\n0::");
	own = own ? strstr(own, "::") + 2 : NULL;
	return own ? mo_printf("/sys/fs/cgroup%.*s", (int)strcspn(own, "\n"), own) : NULL;
}

/* Of the unit: this process sits in `sup`, so that its parent may hand on controllers. */
static int leave_base(const char *base)
{
	_cleanup_(mo_freep) char *sup = mo_path(base, "sup");
	_cleanup_(mo_freep) char *procs = mo_path(sup, "cgroup.procs");
	if (mo_mkdir(sup, 0755) < 0 && errno != EEXIST)
		return -errno;
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, procs, O_WRONLY, 0);
	return fd < 0 ? -errno : mo_write_all(fd, "0\n", 2);
}

/* The agent made one for the ranks. Under systemd the unit's own cgroup is delegated to us: we
 * sit in `sup`, ranks in `ranks`, as inner cgroups hold no processes. */
static void open_cgroup(struct stepd *s)
{
	bool unit = mo_streq(s->spool.cgroup, "unit");
	_cleanup_(mo_freep) char *base = unit ? unit_cgroup() : mo_strdup(s->spool.cgroup);
	if (!base || (unit && leave_base(base) < 0))
		return;
	_cleanup_(mo_freep) char *ranks = unit ? mo_path(base, "ranks") : TAKE_PTR(base);
	_cleanup_(mo_freep) char *procs = mo_path(ranks, "cgroup.procs");
	if (unit && mo_mkdir(ranks, 0755) < 0 && errno != EEXIST)
		return;
	s->cgroup_fd = mo_open_at(AT_FDCWD, ranks, O_PATH | O_DIRECTORY, 0);
	s->cgroup_procs_fd = mo_open_at(AT_FDCWD, procs, O_WRONLY, 0);
	if (s->cgroup_procs_fd >= 0)
		s->cgroup = TAKE_PTR(ranks);
}

/* The controller is handed on by the cgroup above, where that was not done yet; without it there is
 * no such file. */
static void limit(const struct stepd *s, const char *controller, const char *file, int64_t most)
{
	_cleanup_(mo_freep) char *text = mo_printf("%lld", (long long)most);
	_cleanup_(mo_freep) char *add = mo_printf("+%s", controller);
	int r = -ENOENT;
	if (most < 0)
		return;
	if (s->cgroup) {
		cgroup_write(s, "../cgroup.subtree_control", add);
		r = cgroup_write(s, file, text);
	}
	if (r < 0)
		mo_log(MO_WARNING, NULL,
		       &(struct mo_log_where){ .job = s->spool.launch.job,
					       .attempt = s->spool.launch.attempt,
					       .rank = -1 },
		       "the node's limit %s = %s of this step is not in force: %s", file, text,
		       s->cgroup ? strerror(-r) : "it has no control group of its own");
}

void tree_open_cgroup(struct stepd *s)
{
	s->cgroup_fd = s->cgroup_procs_fd = -1;
	open_cgroup(s);
	limit(s, "memory", "memory.max", s->spool.memory_bytes);
	limit(s, "pids", "pids.max", s->spool.pids);
}

void tree_close(struct stepd *s)
{
	s->cgroup_fd = mo_close(s->cgroup_fd);
	s->cgroup_procs_fd = mo_close(s->cgroup_procs_fd);
	if (!s->cgroup)
		return;
	mo_remove_at(AT_FDCWD, s->cgroup, AT_REMOVEDIR);
	char *slash = strrchr(s->spool.cgroup, '/');
	/* not of a unit: made by the agent, below a directory of its own that goes with its last
	 * step */
	if (slash) {
		*slash = '\0';
		mo_remove_at(AT_FDCWD, s->spool.cgroup, AT_REMOVEDIR);
	}
	free(s->cgroup);
	s->cgroup = NULL;
}
