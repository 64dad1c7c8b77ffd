/* What becomes of a job: see update_job.h. */
#include "daemon/core/update/update_job.h"

#include <errno.h>

#include "daemon/core/state/live.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/update/attempt.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/update/claims.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/ledger.h"
#include "daemon/core/update/numbers.h"
#include "daemon/core/update/retained.h"
#include "daemon/core/update/slots.h"
#include "daemon/core/update/update_node.h"
#include "daemon/core/update/update_spare.h"
#include "daemon/core/update/waterfall.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

/* completed jobs whose last scan is waited for; a node that does not answer keeps one here */
#define ENDING_MAX 64

/* What a step whose end was not reported by its own supervisor did last is not known. */
static void attempt_over(struct core *c, struct job *j)
{
	slots_touch_places(c, j);
	for (size_t i = 0; i < j->n_steps; i++)
		j->unheard |= j->steps[i].attempt == j->attempt &&
			      (!j->steps[i].ended || j->steps[i].lost);
	checkpoint_forget_manifests(j);
	job_clear_attempt(j);
}

/* The oldest gives up its place: its node did not answer for a long time. */
static void end_scan_due(struct core *c, struct job *j)
{
	struct job *oldest = c->n_ending >= ENDING_MAX ? job_edit(&c->owned, c->ending[0]) : NULL;

	if (c->n_ending >= ENDING_MAX)
		ids_remove(c->ending, &c->n_ending, c->ending[0]);
	if (oldest) {
		oldest->scan.at_end = false;
		checkpoint_removal_over(oldest, NULL);
	}
	j->scan.at_end = true;
	ids_add(&c->ending, &c->n_ending, j->id);
}

/* A person restarts what was over: the time since then is nobody's. By whose clock it was over is
 * not known any more, so it may be negative. */
static void begin_again(struct core *c, struct job *j, int64_t time)
{
	mo_assert(!job_state_final(j->state) && !job_live(j) && j->run.n_places == 0);
	j->over_us = (j->over_us == MO_NONE ? 0 : j->over_us) + time - j->ended_at;
	j->ended_at = MO_NONE;
	j->ledger_at = j->waterfall.gone_at = time;
	j->not_before = 0;
	retained_count(c, j);
	ids_add(&c->unfinished, &c->n_unfinished, j->id);
	claims_add_job(c, j);
	ids_remove(c->ending, &c->n_ending, j->id);
	j->scan.at_end = false;
}

int update_job(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	const struct rec_job *k = r->transition;
	bool again;

	if (!j || k->state < 0 || k->state >= _JOB_STATE_N)
		return -EINVAL;
	again = job_state_final(j->state) && !job_state_final(k->state);
	/* another reason is no progress: what is open stays open */
	if (j->state != k->state || k->attempt_over || ledger_category(j) >= 0)
		ledger_charge(j, r->time);
	waterfall_image(j, k->image, r->time);
	if (j->state != k->state || k->attempt_over)
		c->queue_dirty = true;
	if (j->state != k->state)
		j->state_since = r->time;
	if (k->state == JOB_QUEUED && j->state != JOB_QUEUED) {
		j->queued_since = r->time;
		j->after_failure = false;
	}
	tally_job(c, j->state, -1);
	j->state = k->state;
	tally_job(c, j->state, 1);
	if (again)
		begin_again(c, j, r->time);
	mo_str_set(&j->reason, k->reason);
	if (k->attempt_over) {
		attempt_over(c, j);
		j->waterfall.gone_at = r->time;
		j->scan.at = MO_NONE;
	}
	if (k->follows == FOLLOWS_FAILURE) {
		j->after_failure = true;
		j->streak.ports_busy = 0;
		j->not_before = r->time + MO_MAX(MO_MAX(j->spec.recipe.grace_us, k->pause_us), 0);
	} else if (k->follows == FOLLOWS_BUSY_PORTS) {
		j->streak.ports_busy++;
	}
	if (k->state == JOB_QUEUED || k->state == JOB_PAUSED || job_state_final(k->state))
		j->intent = INTENT_NONE;
	if (k->state != JOB_RECOVERING)
		checks_over(c, j);
	if (job_state_final(k->state)) {
		retained_leave(c, j);
		j->ended_at = r->time;
		ledger_ends(j);
		retained_count(c, j);
		ids_remove(c->unfinished, &c->n_unfinished, j->id);
		claims_remove_job(c, j);
		if (j->saves.dir &&
		    (checkpoint_any_removing(j) ||
		     (k->state == JOB_COMPLETED && state_newest_checkpoint(j) != MO_NONE)))
			end_scan_due(c, j);
	}
	if (k->state == JOB_PAUSED || job_state_final(k->state))
		spares_end(c, j, r->time);
	waterfall_changed(j, r->time);
	return 0;
}

