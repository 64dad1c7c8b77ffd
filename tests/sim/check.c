/* The invariants (docs/targets: Reliability), held against the truth that only the simulator
 * knows. */
#include "tests/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/straggler_leave.h"
#include "daemon/core/state/numbers.h"
#include "daemon/core/update/check.h"
#include "daemon/core/view/view.h"

/* for an answer, of which a beat may have passed when the controller stood still */
#define AGENT_WAITS (4500 * MS)
#define PAUSE_REPORTED (3 * S)
#include "tests/event_check.h"
#include "tests/shadow.h"

static bool resumes(const struct job *j)
{
	return j->spec.recipe.checkpoint.dir && j->spec.recipe.checkpoint.resume != -2;
}

/* Whole in truth, and not behind what a user asked for. */
static bool usable(const struct sim *s, const struct truth *t, const struct file *f)
{
	int64_t was;

	if (!f->complete || train_changed(s, t->id, f, &was) || f->given_up || f->broken || f->odd)
		return false;
	return !t->from_asked || (t->from > 0 && f->iteration <= t->from);
}

/* The last attempt ended just before that iteration, or was not heard to its end: when somebody
 * repairs the checkpoint of it then, its file is as young as one that the attempt would have
 * written without telling. */
static bool came_to(struct sim *s, int64_t job, int64_t iteration)
{
	const struct attempt *last = NULL;

	for (size_t i = 0; i < s->n_attempts; i++)
		if (s->attempts[i]->job == job && (!last || s->attempts[i]->number > last->number))
			last = s->attempts[i];
	return sim_job(s, job)->unheard || (last && last->iteration + 1 >= iteration);
}

/* An attempt begins only when every process of its predecessors is dead, resumes only from what was
 * whole, and neither silently afresh nor from what a user went back behind. */
static void check_place(struct sim *s, const struct record *r)
{
	struct truth *t = sim_job(s, r->job);
	const struct job *j = job_find(core_state(s->ctl.shadow), r->job);
	const struct file *f =
		r->place->resume >= 0 ? train_file(s, r->job, r->place->resume) : NULL;
	/* what changed later may have changed after the scan */
	int64_t sure = (j->waterfall.gone_at != MO_NONE ? j->waterfall.gone_at : j->created_at) -
		       s->ctl.skew;

	if (s->ctl.blurred)
		sure = INT64_MIN;
	if (r->time < j->not_before)
		sim_violation(s, "attempt %lld of j-%lld begins %lld ms within its pause",
			      (long long)r->attempt, (long long)r->job,
			      (long long)(j->not_before - r->time) / 1000);
	if (t->live > 0)
		sim_violation(s,
			      "attempt %lld of j-%lld begins while %lld processes of an earlier "
			      "one live",
			      (long long)r->attempt, (long long)r->job, (long long)t->live);
	for (size_t i = 0; j->saves.dir && i < core_state(s->ctl.shadow)->n_jobs; i++) {
		const struct job *k = core_state(s->ctl.shadow)->jobs[i];

		if (k->id != j->id && k->attempt > 0 && !job_state_final(k->state) &&
		    mo_streq(k->saves.dir, j->saves.dir))
			sim_violation(s,
				      "attempt %lld of j-%lld begins although j-%lld saves to the "
				      "same checkpoint.dir",
				      (long long)r->attempt, (long long)r->job, (long long)k->id);
	}
	if (t->cancel_acked)
		sim_violation(s, "attempt %lld of j-%lld begins after its cancel was acknowledged",
			      (long long)r->attempt, (long long)r->job);
	if (r->place->resume >= 0 && (!f || (!f->complete && f->changed_at < sure)))
		sim_violation(s,
			      "attempt %lld of j-%lld resumes from checkpoint %lld, which is not "
			      "whole",
			      (long long)r->attempt, (long long)r->job,
			      (long long)r->place->resume);
	if (f && f->altered && f->altered_at < sure)
		sim_violation(s,
			      "attempt %lld of j-%lld resumes from checkpoint %lld, which changed "
			      "after it was verified",
			      (long long)r->attempt, (long long)r->job,
			      (long long)r->place->resume);
	if (t->from_asked && r->place->resume > t->from)
		sim_violation(s,
			      "attempt %lld of j-%lld resumes from checkpoint %lld, although %lld "
			      "was asked for",
			      (long long)r->attempt, (long long)r->job, (long long)r->place->resume,
			      (long long)t->from);
	if (checkpoint_named_suspect(j, r->place->resume) &&
	    !(t->from_asked && t->from == r->place->resume))
		sim_violation(s,
			      "attempt %lld of j-%lld resumes from checkpoint %lld, which is "
			      "suspect",
			      (long long)r->attempt, (long long)r->job,
			      (long long)r->place->resume);
	if (f && f->told == s->n_restores && !(t->from_asked && t->from == f->iteration))
		sim_violation(s,
			      "attempt %lld of j-%lld resumes from checkpoint %lld, of which the "
			      "controller heard that its loss is no number",
			      (long long)r->attempt, (long long)r->job, (long long)f->iteration);
	s->fault_counts[F_TAINTED_NAMED] += f && f->told == s->n_restores;
	if (f && f->given_up && !f->named && !came_to(s, r->job, f->iteration))
		sim_violation(s,
			      "attempt %lld of j-%lld resumes from checkpoint %lld, behind which "
			      "the user went back",
			      (long long)r->attempt, (long long)r->job,
			      (long long)r->place->resume);
	for (size_t i = 0; r->place->resume < 0 && resumes(j) && i < t->n_files; i++)
		if (t->files[i].changed_at < sure && usable(s, t, &t->files[i]))
			sim_violation(s,
				      "attempt %lld of j-%lld starts afresh although checkpoint "
				      "%lld is whole",
				      (long long)r->attempt, (long long)r->job,
				      (long long)t->files[i].iteration);
	for (size_t i = 0; t->from_asked && i < t->n_files; i++)
		if (t->files[i].iteration >= r->place->resume) {
			t->files[i].given_up = t->files[i].iteration > r->place->resume;
			t->files[i].named = false;
		}
	t->from_asked = false;
}

