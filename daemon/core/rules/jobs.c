/* What follows from a job's own state: that it failed, is over, runs, waits for a silent node,
 * has too many checkpoints, ran out of time, or leaves a node that is drained. Called by core.c
 * for each job that a turn touched, until nothing follows any more. A job's state changes
 * through job_move() alone. */
#include "daemon/core/rules/jobs.h"

#include "daemon/core/rules/plan_drift.h"
#include "daemon/core/rules/config.h"
#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/hang.h"
#include "daemon/core/rules/policy.h"
#include "daemon/core/rules/straggler.h"
#include "daemon/core/rules/straggler_leave.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/state/waiting.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/doubt.h"

static bool try_move(struct turn *t, int64_t id, int trigger, const char *reason)
{
	const struct job *j = job_find(&t->core->state, id);
	int next = job_row_find(j, trigger)->next;

	if (next < 0 || next == j->state)
		return false;
	job_move(t, id, trigger, false, 0, reason);
	return true;
}

/* The silent nodes of a job: the first one's name, and when the last of them was heard. */
static const char *silent_node(const struct state *s, const struct job *j, int64_t *ret_heard)
{
	const char *first = NULL;

	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		const struct node *n =
			st->attempt == j->attempt && !step_dead(st) ? node_find(s, st->node) : NULL;

		if (!n || n->state != NODE_DOWN)
			continue;
		*ret_heard = first ? MO_MAX(*ret_heard, node_heard_at(s, n)) : node_heard_at(s, n);
		first = first ? first : n->name;
	}
	return first;
}

static bool wait_node(struct turn *t, int64_t id, bool wait)
{
	struct record r;

	record_init(&r, REC_WAIT_NODE);
	r.job = id;
	r.wait_node->waits = wait;
	turn_emit(t, &r);
	return true;
}

/* Lost contact is not death: nothing is killed, nothing restarts; an advancing iteration
 * disproves even the suspicion. */
static bool judge_silence(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	int64_t heard = 0, limit = progress_limit_us(j, 1);
	const char *silent = j->counts.silent > 0 ? silent_node(&t->core->state, j, &heard) : NULL;
	int64_t progress_at = job_progress_at(&t->core->state, j);
	bool advances = silent && progress_at > heard && t->now - progress_at <= limit;
	_cleanup_(mo_freep) char *reason = NULL;

	if (j->failure.decided || j->state == JOB_STOPPING)
		return false;
	if (advances)
		turn_deadline(t, progress_at + limit + 1);
	if (silent && !advances && !j->failure.waiting_node) {
		struct waiting w = waiting_make(WAITING_SILENT);

		w.node = mo_strdup(silent);
		reason = waiting_text(&w);
		waiting_done(&w);
		wait_node(t, id, true);
		job_move(t, id, T_NODE_DOWN, false, 0, reason);
		return true;
	}
	if (j->failure.waiting_node && (!silent || advances)) {
		wait_node(t, id, false);
		if (!try_move(t, id, T_NODE_BACK, NULL))
			job_reason(t, id, NULL, false);
		return true;
	}
	return false;
}

static bool judge_checkpoints(struct turn *t, int64_t id)
{
	const struct checkpoint *surplus = checkpoint_surplus(job_find(&t->core->state, id));
	struct record r;

	if (!surplus)
		return false;
	record_init(&r, REC_CHECKPOINT);
	r.job = id;
	r.checkpoint = mo_desc_dup(&checkpoint_desc, surplus);
	checkpoint_remove(job_find(&t->core->state, id), r.checkpoint);
	turn_emit(t, &r);
	return true;
}

static bool judge_time(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	int64_t limit = j->spec.recipe.time_limit_us, until = job_time_up(j);
	_cleanup_(mo_freep) char *reason = NULL;
	int next;

	if (until == INT64_MAX)
		return false;
	next = job_row_find(j, T_TIME_LIMIT)->next;
	if (next < 0)
		return false;
	if (t->now < until) {
		turn_deadline(t, until);
		return false;
	}
	reason = mo_printf("time limit of %lld s reached", (long long)(limit / 1000000));
	job_intent(t, id, INTENT_TIME_LIMIT, false, j->restart_from);
	job_move(t, id, T_TIME_LIMIT, false, 0, reason);
	return true;
}

/* A drained node that does not wait for the job's end: now, or after the next complete
 * checkpoint. */
static bool judge_drain(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *reason = NULL;

	if (j->counts.drained == 0 || job_row_find(j, T_DRAIN)->next < 0)
		return false;
	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct node *n = node_find(&t->core->state, j->run.places[i].node);
		bool due = n && n->drain.asked && mo_streq(n->drain.when, "now");

		if (n && n->drain.asked && mo_streq(n->drain.when, "checkpoint"))
			due |= checkpoint_since(j, n->drain.at) != NULL;
		if (!due)
			continue;
		reason = mo_printf("node %s is drained; the job moves elsewhere", n->name);
		job_intent(t, id, INTENT_DRAIN, false, j->restart_from);
		job_move(t, id, T_DRAIN, false, 0, reason);
		return true;
	}
	return false;
}

/* Stopped where it runs, by a person or by the shutdown of its machine: the rest of the job gets
 * its planned stop too, so that it can save together, and starts again. No failure. */
static bool judge_outside(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *reason = NULL;

	if (j->failure.decided || j->run.n_places == 0)
		return false;
	for (size_t i = 0; i < j->n_steps && !reason; i++) {
		const struct step *st = &j->steps[i];
		/* few steps are looked up: this runs for each note of each of ten thousand */
		bool asks = t->core->n_leaving > 0 || st->outside;
		const struct node *n = asks && st->attempt == j->attempt
					       ? node_find(&t->core->state, st->node)
					       : NULL;

		if (n && (st->outside || (st->refused && n->boot.leaving)))
			reason = mo_printf("the step on %s was stopped there, not by moectl%s; the "
					   "job starts again",
					   st->node,
					   n->boot.leaving ? " (its machine is going down)"
							   : " (systemctl stop, or a shutdown)");
		else if (n && n->boot.leaving && !step_dead(st) &&
			 mo_streq(n->boot.id, st->boot_id))
			reason = mo_printf("the machine of node %s is going down; the job moves "
					   "elsewhere",
					   st->node);
	}
	if (!reason || job_row_find(j, T_DRAIN)->next < 0)
		return false;
	job_intent(t, id, INTENT_DRAIN, false, j->restart_from);
	job_move(t, id, T_DRAIN, false, 0, reason);
	return true;
}

bool job_act(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);

	if (!j || job_state_final(j->state))
		return false;
	if (j->run.n_places > 0) {
		if (judge_outside(t, id) || hang_act(t, id) || policy_fail(t, id))
			return true;
		if (policy_all_dead(j) && !config_awaited(j) &&
		    !doubt_awaited(&t->core->state, j)) {
			policy_conclude(t, id);
			return true;
		}
		if (j->counts.started == (int64_t)j->run.n_places && try_move(t, id, T_UP, NULL))
			return true;
		if (j->progress.iteration != MO_NONE && try_move(t, id, T_ITERATION, NULL))
			return true;
		if (judge_silence(t, id) || judge_drain(t, id) || judge_checkpoints(t, id) ||
		    plan_drift_act(t, id) || straggler_act(t, id) || straggler_leave_act(t, id))
			return true;
	}
	if (j->checks.n_nodes + j->checks.n_done > 0 && health_check_act(t, id))
		return true;
	return judge_time(t, id);
}
