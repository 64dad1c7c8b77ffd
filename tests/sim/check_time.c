/* Nothing takes longer than it may, and in the end all comes to rest. */
#include "tests/sim/check.h"

#include <string.h>

#include "daemon/core/view/view.h"

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

/* True time since which the last of its nodes that were silent is heard: what it tells of
 * iterations is of an unknown moment of its silence, and believed to go on for a while
 * (progress_limit_us()). */
static int64_t back_since(const struct sim *s, const struct attempt *a)
{
	int64_t since = 0;

	for (int64_t r = 0; r < a->world; r++)
		if (a->ranks[r])
			since = MO_MAX(since, s->nodes[a->ranks[r]->step->node].ok_since);
	return since;
}

/* Of what was in the step nothing will be heard: its agent lost it, or the state is of before its
 * launch, which is not said again while a step that nobody knows lives on the node. */
static bool waits_for_people(const struct state *st, const struct step *known)
{
	const struct node *n = known ? node_find(st, known->node) : NULL;

	return known && (known->missing || (!known->accepted && n && n->strays.any));
}

/* Each second: a running job does not miss a rank for long, nor wait on a silent node without
 * saying so. */
void check_time(struct sim *s)
{
	const struct state *st = core_state(s->ctl.shadow);

	for (int n = 0; n < NODES; n++) {
		struct simnode *node = &s->nodes[n];
		/* one that hears nothing says hello again and again: that it lives is heard */
		bool speaks = node->agent && !node->refused_since && node->mute_until <= s->now &&
			      !clock_stands(s, n);
		bool ok = speaks && node->deaf_until <= s->now;

		if (!ok)
			node->ok_since = 0;
		else if (!node->ok_since)
			node->ok_since = s->now;
		if (speaks)
			node->bad_since = 0;
		else if (!node->bad_since)
			node->bad_since = s->now;
	}
	for (size_t i = 0; i < st->n_jobs && s->ctl.up && s->ctl.paused_until <= s->now; i++) {
		const struct job *j = st->jobs[i];
		struct attempt *a = sim_attempt(s, j->id, j->attempt);
		int64_t since, heard;

		check_stop(s, j);
		if ((j->state != JOB_RUNNING && j->state != JOB_STARTING) || !a || !a->broken_at)
			continue;
		since = MO_MAX(a->broken_at, MO_MAX(s->ctl.up_since, s->ctl.paused_until));
		heard = back_since(s, a);
		for (int64_t r = 0; r < a->world; r++) {
			const struct proc *p = a->ranks[r];
			const struct simnode *n = p ? &s->nodes[p->step->node] : NULL;
			const struct step *known = p ? step_find(j, a->number, n->name) : NULL;
			bool dead = p && !p->alive && (p->code != 0 || p->step->outside_at) &&
				    !p->step->hung && !waits_for_people(st, known);

			if (!dead)
				continue;
			if (n->ok_since && s->now - MO_MAX(since, n->ok_since) > 45 * S)
				sim_violation(s,
					      "j-%lld is %s although its rank %lld is dead for "
					      "%lld s and its node can be heard",
					      (long long)j->id, job_state_names[j->state],
					      (long long)r, (long long)((s->now - since) / S));
			if (n->bad_since &&
			    s->now - MO_MAX(MO_MAX(since, heard), n->bad_since) > 45 * S)
				sim_violation(s,
					      "j-%lld is %s although the node of its dead rank "
					      "%lld is silent for %lld s",
					      (long long)j->id, job_state_names[j->state],
					      (long long)r,
					      (long long)((s->now - n->bad_since) / S));
		}
	}
}

/* The controller knows that somebody said so: it was not put back to before. */
static bool taken_for_gone(const struct sim *s, const struct simstep *st)
{
	const struct job *j = job_find(core_state(s->ctl.shadow), st->job);
	const struct step *known = j ? step_find(j, st->attempt, s->nodes[st->node].name) : NULL;

	return st->disowned && (known ? known->gone : s->n_restores == 0);
}

/* A person's word that a node is off was believed, and it is heard: what lives there is ended. */
void check_disowned(struct sim *s)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct simstep *st = s->steps[i];
		const struct simnode *n = &s->nodes[st->node];
		int64_t since = MO_MAX(MO_MAX(n->ok_since, n->trouble_at),
				       MO_MAX(s->ctl.up_since, s->ctl.paused_until));

		if (taken_for_gone(s, st) && !st->hung && n->ok_since && s->ctl.up &&
		    proc_any(st) && s->now - MO_MAX(since, st->hung_at) > 60 * S)
			sim_violation(s,
				      "%s was called off, and is heard for %lld s: j-%lld attempt "
				      "%lld lives there still",
				      n->name, (long long)((s->now - since) / S),
				      (long long)st->job, (long long)st->attempt);
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
		if (last < a->iteration - a->in_hands)
			sim_violation(s,
				      "j-%lld attempt %lld reached iteration %lld, its metrics end "
				      "at %lld",
				      (long long)j->id, (long long)a->number,
				      (long long)a->iteration, (long long)last);
	}
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
	return !fits && job_gpus(j) > s->plan.nodes * GPUS;
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
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->disowned && proc_any(s->steps[i]))
			sim_violation(s, "j-%lld attempt %lld lives on %s at the end",
				      (long long)s->steps[i]->job, (long long)s->steps[i]->attempt,
				      s->nodes[s->steps[i]->node].name);
	for (size_t i = 0; i < st->n_nodes; i++)
		if (st->nodes[i]->state != NODE_UP || st->nodes[i]->strays.any)
			sim_violation(s, "%s is %s%s at the end", st->nodes[i]->name,
				      node_state_names[st->nodes[i]->state],
				      st->nodes[i]->strays.any ? " with unknown steps" : "");
}
