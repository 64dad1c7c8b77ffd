/* See policy.h. What follows from which evidence:
 *
 *   a port of the job is busy, before the launch or by the last lines of an exit before the first
 *     iteration: next attempt on other ports, no restart counted (by lines PORT_SAID_MAX times in
 *     a row)
 *   refused (bind, exec, user, workdir, prepare, config), or a node's configuration breaks rules
 *     (config.c): user_error, failed
 *   the first-dead rank exits non-zero by itself before the job's first iteration: user_error,
 *     failed
 *   supervisor lost, signal, an exit of 128 + a signal, later non-zero exit, a rank that does not
 *     end after another ended 0: transient, next attempt, unless it failed the same way max_cycles
 *     times without a new checkpoint
 *   boot id changed, fence: node_fault, the same
 *   the engine saved, and not to checkpoint.dir: user_error, failed at its first save: nothing of
 *     it would be resumed
 *   all ranks end 0 before the last iteration: failed, ended early
 *   an exit that a planned stop by a machine explains: next attempt, no restart counted */
#include "daemon/core/rules/policy.h"

#include "daemon/core/rules/blame.h"
#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/incident.h"
#include "daemon/core/rules/resume.h"
#include "daemon/core/rules/suspect.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/checkpoint.h"
#include "lib/base/assert.h"

#define PORT_TRIES_MAX 50 /* attempts in a row that find their ports busy */
#define PORT_SAID_MAX 5   /* a port that is the program's own is busy every time */
/* failures in a row without a new checkpoint, each different: at most this times max_cycles */
#define CYCLES_FACTOR 3

bool policy_all_dead(const struct job *j)
{
	return j->run.n_places > 0 && j->counts.dead == (int64_t)j->run.n_places;
}

/* How long ago the death was when its message left the node: the node's clock at both moments. */
static int64_t age_us(const struct turn *t, const struct blame *b)
{
	const struct agent_sync *s = t->input && t->input->sync ? t->input->sync->message : NULL;

	if (!s || !b->rank || !mo_streq(s->node, b->rank->node) || s->mono_ns == MO_NONE ||
	    b->rank->exit_mono_ns == MO_NONE)
		return 0;
	return MO_MAX(0, s->mono_ns - b->rank->exit_mono_ns) / 1000;
}

bool policy_fail(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	int64_t wait = t->core->config.exit_wait_us;
	_cleanup_(mo_freep) char *cause = NULL, *reason = NULL;
	struct blame b;
	struct record r;

	if (j->failure.decided || j->run.n_places == 0 ||
	    (j->state != JOB_STARTING && j->state != JOB_RUNNING && j->state != JOB_RECOVERING))
		return false;
	b = blame_find(j, t->now, wait);
	if (b.kind == B_NONE) {
		if (j->failure.exit0_at != MO_NONE)
			turn_deadline(t, j->failure.exit0_at + wait);
		return false;
	}
	cause = blame_cause(j, &b);
	record_init(&r, REC_FAIL);
	r.job = id;
	r.attempt = j->attempt;
	r.fail->first_rank = b.rank ? b.rank->rank : MO_NONE;
	r.node = mo_strdup(b.step ? b.step->node : NULL);
	r.fail->class = mo_strdup(blame_class(j, &b));
	r.fail->cause = mo_strdup(cause);
	r.fail->told_after_us = age_us(t, &b);
	blame_evidence(j, &b, &r.fail->evidence, &r.fail->n_evidence);
	incident_readings(t, j, &r.fail->evidence, &r.fail->n_evidence);
	if (b.rank && b.step)
		reason = mo_printf("rank %lld on %s died: %s", (long long)b.rank->rank,
				   b.step->node, cause);
	else if (b.kind == B_ELSEWHERE)
		reason = blame_elsewhere(j);
	else if (b.kind == B_CONFIG)
		reason = blame_config(j);
	else
		reason = mo_printf("%s%s%s", cause,
				   b.step ? " on "
					  : ": some ranks did not end after another one ended",
				   b.step ? b.step->node : "");
	turn_emit(t, &r);
	job_move(t, id, T_FAILED, false, 0, reason);
	return true;
}

/* ---- when every step is dead ---- */

static int64_t last_iteration(const struct job *j)
{
	int64_t n = MO_MAX(j->progress.iteration, j->run.resume),
		newest = checkpoint_newest_at_most(j, INT64_MAX, true);

	return MO_MAX(MO_MAX(n, newest), 0);
}

static bool all_exited_0(const struct job *j)
{
	int64_t n = 0;

	for (size_t i = 0; i < j->n_steps; i++)
		if (j->steps[i].attempt == j->attempt) {
			if (j->steps[i].n_bad)
				return false;
			n += j->steps[i].n_exited;
		}
	return n == (int64_t)j->run.n_ranks;
}

static bool reached(const struct job *j)
{
	return j->spec.recipe.steps == MO_NONE || last_iteration(j) >= j->spec.recipe.steps;
}

char *policy_beyond_steps(const struct job *j)
{
	int64_t steps = j->spec.recipe.steps;

	if (steps == MO_NONE || j->progress.iteration == MO_NONE || j->progress.iteration <= steps)
		return NULL;
	return mo_printf("its program made iteration %lld, and steps is %lld: how far it trains is "
			 "not said by the recipe",
			 (long long)j->progress.iteration, (long long)steps);
}

