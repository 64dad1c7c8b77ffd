/* Jobs in quarantine: taken out of the state when a stored record of theirs cannot be taken, put
 * back later. Between turns only, so every index is made anew. */
#include "daemon/core/core.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/aside.h"
#include "daemon/core/state/live.h"
#include "daemon/core/update/index.h"

bool core_is_out(const struct core *c, int64_t job)
{
	return job_is_out(&c->owned, job);
}

/* The state as if it came from a snapshot: what is derived from it is made anew. */
static void reload(struct core *c)
{
	struct state s = c->owned;

	s.holders = NULL;
	s.n_holders = 0;
	free(c->owned.holders);
	c->owned.holders = NULL;
	c->owned.n_holders = 0;
	core_lives_clear(c);
	mo_desc_init(&state_desc, &c->owned);
	core_load(c, &s);
	c->n_dirty = c->n_fresh = 0;
	c->queue_dirty = true;
}

void core_take_out(struct core *c, int64_t job, struct job *ret)
{
	struct state *s = &c->owned;
	size_t at;

	if (job_at(s, job, &at)) {
		if (ret)
			mo_desc_copy(&job_desc, ret, s->jobs[at]);
		mo_desc_free(&job_desc, mo_apart_take(s->jobs, &s->n_jobs, at));
	}
	ids_add(&s->aside, &s->n_aside, job);
	s->next_job = MO_MAX(s->next_job, job + 1);
	reload(c);
}

void core_epochs_lost(struct core *c, int64_t n)
{
	c->owned.epoch += n;
}

static bool share_gpu(const struct place *a, const struct place *b)
{
	for (size_t i = 0; i < a->n_gpus; i++)
		for (size_t k = 0; k < b->n_gpus && mo_streq(a->node, b->node); k++)
			if (a->gpus[i] == b->gpus[k])
				return true;
	return false;
}

/* What another job got meanwhile, which this one holds too; NULL = nothing. */
static const char *taken_by(const struct job *j, const struct job *other)
{
	if (job_state_final(j->state) || job_state_final(other->state))
		return NULL;
	for (size_t i = 0; i < j->run.n_places; i++)
		for (size_t k = 0; k < other->run.n_places; k++)
			if (share_gpu(&j->run.places[i], &other->run.places[k]))
				return "GPUs";
	return j->saves.dir && other->attempt > 0 && mo_streq(j->saves.dir, other->saves.dir)
		       ? "checkpoint.dir"
		       : NULL;
}

int core_put_back(struct core *c, struct job *job, struct mo_error *err)
{
	struct state *s = &c->owned;
	struct job *j;
	size_t at;

	if (!core_is_out(c, job->id) || job_at(s, job->id, &at))
		return mo_error_set(err, -EINVAL, "j-%lld is not in quarantine",
				    (long long)job->id);
	for (size_t i = 0; i < s->n_jobs; i++) {
		const char *what = taken_by(job, s->jobs[i]);
		if (what)
			return mo_error_set(err, -EINVAL,
					    "its %s are used by j-%lld by now: put it back when "
					    "that job has ended",
					    what, (long long)s->jobs[i]->id);
	}
	j = MO_INSERT(s, jobs, at, &job_desc);
	*j = *job;
	mo_desc_init(&job_desc, job);
	ids_remove(s->aside, &s->n_aside, j->id);
	reload(c);
	return 0;
}
