/* A job comes, and the oldest that are over go: see update_submit.h. */
#include "daemon/core/update/update_submit.h"

#include <errno.h>

#include "daemon/core/state/live.h"
#include "daemon/core/state/shared_words.h"
#include "daemon/core/update/claims.h"
#include "daemon/core/update/idems.h"
#include "daemon/core/update/retained.h"
#include "daemon/core/update/slots.h"
#include "daemon/core/update/update_history.h"
#include "lib/model/limits.h"

#define FULL_HISTORY 1000 /* the newest jobs that keep all samples and ranks */
#define THIN_SAMPLES 200  /* of an older finished job */

static void job_init(struct core *c, struct job *j, int64_t id, const struct submit *spec,
		     int64_t now)
{
	j->id = id;
	shared_pool_copy(&c->shared, &j->spec, spec);
	words_lend_all(&j->spec);
	j->saves.dir = recipe_save_dir(&spec->recipe);
	j->state = JOB_QUEUED;
	tally_job(c, j->state, 1);
	j->intent = INTENT_NONE;
	j->counts.dead = j->counts.trouble = j->counts.exited = j->counts.silent =
		j->counts.drained = j->counts.forgotten = 0;
	j->attempt = j->restarts = j->scan.attempt = j->streak.same = j->streak.ports_busy =
		j->streak.cycles = j->counts.started = j->waterfall.stage = j->verify.serial =
			j->saves.every = j->saves.n = 0;
	j->created_at = j->state_since = j->queued_since = j->ledger_at = now;
	j->not_before = 0;
	j->run.resume = -1;
	for (int i = 0; i < _GPU_CATEGORY_N; i++)
		mo_ints_add(&j->ledger, &j->n_ledger, 0);
}

/* An old finished job keeps its row and a coarse curve. */
static void thin_history(struct core *c)
{
	struct state *s = &c->owned;
	struct job *j = s->n_jobs > FULL_HISTORY ? s->jobs[s->n_jobs - 1 - FULL_HISTORY] : NULL;
	size_t retained = 0, stride;

	if (!j || !job_state_final(j->state) || j->progress.n_samples <= THIN_SAMPLES)
		return;
	stride = (j->progress.n_samples + THIN_SAMPLES - 1) / THIN_SAMPLES;
	for (size_t i = 0; i < j->progress.n_samples; i++)
		if ((j->progress.n_samples - 1 - i) % stride == 0)
			j->progress.samples[retained++] =
				j->progress.samples[i]; /* samples own nothing */
	j->progress.n_samples = retained;
	mo_vec_clear(&rank_desc, (void **)&j->run.ranks, &j->run.n_ranks);
	core_beats_drop(c, j->id);
}

/* Finished jobs above the limit go in one sweep of a sixteenth, oldest first. */
static void prune_history(struct core *c)
{
	struct state *s = &c->owned;
	size_t drop = s->n_jobs > MO_JOBS_RETAINED_MAX ? MO_JOBS_RETAINED_MAX / 16 : 0,
	       retained = 0;

	if (drop == 0)
		return;
	for (size_t i = 0; i < s->n_jobs; i++) {
		if (drop && job_state_final(s->jobs[i]->state) && s->jobs[i]->n_steps == 0) {
			history_free(c, s->jobs[i]);
			drop--;
		} else {
			s->jobs[retained++] = s->jobs[i];
		}
	}
	s->n_jobs = retained;
}

int update_submit(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;
	struct job *j;

	if (r->job < s->next_job)
		return -EINVAL;
	idem_add(c, r->submit, r->job, r->time);
	j = MO_INSERT(s, jobs, s->n_jobs, &job_desc);
	job_init(c, j, r->job, r->submit, r->time);
	retained_count(c, j);
	s->next_job = r->job + 1;
	ids_add(&c->unfinished, &c->n_unfinished, r->job);
	claims_add_job(c, j);
	ids_add(&c->fresh, &c->n_fresh, r->job);
	thin_history(c);
	prune_history(c);
	return 0;
}
