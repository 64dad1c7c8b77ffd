/* History is bounded by number and size (update_submit.c, retained.c, ring.c), and here by age: a
 * job that ended longer ago than core_config.history_us leaves, and an event that is older than
 * that. Which ones is decided here, once, and stored by name (REC_HISTORY), so that a replay
 * forgets the same at the same place, whatever is configured by then.
 * What stays, however old it is:
 *   a job that is not over, that a node still has a step of, or whose last scan is awaited
 *   a job that saved where an unfinished one saves: what is known of the checkpoints there, such
 *   as which are suspect, is what that one resumes by
 *   a job that failed, or was slow, on a node that is drained or cordoned now: that is what speaks
 *   against the node
 *   the events of all jobs that stay, of jobs in quarantine, and of such a node
 * What was set aside by another rule is not looked at: idempotency keys last a day (idems.c),
 * measured runs outlive their jobs (anchor.h), samples and incidents leave with their job.
 * Times of what is over do not move with the clock (clock.h). So what was there before the clock
 * leapt ahead is no older than that leap: a controller that began in 1970 forgets nothing when
 * somebody sets its clock. */
#include "daemon/core/rules/history.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/turn.h"
#include "daemon/core/state/live.h"
#include "lib/base/assert.h"

#define EVERY_US (3600 * 1000000LL) /* at the latest: what is a day old more costs nothing */
#define EVERY_PART 24               /* of the age */
#define PORTION 1000                /* jobs, and events, of one turn */

struct pass {
	const struct core *core;
	int64_t before, leapt;
	const char **dirs; /* where unfinished jobs save, sorted */
	size_t n_dirs;
};

static int64_t every(const struct core *c)
{
	return MO_MIN(EVERY_US, MO_MAX(c->config.history_us / EVERY_PART, 1));
}

static bool too_old(const struct pass *p, int64_t time)
{
	return time != MO_NONE && MO_MAX(time, p->leapt) <= p->before;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_dir(struct pass *p, const char *dir)
{
	if (dir)
		p->dirs[p->n_dirs++] = dir;
}

static void find_dirs(struct pass *p)
{
	const struct core *c = p->core;

	p->dirs = mo_alloc_array(3 * c->n_unfinished + 1, sizeof(*p->dirs));
	for (size_t i = 0; i < c->n_unfinished; i++) {
		const struct job_saves *k = &job_find(&c->state, c->unfinished[i])->saves;

		add_dir(p, k->dir);
		add_dir(p, k->real);
		add_dir(p, k->by_config);
	}
	qsort(p->dirs, p->n_dirs, sizeof(*p->dirs), by_name);
}

static bool dir_in_use(const struct pass *p, const char *dir)
{
	return dir && bsearch(&dir, p->dirs, p->n_dirs, sizeof(*p->dirs), by_name);
}

static bool drained(const struct pass *p, const char *node)
{
	const struct node *n = node_find(&p->core->state, node);

	return n && n->drain.asked;
}

static bool is_evidence(const struct pass *p, const struct job *j)
{
	for (size_t i = 0; i < j->n_incidents; i++)
		if (drained(p, j->incidents[i].node))
			return true;
	for (size_t i = 0; i < j->straggler.n_found; i++)
		if (drained(p, j->straggler.found[i].node))
			return true;
	return false;
}

static bool job_leaves(const struct pass *p, const struct job *j)
{
	const struct job_saves *k = &j->saves;

	return job_state_final(j->state) && too_old(p, j->ended_at) && j->n_steps == 0 &&
	       !j->scan.at_end && !dir_in_use(p, k->dir) && !dir_in_use(p, k->real) &&
	       !dir_in_use(p, k->by_config) && !is_evidence(p, j);
}

static bool event_leaves(const struct pass *p, const struct rec_history *k, const struct event *e)
{
	const struct state *s = &p->core->state;

	if (!too_old(p, e->time) || drained(p, e->node))
		return false;
	return e->job == MO_NONE || ids_has(k->jobs, k->n_jobs, e->job) ||
	       (!job_find(s, e->job) && !job_is_out(s, e->job));
}

void history_begin(struct turn *t)
{
	struct core *c = t->core;

	c->history_at = c->config.history_us ? t->now + every(c) : INT64_MAX;
}

void history_pass(struct turn *t)
{
	struct core *c = t->core;
	const struct state *s = &c->state;
	struct pass p = { c, t->now - c->config.history_us, s->clock_leapt, NULL, 0 };
	struct rec_history *k;
	struct record r;

	mo_assert(c->config.history_us > 0);
	record_init(&r, REC_HISTORY);
	k = r.history;
	find_dirs(&p);
	for (size_t i = 0; i < s->n_jobs && k->n_jobs < PORTION; i++)
		if (job_leaves(&p, s->jobs[i]))
			mo_ints_add(&k->jobs, &k->n_jobs, s->jobs[i]->id);
	for (size_t i = 0; i < s->n_events && k->n_events < PORTION; i++)
		if (event_leaves(&p, k, &s->events[i]))
			mo_ints_add(&k->events, &k->n_events, s->events[i].seq);
	free(p.dirs);
	c->history_at = k->n_jobs == PORTION || k->n_events == PORTION ? t->now : t->now + every(c);
	if (k->n_jobs || k->n_events)
		turn_emit(t, &r);
	else
		mo_desc_done(&record_desc, &r);
}