static void check_final(struct sim *s, const struct record *r)
{
	struct truth *t = sim_job(s, r->job);
	const struct rec_job *to = r->transition;

	s->fault_counts[F_SAME_DIR] +=
		to->reason && mo_starts_with(to->reason, "checkpoint.dir is held by");
	s->fault_counts[F_WENT_BACK_MAX] +=
		to->reason && strstr(to->reason, ": it is the data or the model");
	s->fault_counts[F_FROM_WAITS] += to->reason && mo_starts_with(to->reason, "restart --from");
	if ((job_state_final(to->state) || to->state == JOB_PAUSED || to->state == JOB_QUEUED) &&
	    t->live > 0 && past_known_live(s, job_find(core_state(s->ctl.shadow), r->job)) > 0)
		sim_violation(s, "j-%lld is %s while %lld of its processes live", (long long)r->job,
			      job_state_names[to->state], (long long)t->live);
	if (t->cancel_acked && to->state != JOB_CANCELLED && to->state != JOB_STOPPING)
		sim_violation(s, "j-%lld becomes %s after its cancel was acknowledged",
			      (long long)r->job, job_state_names[to->state]);
	if (to->state == JOB_COMPLETED) {
		const struct job *j = job_find(core_state(s->ctl.shadow), r->job);
		struct attempt *a = sim_attempt(s, r->job, j->attempt);

		for (int64_t k = 0; a && k < a->world; k++)
			if (!a->ranks[k] || a->ranks[k]->alive || a->ranks[k]->code != 0)
				sim_violation(s,
					      "j-%lld completes although rank %lld did not end "
					      "with 0",
					      (long long)r->job, (long long)k);
		if (!a || (a->steps != MO_NONE && a->iteration < a->steps))
			sim_violation(s, "j-%lld completes at iteration %lld of %lld",
				      (long long)r->job, a ? (long long)a->iteration : -1LL,
				      a ? (long long)a->steps : -1LL);
	}
}

