/* How an attempt may begin, whose processes may start, and how a job ends. */
#include "tests/sim/check.h"

#include <string.h>

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

/* What lives on nodes that came in behind the backup that was put back, and are kept out since:
 * such nodes are waited for only for so long (docs/operator.md, "State, backup, disk"). */
static void disown_unknown(struct sim *s, int64_t job)
{
	for (size_t i = 0; i < s->n_steps && s->n_restores > 0; i++)
		if (s->steps[i]->job == job &&
		    !node_find(core_state(s->ctl.shadow), s->nodes[s->steps[i]->node].name))
			(void)proc_disown(s, s->steps[i]);
}

/* An attempt begins only when every process of its predecessors is dead, resumes only from what was
 * whole, and neither silently afresh nor from what a user went back behind. */
void check_place(struct sim *s, const struct record *r)
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
	disown_unknown(s, r->job);
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

void check_final(struct sim *s, const struct record *r)
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
		/* after a restore it may be one of before */
		struct attempt *a = sim_past_attempt(s, r->job, j->attempt);

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
	for (size_t i = 0; t->live > 0 && !st->disowned && i < s->n_steps; i++) {
		const struct simstep *other = s->steps[i];

		if (other->job != st->job || other->attempt == st->attempt || other->disowned)
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