/* NULL = another attempt follows. */
static char *give_up_reason(const struct job *j, const struct blame *b, const char *cause,
			    const char *class)
{
	int64_t limit = j->spec.recipe.max_cycles > 0 ? j->spec.recipe.max_cycles : 3;
	_cleanup_(mo_freep) char *line = incident_said(b);

	if (b->kind == B_ELSEWHERE || b->kind == B_CONFIG)
		return b->kind == B_CONFIG ? blame_config(j) : blame_elsewhere(j);
	if (b->kind == B_REFUSED && blame_refused_user(b->step))
		return b->step->refused_text ? mo_printf("%s on %s" SAID "%s", cause, b->step->node,
							 b->step->refused_text)
					     : mo_printf("%s on %s: the launch was refused", cause,
							 b->step->node);
	if (mo_streq(class, "user_error") && b->rank)
		return mo_printf("rank %lld ended with %s before the first iteration, which means: "
				 "%s%s",
				 (long long)b->rank->rank, cause, incident_exit_meaning(b->rank),
				 line);
	if (j->streak.same >= limit)
		return mo_printf("failed the same way %lld times without a new checkpoint: %s%s",
				 (long long)j->streak.same, cause, line);
	if (j->streak.cycles >= limit * CYCLES_FACTOR)
		return mo_printf("failed %lld times without a new checkpoint, the last time: %s%s",
				 (long long)j->streak.cycles, cause, line);
	return NULL;
}

static void after_failure(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	struct blame b = blame_root(j);
	_cleanup_(mo_freep) char *cause = blame_cause(j, &b),
				 *class = mo_strdup(b.kind ? blame_class(j, &b) : j->failure.class),
				 *reason = NULL, *next = NULL;
	const struct step *outside = blame_outside(j, &b);
	int64_t tries = 0;

	mo_assert(id > 0);
	if (outside) {
		reason = mo_printf("the step on %s was stopped there, not by moectl; the next "
				   "attempt is prepared",
				   outside->node);
		job_move(t, id, T_RETRY, true, 0, reason);
		return;
	}
	if (b.kind == B_REFUSED && mo_streq(cause, "port-busy"))
		tries = PORT_TRIES_MAX;
	else if (blame_port_busy(j, &b))
		tries = PORT_SAID_MAX;
	if (b.step && j->streak.ports_busy + 1 < tries) {
		reason = mo_printf("ports from %lld on %s were busy; the next ones are tried",
				   (long long)j->run.port, b.step->node);
		job_move(t, id, T_RETRY, true, FOLLOWS_BUSY_PORTS, reason);
		return;
	}
	incident_emit(t, j, &b, cause, class, "stop");
	suspect_blame(t, id, &b, cause);
	b = blame_root(j);
	reason = give_up_reason(j, &b, cause, class);
	reason = reason ? reason : suspect_give_up(j, cause);
	if (reason) {
		job_move(t, id, T_GIVE_UP, true, 0, reason);
		return;
	}
	next = suspect_next(j);
	if (b.rank)
		reason = mo_printf("rank %lld on %s died: %s; %s", (long long)b.rank->rank,
				   b.step->node, cause, next);
	else
		reason = mo_printf("%s%s%s; %s", cause, b.step ? " on " : "",
				   b.step ? b.step->node : "", next);
	health_check_begin(t, id);
	job_move(t, id, T_RETRY, true, FOLLOWS_FAILURE, reason);
}

static void after_stop(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *reason = mo_strdup(j->reason);

	/* then steps is not where its program ends */
	_cleanup_(mo_freep) char *beyond = policy_beyond_steps(j);

	if (!j->failure.decided && all_exited_0(j) && reached(j) && !beyond &&
	    j->spec.recipe.steps != MO_NONE && j->intent != INTENT_CANCEL) {
		job_move(t, id, T_COMPLETED, true, 0, NULL);
		return;
	}
	if (j->failure.decided) {
		struct blame b = blame_root(j);
		_cleanup_(mo_freep) char *cause = blame_cause(j, &b);

		if (!blame_outside(j, &b))
			incident_emit(t, j, &b, cause,
				      b.kind ? blame_class(j, &b) : j->failure.class,
				      intent_names[j->intent]);
	}
	job_move(t, id, T_STOPPED, true, 0, reason);
}

void policy_conclude(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *reason = NULL;

	mo_assert(!job_live(job_find(&t->core->state, id))); /* all are proved gone */
	if (j->state == JOB_STOPPING) {
		after_stop(t, id);
	} else if (j->failure.decided) {
		after_failure(t, id);
	} else if (reached(j)) {
		reason = checkpoint_nothing_left(&t->core->state, j);
		reason = reason ? reason : policy_beyond_steps(j);
		job_move(t, id, T_COMPLETED, true, 0, reason);
	} else {
		reason = mo_printf(ENDED_EARLY "%lld of %lld", (long long)last_iteration(j),
				   (long long)j->spec.recipe.steps);
		job_move(t, id, T_GIVE_UP, true, 0, reason);
	}
}
