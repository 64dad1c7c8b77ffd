/* The invariants (docs/targets: Reliability), held against the truth that only the simulator
 * knows: here what was stored, and that replay gives it. Beside it: check_attempt, check_verdict,
 * check_health, check_time, history. */
#include "tests/sim/check.h"

#include <math.h>
#include <stdlib.h>

#include "daemon/core/update/check.h"
#include "tests/event_check.h"
#include "tests/shadow.h"

/* One job in the core and in the shadow: equal. */
static void check_job(struct sim *s, int64_t id)
{
	const struct job *a = job_find(core_state(s->ctl.core), id),
			 *b = job_find(core_state(s->ctl.shadow), id);
	char *diff;

	/* of a restored state: one that it does not know */
	if (!a && !b && sim_job(s, id)->stored)
		return;
	if (!a || !b)
		sim_violation(s, "j-%lld is missing", (long long)id);
	diff = mo_desc_equal(&job_desc, a, b) ? NULL : mo_desc_diff(&job_desc, a, b);
	if (diff)
		sim_violation(s, "replay differs: j-%lld.%s", (long long)id, diff);
}

/* What holds of every state, whatever is true of the world: the daemon's own words. */
void check_state(struct sim *s)
{
	char *wrong = state_check(s->ctl.core);

	if (!wrong)
		wrong = state_check_placed(s->ctl.core);
	if (wrong)
		sim_violation(s, "%s", wrong);
}

/* The job's own word of a save that the backup did not know: it is no stranger's. */
static void hear_saves(struct sim *s, const struct record *r)
{
	struct truth *t = sim_job(s, r->job);

	for (size_t i = 0; i < r->n_notes; i++)
		for (size_t k = 0; k < t->n_files; k++)
			if (r->notes[i].kind == NOTE_CHECKPOINT &&
			    t->files[k].iteration == r->notes[i].iteration &&
			    !t->files[k].altered_at)
				t->files[k].altered = false;
}

/* What the attempt saved, or began with, when its loss was good last. */
static void hear_loss(struct sim *s, const struct record *r)
{
	struct truth *t = sim_job(s, r->job);
	const struct job *j = job_find(core_state(s->ctl.shadow), r->job);
	const struct attempt *a = sim_attempt(s, r->job, r->attempt);

	for (size_t i = 0; i < r->n_notes; i++) {
		const struct sample *m = r->notes[i].sample;

		if (!m || !isnan(m->loss) || !a || !a->broken_from || t->failed >= a->number ||
		    !j || j->attempt != a->number || mo_streq(j->spec.recipe.loss_action, "none"))
			continue;
		for (size_t k = 0; k < t->n_files; k++) {
			struct file *f = &t->files[k];

			if (f->broken && m->iteration > f->iteration &&
			    (f->by == a->number ||
			     (f->by < a->number && f->iteration == a->resume)))
				f->told = s->n_restores;
		}
	}
}

static void hear_from(struct sim *s, const struct record *r)
{
	struct truth *t = sim_job(s, r->job);
	struct file *f = train_file(s, r->job, r->intent->restart_from);

	t->from_asked = r->intent->restart_from != MO_NONE;
	t->from = r->intent->restart_from;
	if (f)
		f->named = true;
}

void check_records(struct sim *s, const struct core_out *out)
{
	for (size_t i = 0; i < out->n_records; i++) {
		const struct record *r = &out->records[i];

		if (r->type == REC_INTENT)
			hear_from(s, r);
		if (r->type == REC_NOTES) {
			hear_saves(s, r);
			hear_loss(s, r);
		}
		if (r->type == REC_FAIL)
			sim_job(s, r->job)->failed = r->attempt;
		if (r->type == REC_EVENT) {
			s->fault_counts[F_TAINTED] +=
				mo_streq(r->event->type, "checkpoint.tainted");
		}
		if (r->type == REC_CHECKPOINT)
			s->fault_counts[F_SUSPECT] += r->checkpoint->state == CKPT_SUSPECT;
		if (r->type == REC_SUBMIT)
			sim_job(s, r->job)->stored = true;
		if (r->type == REC_PLACE)
			check_place(s, r);
		if (r->type == REC_INCIDENT) {
			check_fail(s, r);
			check_deaths(s, r);
			check_loss(s, r);
		}
		if (r->type == REC_JOB)
			check_final(s, r);
		if (r->type == REC_HANG)
			check_hang(s, r);
		if (r->type == REC_STRAGGLER)
			check_straggler(s, r);
		if (r->type == REC_NODE_STATE || r->type == REC_HUNG)
			check_verdict(s, r);
		_cleanup_(mo_freep) char *wrong =
			r->type == REC_EVENT ? event_wrong(r->event) : NULL;

		if (wrong)
			sim_violation(s, "%s", wrong);
		if (r->type == REC_EVENT && s->trace)
			sim_trace(s, "event %s: %s", r->event->type, r->event->message);
		else
			sim_trace(s, "record %s job %lld attempt %lld %s %s",
				  record_type_names[r->type],
				  r->job == MO_NONE ? 0LL : (long long)r->job,
				  r->attempt == MO_NONE ? 0LL : (long long)r->attempt,
				  r->node ? r->node : "",
				  r->type == REC_JOB && r->transition->reason
					  ? r->transition->reason
					  : "");
	}
	for (size_t i = 0; i < out->n_records; i++) {
		const struct record *r = &out->records[i];
		bool last = r->type != REC_EVENT && r->job != MO_NONE;

		for (size_t k = i + 1; last && k < out->n_records; k++)
			last = out->records[k].type == REC_EVENT || out->records[k].job != r->job;
		if (last)
			check_job(s, r->job);
	}
	if (out->n_records)
		check_state(s);
}

/* Nothing acknowledged is missing from what is stored. */
void check_promises(struct sim *s)
{
	const struct state *st = core_state(s->ctl.shadow);

	for (int i = 0; i < JOBS_MAX; i++) {
		const struct truth *t = &s->jobs[i];
		int64_t id = t->id;
		const struct job *j = job_find(st, id);

		if (t->acked && !j)
			sim_violation(s, "the acknowledged submit of j-%lld is lost",
				      (long long)id);
		if (t->cancel_acked && !(j->state == JOB_CANCELLED ||
					 (j->state == JOB_STOPPING && j->intent == INTENT_CANCEL)))
			sim_violation(s, "the acknowledged cancel of j-%lld is lost: it is %s",
				      (long long)id, job_state_names[j->state]);
	}
	for (size_t i = 0; i < st->n_jobs; i++) /* a retried submit made one job */
		for (size_t k = i + 1; k < st->n_jobs; k++)
			if (mo_streq(st->jobs[i]->spec.idempotency_key,
				     st->jobs[k]->spec.idempotency_key))
				sim_violation(s, "j-%lld and j-%lld come from one submit",
					      (long long)st->jobs[i]->id,
					      (long long)st->jobs[k]->id);
}

void check_equal(struct sim *s)
{
	char *where = shadow_differs(s->ctl.core, s->ctl.shadow);

	if (where)
		sim_violation(s, "replay differs at %s", where);
}