/* An attempt is called failed only for something that broke: a planned stop, whoever ordered it, is
 * no failure. */
static void check_fail(struct sim *s, const struct record *r)
{
	const struct incident *inc = &r->incident->details;
	const struct job *j = job_find(core_state(s->ctl.shadow), r->job);
	const struct step *st = inc->node ? step_find(j, inc->attempt, inc->node) : NULL;
	const struct simnode *n = inc->node ? &s->nodes[sim_node(s, inc->node)] : NULL;
	char boot[64] = "";

	if (n)
		node_boot_name(n, boot);
	if (mo_streq(inc->cause, "node-lost") && st && (!n->power || !mo_streq(st->boot_id, boot)))
		return;
	if (sim_job(s, r->job)->harmed < inc->attempt)
		sim_violation(s,
			      "attempt %lld of j-%lld is called failed (%s on %s) although nothing "
			      "of it broke",
			      (long long)inc->attempt, (long long)r->job, inc->cause,
			      inc->node ? inc->node : "?");
}

/* So many losses in a row were no numbers, or high ones. */
static int64_t bad_row(const struct attempt *a, bool nan)
{
	int64_t row = 0, longest = 0;

	for (int64_t i = MO_MAX(a->resume, 0) + 1; i <= a->iteration; i++) {
		double loss = train_loss(a, i);

		row = (nan ? isnan(loss) : loss > HIGH_LOSS) ? row + 1 : 0;
		longest = MO_MAX(longest, row);
	}
	return longest;
}

/* The job goes back behind losses that stay bad, and where its recipe says so. */
static void check_loss(struct sim *s, const struct record *r)
{
	const struct incident *inc = &r->incident->details;
	const char *action = job_find(core_state(s->ctl.shadow), r->job)->spec.recipe.loss_action;
	const struct attempt *a = sim_past_attempt(s, r->job, inc->attempt);
	bool nan = mo_streq(inc->cause, "loss NaN"), high = mo_streq(inc->cause, "loss too high");
	bool asked = high ? mo_streq(action, "rollback") : !mo_streq(action, "none");

	if (!nan && !high)
		return;
	s->fault_counts[F_WENT_BACK]++;
	if (!asked || !a || bad_row(a, nan) < (nan ? NUMBERS_NAN_STAYS : NUMBERS_SPIKE_STAYS))
		sim_violation(s, "attempt %lld of j-%lld is ended (%s): it did not stay so",
			      (long long)inc->attempt, (long long)r->job, inc->cause);
}

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
static void check_state(struct sim *s)
{
	char *wrong = state_check(s->ctl.core);

	if (!wrong)
		wrong = state_check_placed(s->ctl.core);
	if (wrong)
		sim_violation(s, "%s", wrong);
}

/* No false verdict: a node that nothing happened to is not called down, nor a supervisor that
 * answers hung. */
static void check_verdict(struct sim *s, const struct record *r)
{
	int n = sim_node(s, r->node);
	const struct simnode *node = &s->nodes[n];
	const struct simstep *st;
	char boot[64];

	node_boot_name(node, boot);
	/* agents gave up their requests: they say hello again */
	if (s->now - s->ctl.paused_until < PAUSE_REPORTED && s->ctl.paused_for > AGENT_WAITS)
		return;
	if (r->type == REC_NODE_STATE && r->node_state->state != NODE_UP &&
	    mo_streq(node_find(core_state(s->ctl.shadow), r->node)->boot.id, boot) &&
	    node->ok_since &&
	    s->now - MO_MAX(node->ok_since, node->trouble_at) >
		    (r->node_state->state == NODE_DOWN ? 20 : 12) * S)
		sim_violation(s,
			      "%s is called silent although its agent works and no message was "
			      "lost for %lld s",
			      r->node,
			      (long long)((s->now - MO_MAX(node->ok_since, node->trouble_at)) / S));
	if (r->type != REC_HUNG || r->hung->reach == REACH_ANSWERS)
		return;
	st = step_of(s, n, r->job, r->attempt);
	if (st && st->stepd && !st->hung &&
	    (!st->hung_at || s->now - MO_MAX(st->hung_at, s->ctl.paused_until) > 20 * S))
		sim_violation(s,
			      "the supervisor of j-%lld attempt %lld on %s is called hung although "
			      "it answers",
			      (long long)r->job, (long long)r->attempt, r->node);
}

