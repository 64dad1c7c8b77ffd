/* See policy.h. What follows from which evidence:
 *
 *   a port of the job is busy, before the launch or by the last lines of an exit before the first
 *     iteration: next attempt on other ports, no restart counted (by lines PORT_SAID_MAX times in
 *     a row)
 *   an exit that a planned stop by a machine explains: next attempt, no restart counted
 *   losses that are no numbers, or far too high, and stay so: a failure of class numerical, though
 *     no rank died (numbers.c)
 *   all ranks end 0 before the last iteration: failed, ended early
 *   twice in a row while a checkpoint was loaded, and nothing else explains it: the next attempt
 *     takes the one before (suspect.c)
 *   else by the class of the verdict (verdict.h), as the table of remedy.c says, with a pause that
 *     grows with failures of one kind in a row, and until their budget is spent (streak.h) */
#include "daemon/core/rules/policy.h"

#include "daemon/core/rules/blame.h"
#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/device.h"
#include "daemon/core/rules/elsewhere.h"
#include "daemon/core/rules/incident.h"
#include "daemon/core/rules/numbers.h"
#include "daemon/core/rules/remedy.h"
#include "daemon/core/rules/resume.h"
#include "daemon/core/rules/suspect.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/health.h"
#include "lib/base/assert.h"

#define PORT_TRIES_MAX 50 /* attempts in a row that find their ports busy */
#define PORT_SAID_MAX 5   /* a port that is the program's own is busy every time */

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
	_cleanup_(verdict_done) struct verdict v = { 0 };
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
	v = verdict_of(t->core, j, &b);
	b = v.blame;
	cause = blame_cause(j, &b);
	record_init(&r, REC_FAIL);
	r.job = id;
	r.attempt = j->attempt;
	r.fail->first_rank = b.rank ? b.rank->rank : MO_NONE;
	r.node = mo_strdup(b.step ? b.step->node : NULL);
	r.fail->class = mo_strdup(failure_class_names[v.class]);
	r.fail->cause = mo_strdup(cause);
	r.fail->told_after_us = age_us(t, &b);
	verdict_evidence(t->core, j, &v, &r.fail->evidence, &r.fail->n_evidence);
	incident_readings(t, j, &r.fail->evidence, &r.fail->n_evidence);
	if (b.kind == B_HANG)
		reason = mo_strdup(j->hang.text);
	else if (b.rank && b.step)
		reason = mo_printf("rank %lld on %s died: %s", (long long)b.rank->rank,
				   b.step->node, cause);
	else if (b.kind == B_ELSEWHERE)
		reason = blame_elsewhere(j);
	else if (b.kind == B_CONFIG)
		reason = blame_config(j);
	else if (b.kind == B_NUMBERS)
		reason = numbers_text(j);
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

/* Why an attempt of this kind ends the job at once. */
static char *stop_reason(const struct job *j, const struct verdict *v, const struct failing *f,
			 const struct remedy *d)
{
	const struct blame *b = &v->blame;
	_cleanup_(mo_freep) char *line = incident_said(b);
	const char *other = remedy_elsewhere_too(j, f);

	if (b->kind == B_ELSEWHERE || b->kind == B_CONFIG)
		return b->kind == B_CONFIG ? blame_config(j) : blame_elsewhere(j);
	if (b->kind == B_REFUSED && blame_refused_user(b->step))
		return b->step->refused_text ? mo_printf("%s on %s" SAID "%s", f->cause,
							 b->step->node, b->step->refused_text)
					     : mo_printf("%s on %s: the launch was refused",
							 f->cause, b->step->node);
	if (d->when == WHEN_WENT_BACK)
		return numbers_stop(j, f->cause);
	if (d->when == WHEN_EVERYWHERE && other)
		return mo_printf("%s on %s as on %s before: it is the program or its data, no "
				 "node%s",
				 f->cause, f->node, other, line);
	if (v->class == FAIL_USER_ERROR && b->rank && j->progress.watermark == MO_NONE)
		return mo_printf("rank %lld ended with %s before the first iteration, which means: "
				 "%s%s",
				 (long long)b->rank->rank, f->cause, incident_exit_meaning(b->rank),
				 line);
	return mo_printf("%s%s%s, and %s stops the job (recovery.policy)%s", f->cause,
			 f->node ? " on " : "", f->node ? f->node : "", f->class, line);
}

