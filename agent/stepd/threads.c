/* Checks the threads of running ranks: a library may have set an affinity of its own, an
 * operator may have changed the control group. Some seconds after the start, when most threads
 * exist, and once more at the rank's first iteration, when all do. A finding is reported, never
 * acted on. Costs one system call per thread; numa_maps is not read again: it would stop the
 * rank's page faults. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "agent/stepd/threads.h"
#include "agent/stepd/sources.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"

#define FIRST_CHECK_US 5000000
#define THREADS_MAX 4096 /* of one rank: more are not checked */
#define STRAYS_MAX 256
#define CPUS_MAX 8192 /* the kernel's own limit */
#define SET_BYTES (CPUS_MAX / 8)

struct pass {
	int task_fd;
	cpu_set_t *wanted, *have;
	struct stray_thread *strays;
	size_t n_strays, n_threads;
};

static char *list_of(const cpu_set_t *set, size_t size)
{
	_cleanup_(mo_idset_done) struct mo_idset ids = { 0 };
	for (size_t cpu = 0; cpu < size * 8; cpu++)
		if (CPU_ISSET_S(cpu, size, set))
			mo_idset_add(&ids, cpu);
	return mo_idset_format(&ids);
}

static void name_of(const struct pass *l, pid_t tid, char name[16])
{
	char path[32];
	snprintf(path, sizeof(path), "%d/comm", (int)tid);
	_cleanup_(mo_closep) int fd = mo_open_at(l->task_fd, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? -1 : mo_read(fd, name, 15);
	name[n > 0 ? n : 0] = '\0';
	for (char *c = name; *c; c++)
		if (!isprint((unsigned char)*c)) /* the line's end too */
			*c = *c == '\n' ? '\0' : '?';
}

static void check_thread(struct pass *l, pid_t pid, pid_t tid)
{
	memset(l->have, 0, SET_BYTES);
	if (mo_proc_cpus(tid, l->have, SET_BYTES) < 0) /* it ended */
		return;
	l->n_threads++;
	if (memcmp(l->have, l->wanted, SET_BYTES) == 0 || l->n_strays == STRAYS_MAX)
		return;
	bool inside = true;
	for (size_t i = 0; i < SET_BYTES && inside; i++)
		inside = (((unsigned char *)l->have)[i] & ~((unsigned char *)l->wanted)[i]) == 0;
	if (inside && tid != pid) /* a library that keeps to the rank's cpus may divide them */
		return;
	struct stray_thread *t = &l->strays[l->n_strays++];
	t->cpus = list_of(l->have, SET_BYTES);
	t->is_main = tid == pid;
	name_of(l, tid, t->name);
}

static bool set_wanted(struct pass *l, const struct rank_bind *want)
{
	_cleanup_(mo_idset_done) struct mo_idset ids = { 0 };
	if (mo_idset_parse(want->cpus, &ids) < 0)
		return false;
	for (int64_t cpu = mo_idset_next(&ids, 0); cpu >= 0; cpu = mo_idset_next(&ids, cpu + 1))
		CPU_SET_S((size_t)cpu, SET_BYTES, l->wanted);
	return true;
}

/* Reports it when it differs from what was reported of the rank before. */
static void tell(struct stepd *s, struct rank *r, char *found)
{
	_cleanup_(mo_freep) char *more = found, *text = NULL;
	const char *before = r->bind_note;
	if (more)
		text = mo_printf("%s%s%s", before ? before : "", before ? "; " : "", more);
	else if (before)
		text = mo_strdup(before);
	if (mo_streq(more, r->threads_note))
		return;
	mo_str_set(&r->threads_note, more);
	struct note n;
	mo_desc_init(&note_desc, &n);
	n.rank = r->rank;
	n.bind_verified = r->bind_verified;
	n.bind_note = TAKE_PTR(text);
	stepd_queue(s, SE_BINDING, &n);
}

static void check_rank(struct stepd *s, struct rank *r)
{
	const struct rank_bind *want = &s->spool.binds[r->local];
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/task", (int)r->pid), *mems = NULL;
	_cleanup_(mo_freep) cpu_set_t *wanted = mo_alloc(SET_BYTES), *have = mo_alloc(SET_BYTES);
	_cleanup_(mo_freep) struct stray_thread *strays =
		mo_alloc_array(STRAYS_MAX, sizeof(*strays));
	struct pass l = { .wanted = wanted, .have = have, .strays = strays };
	_cleanup_(mo_dir_freep) struct mo_dir *dir = mo_dir_open(AT_FDCWD, path, 0);
	int64_t tid;
	if (!dir)
		return;
	l.task_fd = mo_dir_fd(dir);
	if (set_wanted(&l, want)) {
		for (const char *name; l.n_threads < THREADS_MAX && (name = mo_dir_next(dir));)
			if (mo_parse_i64(name, 1, INT32_MAX, &tid) == 0)
				check_thread(&l, r->pid, (pid_t)tid);
		mems = want->mem_nodes ? mo_proc_status(r->pid, "Mems_allowed_list") : NULL;
		tell(s, r, bind_judge_threads(want, l.strays, l.n_strays, l.n_threads, mems));
	}
	for (size_t i = 0; i < l.n_strays; i++)
		free(l.strays[i].cpus);
}

static bool is_watched(const struct stepd *s, const struct rank *r)
{
	const struct rank_bind *want = &s->spool.binds[r->local];
	return want->cpus && !want->simulated && !mo_streq(s->spool.launch.bind.verify, "off");
}

void threads_begin(struct stepd *s, struct rank *r)
{
	if (!is_watched(s, r))
		return;
	r->check_at_us = mo_clock_boot_us() + FIRST_CHECK_US;
	stepd_tick_in(s, FIRST_CHECK_US);
}

void threads_tick(struct stepd *s)
{
	int64_t now = mo_clock_boot_us(), next = INT64_MAX;
	for (size_t i = 0; i < s->n_ranks; i++) {
		struct rank *r = &s->ranks[i];
		struct rank_progress p = { .iteration = MO_NONE };
		if (!r->started || r->pid <= 0 || !is_watched(s, r))
			continue;
		if (!r->iterated)
			stepd_core_progress(s->core, i, &p);
		bool first =
			p.iteration != MO_NONE && p.iteration > MO_MAX(s->spool.launch.resume, 0);
		bool due = r->check_at_us && now >= r->check_at_us;
		r->iterated = r->iterated || first;
		if (due)
			r->check_at_us = 0;
		if (first || due)
			check_rank(s, r);
		if (r->check_at_us)
			next = MO_MIN(next, r->check_at_us);
	}
	if (next != INT64_MAX)
		stepd_tick_in(s, next - now);
}