/* Its newest straggler is one of the attempt at hand, whose node it leaves. */
static bool left_now(const struct job *j)
{
	const struct found_straggler *f =
		j->straggler.n_found ? &j->straggler.found[j->straggler.n_found - 1] : NULL;

	return f && f->left && f->attempt == j->attempt;
}

/* No attempt is given a node that its recipe's health.preflight keeps out; a finding stops no job;
 * of all nodes only so many are cordoned by themselves. */
void check_health(struct sim *s, const struct record *r)
{
	const struct state *st = core_state(s->ctl.shadow);
	const struct job *j =
		r->type == REC_PLACE || r->type == REC_INTENT ? job_find(st, r->job) : NULL;
	bool drained = r->type == REC_INTENT && r->intent->intent == INTENT_DRAIN,
	     by_operator = false;
	size_t n_cordoned = 0;

	for (size_t i = 0; r->type == REC_PLACE && i < r->place->n_places; i++) {
		const struct node *n = node_find(st, r->place->places[i].node);
		const char *only = j->spec.recipe.n_preflight ? j->spec.recipe.preflight[0] : NULL;
		bool none = only && mo_streq(only, "none");

		if (n->boot.leaving)
			sim_violation(s, "attempt %lld of j-%lld is placed on %s, which goes down",
				      (long long)r->attempt, (long long)r->job, n->name);
		if (!none && (!n->health || !n->health->preflight_done))
			sim_violation(s,
				      "attempt %lld of j-%lld is placed on %s, whose checks are "
				      "not done",
				      (long long)r->attempt, (long long)r->job, n->name);
		for (size_t k = 0; !none && k < n->health->n_results; k++)
			if (n->health->results[k].state == CHECK_CRIT &&
			    (!only || mo_streq(n->health->results[k].check, only)))
				sim_violation(s,
					      "attempt %lld of j-%lld is placed on %s in spite of "
					      "%s",
					      (long long)r->attempt, (long long)r->job, n->name,
					      n->health->results[k].check);
	}
	for (size_t i = 0; drained && i < j->run.n_places; i++) {
		const struct node *n = node_find(st, j->run.places[i].node);

		by_operator |=
			n && n->drain.asked && !n->drain.cordon && !mo_streq(n->drain.when, "idle");
		by_operator |= n && n->boot.leaving;
	}
	for (size_t i = 0; j && i < j->n_steps; i++)
		by_operator |= j->steps[i].outside;
	by_operator |= drained && left_now(j);
	if (drained && !by_operator)
		sim_violation(s, "j-%lld is stopped by a finding", (long long)r->job);
	if (r->type == REC_CHECK)
		s->fault_counts[F_CHECK_WAIT] += r->check->waits;
	if (r->type == REC_EVENT)
		s->fault_counts[F_CORDON_CAPPED] +=
			mo_streq(r->event->type, "health.cordon_capped");
	if (r->type != REC_DRAIN || r->drain->step != DRAIN_ON || !r->drain->finding)
		return;
	s->fault_counts[F_CORDONED]++;
	for (size_t i = 0; i < st->n_nodes; i++)
		n_cordoned += st->nodes[i]->drain.asked && st->nodes[i]->drain.cordon &&
			      !mo_streq(st->nodes[i]->name, r->node);
	if (n_cordoned + 1 > MO_MAX(1, st->n_nodes / 10))
		sim_violation(s, "%s is cordoned as number %zu of %zu nodes", r->node,
			      n_cordoned + 1, st->n_nodes);
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

/* No attempt is ended that moves, however slowly. */
static void check_hang(struct sim *s, const struct record *r)
{
	struct attempt *a = sim_attempt(s, r->job, r->attempt);

	if (r->hang->stage < 0 && a && train_runs(a))
		s->fault_counts[F_HANG_CLEARED]++;
	if (!r->hang->acts)
		return;
	s->fault_counts[F_HANG]++;
	if (a && train_runs(a))
		sim_violation(s, "attempt %lld of j-%lld hangs by its verdict (%s), and it runs",
			      (long long)r->attempt, (long long)r->job,
			      r->hang->text ? r->hang->text : "?");
}

/* A job leaves where its recipe says so, so often a day, behind a save of since it was named. */
static void check_left(struct sim *s, const struct record *r)
{
	struct truth *t = sim_job(s, r->job);
	const struct job *j = job_find(core_state(s->ctl.shadow), r->job);
	bool saved = s->ctl.blurred;

	s->fault_counts[F_STRAGGLER_LEFT]++;
	for (size_t i = 0; i < t->n_files; i++)
		saved |= t->files[i].changed_at >= t->named_at;
	if (t->left_restores != s->n_restores)
		t->n_left = 0; /* nobody knows of them any more */
	t->left_restores = s->n_restores;
	if (!mo_streq(j->spec.recipe.straggler, "drain") || !saved || ++t->n_left > LEAVES_MAX)
		sim_violation(s,
			      "j-%lld leaves the node of rank %lld: recovery.straggler is %s, "
			      "that is number %lld, and it saved%s since",
			      (long long)r->job, (long long)r->straggler->rank,
			      j->spec.recipe.straggler, (long long)t->n_left,
			      saved ? "" : " nothing");
}

/* Only who was slow by itself is named, and only where its program tells that apart. */
static void check_straggler(struct sim *s, const struct record *r)
{
	struct attempt *a = sim_attempt(s, r->job, r->attempt);
	int64_t rank = r->straggler->rank;

	if (rank == MO_NONE) {
		s->fault_counts[F_STRAGGLER_CLEARED]++;
		return;
	}
	if (!a || rank >= a->world || !a->paces[rank].slow || !train_tells(a))
		sim_violation(s, "rank %lld of j-%lld attempt %lld is called slow, and it is not",
			      (long long)rank, (long long)r->job, (long long)r->attempt);
	if (r->straggler->left) {
		check_left(s, r);
		return;
	}
	s->fault_counts[F_STRAGGLER]++;
	sim_job(s, r->job)->named_at = s->now;
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

/* A process starts: no other attempt of its job has one, nobody else uses its GPU, no job that was
 * given up. */
void check_fork(struct sim *s, const struct proc *p)
{
	const struct simstep *st = p->step;
	const struct truth *t = sim_job(s, st->job);
	const struct proc *user = s->nodes[st->node].gpus[p->gpu];
	const struct job *j = job_find(core_state(s->ctl.shadow), st->job);

	if (user)
		sim_violation(s,
			      "GPU %lld of %s is used by j-%lld attempt %lld and by j-%lld attempt "
			      "%lld",
			      (long long)p->gpu, s->nodes[st->node].name,
			      (long long)user->step->job, (long long)user->step->attempt,
			      (long long)st->job, (long long)st->attempt);
	for (size_t i = 0; t->live > 0 && i < s->n_steps; i++) {
		const struct simstep *other = s->steps[i];

		if (other->job != st->job || other->attempt == st->attempt)
			continue;
		for (size_t k = 0; k < other->n_procs; k++)
			if ((other->procs[k].alive && !other->procs[k].stuck) ||
			    other->procs[k].child)
				sim_violation(s,
					      "attempts %lld and %lld of j-%lld have live "
					      "processes at once",
					      (long long)other->attempt, (long long)st->attempt,
					      (long long)st->job);
	}
	if (!j && !t->stored)
		sim_violation(s, "a process of j-%lld starts although the job was never stored",
			      (long long)st->job);
}

/* A stop is over after stop.grace, and says why it is. */
static void check_stop(struct sim *s, const struct job *j)
{
	struct truth *t = sim_job(s, j->id);
	struct attempt *a = sim_attempt(s, j->id, j->attempt);
	int64_t grace = j->spec.recipe.stop_grace_us, since;

	if (j->state != JOB_STOPPING || !t->stopping_since)
		t->stopping_since = j->state == JOB_STOPPING ? s->now : 0;
	if (!t->stopping_since || !a)
		return;
	if (!j->reason)
		sim_violation(s, "j-%lld is being stopped without a reason", (long long)j->id);
	since = MO_MAX(t->stopping_since, MO_MAX(s->ctl.up_since, s->ctl.paused_until));
	for (int64_t r = 0; r < a->world; r++) {
		const struct proc *p = a->ranks[r];
		const struct simnode *n = p ? &s->nodes[p->step->node] : NULL;

		if (p && p->alive && !p->stuck && !p->step->hung && n->ok_since &&
		    s->now - MO_MAX(MO_MAX(since, n->ok_since), p->step->hung_at) > grace + 45 * S)
			sim_violation(s,
				      "j-%lld is being stopped (%s), its grace is %lld s, but rank "
				      "%lld lives on %s after %lld s",
				      (long long)j->id, j->reason, (long long)(grace / S),
				      (long long)r, n->name,
				      (long long)((s->now - t->stopping_since) / S));
	}
}

/* Each second: a running job does not miss a rank for long, nor wait on a silent node without
 * saying so. */
void check_time(struct sim *s)
{
	const struct state *st = core_state(s->ctl.shadow);

	for (int n = 0; n < NODES; n++) {
		struct simnode *node = &s->nodes[n];
		bool ok = node->agent && node->cut_until <= s->now;

		if (!ok)
			node->ok_since = 0;
		else if (!node->ok_since)
			node->ok_since = s->now;
		if (ok)
			node->bad_since = 0;
		else if (!node->bad_since)
			node->bad_since = s->now;
	}
	for (size_t i = 0; i < st->n_jobs && s->ctl.up && s->ctl.paused_until <= s->now; i++) {
		const struct job *j = st->jobs[i];
		struct attempt *a = sim_attempt(s, j->id, j->attempt);
		int64_t since;

		check_stop(s, j);
		if ((j->state != JOB_RUNNING && j->state != JOB_STARTING) || !a || !a->broken_at)
			continue;
		since = MO_MAX(a->broken_at, MO_MAX(s->ctl.up_since, s->ctl.paused_until));
		for (int64_t r = 0; r < a->world; r++) {
			const struct proc *p = a->ranks[r];
			const struct simnode *n = p ? &s->nodes[p->step->node] : NULL;
			const struct step *known = p ? step_find(j, a->number, n->name) : NULL;
			bool dead = p && !p->alive && (p->code != 0 || p->step->outside_at) &&
				    !p->step->hung && !(known && known->missing);

			if (!dead)
				continue;
			if (n->ok_since && s->now - MO_MAX(since, n->ok_since) > 45 * S)
				sim_violation(s,
					      "j-%lld is %s although its rank %lld is dead for "
					      "%lld s and its node can be heard",
					      (long long)j->id, job_state_names[j->state],
					      (long long)r, (long long)((s->now - since) / S));
			if (n->bad_since && s->now - MO_MAX(since, n->bad_since) > 45 * S)
				sim_violation(s,
					      "j-%lld is %s although the node of its dead rank "
					      "%lld is silent for %lld s",
					      (long long)j->id, job_state_names[j->state],
					      (long long)r,
					      (long long)((s->now - n->bad_since) / S));
		}
	}
}

/* Samples: no iteration is missing between the first and the last of an attempt whose nodes kept
 * their disks. */
void check_samples(struct sim *s, const struct job *j)
{
	for (size_t i = 1; i < j->progress.n_samples; i++) {
		const struct sample *a = &j->progress.samples[i - 1], *b = &j->progress.samples[i];

		const struct attempt *truth = sim_past_attempt(s, j->id, a->attempt);

		if (a->attempt == b->attempt && b->iteration != a->iteration + 1 &&
		    !(truth && truth->cut))
			sim_violation(s,
				      "j-%lld attempt %lld: iteration %lld is missing from its "
				      "metrics",
				      (long long)j->id, (long long)a->attempt,
				      (long long)a->iteration + 1);
	}
	for (size_t k = 0; k < s->n_attempts; k++) {
		const struct attempt *a = s->attempts[k];
		int64_t last = MO_MAX(a->resume, 0);

		if (a->job != j->id || a->lossy || a->cut)
			continue;
		for (size_t i = 0; i < j->progress.n_samples; i++)
			if (j->progress.samples[i].attempt == a->number)
				last = MO_MAX(last, j->progress.samples[i].iteration);
		/* the last one may have died in its supervisor's hands */
		if (last < a->iteration - 1)
			sim_violation(s,
				      "j-%lld attempt %lld reached iteration %lld, its metrics end "
				      "at %lld",
				      (long long)j->id, (long long)a->number,
				      (long long)a->iteration, (long long)last);
	}
}

bool check_waits(struct sim *s, const struct job *j)
{
	const struct truth *t = sim_job(s, j->id);

	if (!t->unrepaired || (j->state != JOB_QUEUED && j->state != JOB_RECOVERING) ||
	    j->run.n_places || !j->reason || !strstr(j->reason, "--from 0"))
		return false;
	for (size_t i = 0; i < t->n_files; i++)
		if (usable(s, t, &t->files[i]) && !t->files[i].rotten)
			return false;
	return true;
}

static bool at_rest(struct sim *s, const struct job *j)
{
	struct place *places = NULL;
	size_t n = 0;
	bool fits;

	if (job_state_final(j->state) || j->state == JOB_PAUSED || check_waits(s, j))
		return true;
	if (j->state != JOB_QUEUED)
		return false;
	for (size_t i = 0; i < core_state(s->ctl.core)->n_jobs; i++) {
		const struct job *k = core_state(s->ctl.core)->jobs[i];

		if (checkpoint_dir_held(k, j) && (k->state == JOB_PAUSED || check_waits(s, k)))
			return true;
	}
	fits = place_find(core_state(s->ctl.core), &j->spec.recipe, &places, &n, NULL) == 0;
	mo_vec_clear(&place_desc, (void **)&places, &n);
	return !fits && job_gpus(j) > NODES * GPUS;
}

void check_end(struct sim *s)
{
	const struct state *st;

	if (!s->ctl.up)
		sim_violation(s, "the controller is not up at the end");
	st = core_state(s->ctl.core);
	check_promises(s);
	check_equal(s);
	check_state(s);
	for (size_t i = 0; i < st->n_jobs; i++) {
		const struct job *j = st->jobs[i];

		if (!at_rest(s, j))
			sim_violation(s, "j-%lld does not come to rest: %s (%s), attempt %lld",
				      (long long)j->id, job_state_names[j->state],
				      j->reason ? j->reason : "", (long long)j->attempt);
		if (job_state_final(j->state) && (sim_job(s, j->id)->live || j->n_steps))
			sim_violation(s,
				      "j-%lld is %s but %lld processes live and %zu steps are not "
				      "forgotten",
				      (long long)j->id, job_state_names[j->state],
				      (long long)sim_job(s, j->id)->live, j->n_steps);
		check_samples(s, j);
	}
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct simstep *step = s->steps[i];
		const struct job *j = job_find(st, step->job);

		if (step->spooled && j && job_state_final(j->state))
			sim_violation(s, "the spool entry of j-%lld attempt %lld is left on %s",
				      (long long)step->job, (long long)step->attempt,
				      s->nodes[step->node].name);
	}
	past_check_end(s);
	for (size_t i = 0; i < st->n_nodes; i++)
		if (st->nodes[i]->state != NODE_UP || st->nodes[i]->strays.any)
			sim_violation(s, "%s is %s%s at the end", st->nodes[i]->name,
				      node_state_names[st->nodes[i]->state],
				      st->nodes[i]->strays.any ? " with unknown steps" : "");
}