/* NULL = another attempt follows. */
static char *give_up_reason(const struct job *j, const struct verdict *v, const struct failing *f,
			    const struct remedy *d, const struct budget *budget)
{
	_cleanup_(mo_freep) char *spent = NULL, *line = NULL;

	if (d->action == DO_STOP)
		return stop_reason(j, v, f, d);
	if (d->budget == BUDGET_UNLIMITED)
		return NULL;
	spent = streak_spent(j, budget, d->budget == BUDGET_PATIENT);
	line = incident_said(&v->blame);
	return spent ? mo_printf("%s: %s%s", spent, f->cause, line) : NULL;
}

/* Who died, and of what. Caller frees. */
static char *what_happened(const struct job *j, const struct verdict *v, const struct failing *f)
{
	if (v->blame.kind == B_NUMBERS)
		return numbers_text(j);
	if (v->blame.kind == B_HANG)
		return mo_strdup(j->hang.text);
	if (blame_gpu_held(&v->blame) && v->blame.step->refused_text)
		return mo_printf("%s on %s", v->blame.step->refused_text, f->node);
	if (v->blame.rank)
		return mo_printf("rank %lld on %s died: %s", (long long)v->blame.rank->rank,
				 f->node, f->cause);
	return mo_printf("%s%s%s", f->cause, f->node ? " on " : "", f->node ? f->node : "");
}

/* What happened and what follows, for a job that goes on. */
static char *retry_reason(const struct job *j, const char *what, const struct verdict *v,
			  const struct failing *f, const struct remedy *d,
			  const struct budget *budget)
{
	bool away = d->action == DO_ELSEWHERE || d->action == DO_CORDON;
	_cleanup_(mo_freep) char *count = NULL, *next = v->blame.kind == B_NUMBERS
								? numbers_next(j)
								: suspect_next(j);

	if (d->action == DO_WAIT)
		return mo_printf("%s; %s: it is tried again until that is mended, and no failure "
				 "is counted",
				 what, v->why ? v->why : f->class);
	if (budget->any > 1)
		count = streak_budget_text(j, budget, d->budget == BUDGET_PATIENT);
	return mo_printf("%s; %s%s%s%s%s", what, next,
			 away && f->node ? ", elsewhere than on " : "",
			 away && f->node ? f->node : "", count ? "; " : "", count ? count : "");
}

/* It may have died of what it loaded: its own words, a crash, or none. */
static bool speaks_of_load(const struct verdict *v)
{
	return v->class == FAIL_USER_ERROR || v->class == FAIL_SUSPECT ||
	       v->class == FAIL_NUMERICAL || mo_streq(v->rule, "torn-checkpoint") ||
	       (v->class == FAIL_TRANSIENT && v->n_lines == 0);
}

/* Busy ports are no failure: nothing was wrong with the job. One that is busy every time is the
 * program's own. */
static bool ports_were_busy(struct turn *t, const struct job *j, struct verdict *v)
{
	_cleanup_(mo_freep) char *reason = NULL;
	const struct blame *b = &v->blame;
	bool said = j->progress.watermark == MO_NONE && mo_streq(v->rule, "port"),
	     refused = b->kind == B_REFUSED && mo_streq(b->step->refused_cause, "port-busy");
	int64_t tries = refused ? PORT_TRIES_MAX : PORT_SAID_MAX;

	if (!b->step || (!said && !refused))
		return false;
	if (j->streak.ports_busy + 1 >= tries) {
		v->class = said ? FAIL_USER_ERROR : v->class;
		return false;
	}
	reason = mo_printf("ports from %lld on %s were busy; the next ones are tried",
			   (long long)j->run.port, b->step->node);
	job_move(t, j->id, T_RETRY, true, FOLLOWS_BUSY_PORTS, reason);
	return true;
}

