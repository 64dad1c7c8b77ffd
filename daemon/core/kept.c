/* What a job's record keeps of its configuration: the recipe as it was submitted, which may hold
 * what was read of an experiment, and what its node read of it (job.config). It is tens of kB each,
 * and a hundred thousand finished jobs are kept. Those of finished jobs are kept up to
 * MO_KEPT_TEXTS_MAX bytes together: the one that ended first gives its own up, all else of it stays.
 * Small ones always stay. Those of unfinished jobs may be MO_ACTIVE_TEXTS_MAX bytes: one more submit
 * is refused then (jobs.c), and what a node reads beyond is not kept.
 * Called by update.c alone, so that a replay ends where the controller was. */
#include "daemon/core/inner.h"

#include <string.h>

#include "lib/model/limits.h"

#define SMALL 4096

static size_t bytes_of(const struct job *j)
{
	const char *recipe = j->spec.recipe_text;

	return (recipe ? strlen(recipe) : 0) + (j->config ? strlen(j->config) : 0);
}

/* The place in c->kept of what ended then: at a start jobs come by their id. */
static size_t place_of_end(const struct core *c, const struct job *j)
{
	size_t from = 0, to = c->n_kept;

	while (from < to) {
		size_t at = from + (to - from) / 2;
		const struct job *k = job_find(&c->state, c->kept[at]);

		if (k->ended_at < j->ended_at || (k->ended_at == j->ended_at && k->id < j->id))
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static void let_go(struct job *j)
{
	j->let_go = (j->let_go == MO_NONE ? 0 : j->let_go) + (int64_t)bytes_of(j);
	mo_str_set(&j->spec.recipe_text, NULL);
	mo_str_set(&j->config, NULL);
}

void kept_leave(struct core *c, struct job *j)
{
	size_t at = 0;

	if (!j->kept_bytes)
		return;
	while (at < c->n_kept && c->kept[at] != j->id)
		at++;
	if (at < c->n_kept) {
		memmove(c->kept + at, c->kept + at + 1, (--c->n_kept - at) * sizeof(*c->kept));
		c->kept_bytes -= (int64_t)j->kept_bytes;
	} else {
		c->active_bytes -= (int64_t)j->kept_bytes;
	}
	j->kept_bytes = 0;
}

static void count_finished(struct core *c, struct job *j)
{
	size_t at = place_of_end(c, j);

	if (j->kept_bytes <= SMALL) {
		j->kept_bytes = 0;
		return;
	}
	mo_ints_add(&c->kept, &c->n_kept, j->id);
	memmove(c->kept + at + 1, c->kept + at, (c->n_kept - 1 - at) * sizeof(*c->kept));
	c->kept[at] = j->id;
	c->kept_bytes += (int64_t)j->kept_bytes;
	while (c->kept_bytes > MO_KEPT_TEXTS_MAX) {
		struct job *oldest = job_find(&c->state, c->kept[0]);

		kept_leave(c, oldest);
		let_go(oldest);
	}
}

void kept_count(struct core *c, struct job *j)
{
	kept_leave(c, j);
	j->kept_bytes = bytes_of(j);
	if (job_state_final(j->state)) {
		count_finished(c, j);
		return;
	}
	c->active_bytes += (int64_t)j->kept_bytes;
	if (c->active_bytes > MO_ACTIVE_TEXTS_MAX && j->config) {
		size_t n = strlen(j->config);

		j->let_go = (int64_t)n;
		c->active_bytes -= (int64_t)n;
		j->kept_bytes -= n;
		mo_str_set(&j->config, NULL);
	}
}
