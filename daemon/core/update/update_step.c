/* What becomes of an attempt's step on one node: see update_step.h. */
#include "daemon/core/update/update_step.h"

#include <errno.h>

#include "daemon/core/state/live.h"
#include "daemon/core/update/attempt.h"
#include "daemon/core/update/doubt.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/retained.h"
#include "daemon/core/update/update_notes.h"

int update_accept(struct core *c, const struct record *r)
{
	struct step *st = record_step(&c->owned, r);

	if (!st)
		return -EINVAL;
	st->accepted = r->accept->acts;
	return 0;
}

int update_step_notes(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);

	struct step *st = record_step(&c->owned, r);

	if (!st)
		return -EINVAL;
	step_count(c, j, st, -1);
	update_notes(j, r);
	for (size_t i = 0; i < r->n_notes; i++)
		if (r->notes[i].config) {
			retained_count(c, j);
			break;
		}
	step_count(c, j, st, 1);
	if (r->attempt == j->attempt)
		doubt_begun(j);
	return 0;
}

int update_gone(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	struct step *st = record_step(&c->owned, r);

	if (!st)
		return -EINVAL;
	step_count(c, j, st, -1);
	st->gone = true;
	st->hung = false;
	step_count(c, j, st, 1);
	mo_str_set(&st->gone_how, r->gone->how);
	for (int64_t k = st->first_rank;
	     r->attempt == j->attempt && k < st->first_rank + st->n_ranks &&
	     (size_t)k < j->run.n_ranks;
	     k++) {
		struct rank *rank = &j->run.ranks[k];

		if (rank->exit)
			continue;
		rank->state = RANK_EXITED;
		rank->exit = mo_desc_new(&rank_exit_desc);
		rank->exit->cause = mo_strdup("node-lost");
	}
	c->queue_dirty = true;
	return 0;
}

/* Forgotten steps go together: one by one they would move the others as many times. */
static void sweep_forgotten(struct job *j)
{
	size_t retained = 0;

	if (j->counts.forgotten < (int64_t)j->n_steps &&
	    (j->counts.forgotten < 64 || 2 * j->counts.forgotten < (int64_t)j->n_steps))
		return;
	for (size_t i = 0; i < j->n_steps; i++) {
		if (j->steps[i].forgotten)
			mo_desc_done(&step_desc, &j->steps[i]);
		else if (retained++ != i)
			j->steps[retained - 1] = j->steps[i];
	}
	j->n_steps = retained;
	j->counts.forgotten = 0;
}

int update_forgotten(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	struct step *st = record_step(&c->owned, r);
	struct live *l = core_live(c, r->node);

	if (!st || !st->gone)
		return -EINVAL;
	st->forgotten = true;
	j->counts.forgotten++;
	if (l && !step_next(j, r->node, -1))
		ids_remove(l->jobs, &l->n_jobs, j->id);
	sweep_forgotten(j);
	if (j->n_steps == 0)
		ids_remove(c->owned.holders, &c->owned.n_holders, j->id);
	c->queue_dirty = true;
	return 0;
}

int update_hung(struct core *c, const struct record *r)
{
	struct step *st = record_step(&c->owned, r);

	if (!st || r->hung->reach < 0)
		return -EINVAL;
	st->hung = r->hung->reach != REACH_ANSWERS && !st->gone;
	st->missing = r->hung->reach == REACH_MISSING;
	c->queue_dirty = true;
	return 0;
}