int update_intent(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	const struct rec_intent *k = r->intent;

	if (!j || k->intent < 0)
		return -EINVAL;
	j->intent = k->intent;
	j->intent_now = k->now;
	j->restart_from = k->restart_from;
	j->scan.at = MO_NONE;
	/* a person dealt with it: the count of equal failures begins anew */
	if (k->intent == INTENT_RESTART) {
		j->streak.same = j->streak.cycles = 0;
		j->streak.since = r->time;
		numbers_forgive(j);
		j->not_before = 0;
		mo_str_set(&j->streak.signature, NULL);
	}
	c->queue_dirty = true;
	return 0;
}

int update_fail(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	const struct rec_fail *k = r->fail;

	if (!j || r->attempt != j->attempt)
		return -EINVAL;
	j->failure.unfinished_us =
		ledger_category(j) < 0 ? MO_MAX(0, r->time - j->ledger_at - k->told_after_us) : 0;
	ledger_charge_failed(j, r->time);
	j->failure.decided = true;
	j->failure.at = r->time;
	j->failure.rank = k->first_rank;
	j->failure.detect_us = k->told_after_us;
	j->waterfall.lost_mark = j->progress.iteration;
	j->failure.exit_mono_ns = k->first_rank >= 0 && (size_t)k->first_rank < j->run.n_ranks
					  ? j->run.ranks[k->first_rank].exit_mono_ns
					  : MO_NONE;
	mo_str_set(&j->failure.node, r->node);
	mo_str_set(&j->failure.class, k->class);
	mo_str_set(&j->failure.cause, k->cause);
	for (size_t i = 0; i < j->failure.n_evidence; i++)
		free(j->failure.evidence[i]);
	j->failure.n_evidence = 0;
	for (size_t i = 0; i < k->n_evidence; i++)
		mo_strs_add(&j->failure.evidence, &j->failure.n_evidence, k->evidence[i]);
	return 0;
}

int update_wait_node(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);

	if (!j)
		return -EINVAL;
	if (r->wait_node->waits && ledger_category(j) < 0)
		ledger_charge_as(j, r->time, GPU_DETECT);
	else
		ledger_charge(j, r->time);
	j->failure.waiting_node = r->wait_node->waits;
	return 0;
}

int update_incident(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	const struct rec_incident *k = r->incident;

	if (!j)
		return -EINVAL;
	if (j->n_incidents >= MO_INCIDENTS_MAX)
		mo_vec_remove(&incident_desc, j->incidents, &j->n_incidents, 0);
	mo_desc_copy(&incident_desc, MO_ADD(j, incidents, &incident_desc), &k->details);
	if (mo_streq(k->details.class, "numerical") && numbers_fault(j))
		numbers_went_back(j);
	if (k->skip)
		mo_desc_copy(&skip_desc, MO_ADD(j, skips, &skip_desc), k->skip);
	j->waterfall.stage = 1;
	j->waterfall.at = r->time;
	if (k->uncounted)
		return 0;
	j->streak.cycles = j->streak.cycles > 0 && j->streak.checkpoint == k->newest_checkpoint
				   ? j->streak.cycles + 1
				   : 1;
	j->streak.same = k->in_a_row;
	mo_str_set(&j->streak.signature, k->signature);
	j->streak.checkpoint = k->newest_checkpoint;
	return 0;
}