static struct failing failing_of(const struct state *s, const struct job *j,
				 const struct verdict *v, const char *cause)
{
	return (struct failing){
		.class = failure_class_names[v->class],
		.rule = v->n_lines ? v->rule : NULL,
		.cause = cause,
		.node = v->blame.step ? v->blame.step->node : j->failure.node,
		.at = j->failure.at,
		.loading = speaks_of_load(v) && suspect_counts(s, j, &v->blame),
	};
}

static void after_failure(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	struct blame root = blame_root(&t->core->state, j);
	const struct step *outside = blame_outside(j, &root);
	_cleanup_(mo_freep) char *cause = NULL, *reason = NULL, *end = NULL, *node = NULL,
				 *what = NULL, *twice = NULL;
	_cleanup_(verdict_done) struct verdict v = { 0 };

	mo_assert(id > 0);
	if (outside) {
		reason = mo_printf("the step on %s was stopped there, not by moectl; the next "
				   "attempt is prepared",
				   outside->node);
		job_move(t, id, T_RETRY, true, 0, reason);
		return;
	}
	v = verdict_of(t->core, j, &root);
	if (ports_were_busy(t, j, &v))
		return;
	cause = blame_cause(j, &v.blame);
	struct failing f = failing_of(&t->core->state, j, &v, cause);
	struct remedy d = remedy_of(j, &v, &f);
	struct budget budget = streak_budget(j, &f, state_newest_checkpoint(j));
	bool away = d.action == DO_ELSEWHERE || d.action == DO_CORDON,
	     skips = numbers_may_skip(j, v.class);
	int64_t pause = away && v.class == FAIL_NODE_FAULT ? 0 : streak_pause(j, &f);
	struct skip skip = skips ? numbers_skip(j, t->now) : (struct skip){ 0 };

	end = give_up_reason(j, &v, &f, &d, &budget);
	f.node = node = mo_strdup(f.node);
	twice = d.action == DO_ELSEWHERE ? device_named_twice(t, j, &v, cause) : NULL;
	what = what_happened(j, &v, &f);
	incident_emit(t, j,
		      &(struct incident_of){ .verdict = &v,
					     .cause = cause,
					     .action =
						     end ? "stop" : failure_action_names[d.action],
					     .elsewhere = !end && away,
					     .uncounted = d.budget == BUDGET_UNLIMITED,
					     .in_a_row = budget.same,
					     .skip = !end && skips ? &skip : NULL });
	if (f.loading)
		suspect_blame(t, id, &v.blame, cause);
	if (d.action == DO_CORDON || twice)
		elsewhere_cordon(t, id, node, FAILURE_CORDON,
				 twice       ? twice
				 : v.n_lines ? v.lines[0]
					     : cause);
	end = end ? end : suspect_give_up(j, cause);
	if (end) {
		job_move(t, id, T_GIVE_UP, true, 0, end);
		return;
	}
	reason = retry_reason(j, what, &v, &f, &d, &budget);
	if (skips) {
		_cleanup_(mo_freep) char *before = reason, *left = numbers_skip_text(j);

		reason = mo_printf("%s; %s", before, left);
		numbers_tell_skip(t, id);
	}
	health_check_begin(t, id, v.class == FAIL_SUSPECT || v.class == FAIL_NUMERICAL, node);
	job_retry(t, id, pause, reason);
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
		struct blame root = blame_root(&t->core->state, j);

		if (!blame_outside(j, &root)) {
			_cleanup_(verdict_done) struct verdict v = verdict_of(t->core, j, &root);
			_cleanup_(mo_freep) char *cause = blame_cause(j, &v.blame);
			struct failing f = failing_of(&t->core->state, j, &v, cause);

			incident_emit(t, j,
				      &(struct incident_of){
					      .verdict = &v,
					      .cause = cause,
					      .action = intent_names[j->intent],
					      .in_a_row = streak_budget(j, &f,
									state_newest_checkpoint(j))
								  .same });
		}
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
