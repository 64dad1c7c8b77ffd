/* What the controller says of attempts, nodes and supervisors is true, and nothing is ended by a
 * word that is not. */
#include "tests/sim/check.h"

#include <math.h>

#include "daemon/core/rules/straggler_leave.h"
#include "daemon/core/state/numbers.h"

/* for an answer, of which a beat may have passed when the controller stood still */
#define AGENT_WAITS (4500 * MS)
#define PAUSE_REPORTED (3 * S)
#define STOOD (10 * S) /* it may be judged for so long by what was seen before */

/* An attempt is called failed only for something that broke: a planned stop, whoever ordered it, is
 * no failure. */
void check_fail(struct sim *s, const struct record *r)
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
void check_loss(struct sim *s, const struct record *r)
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

/* No false verdict: a node that nothing happened to is not called down, nor a supervisor that
 * answers hung. */
void check_verdict(struct sim *s, const struct record *r)
{
	int n = sim_node(s, r->node);
	const struct simnode *node = &s->nodes[n];
	const struct simstep *st;
	int64_t now = wall_stored_at(s);
	char boot[64];

	node_boot_name(node, boot);
	/* agents gave up their requests: they say hello again */
	if (now - s->ctl.paused_until < PAUSE_REPORTED && s->ctl.paused_for > AGENT_WAITS)
		return;
	if (r->type == REC_NODE_STATE && r->node_state->state != NODE_UP &&
	    mo_streq(node_find(core_state(s->ctl.shadow), r->node)->boot.id, boot) &&
	    node->ok_since &&
	    now - MO_MAX(node->ok_since, node->trouble_at) >
		    (r->node_state->state == NODE_DOWN ? 20 : 12) * S)
		sim_violation(s,
			      "%s is called silent although its agent works and no message was "
			      "lost for %lld s",
			      r->node,
			      (long long)((now - MO_MAX(node->ok_since, node->trouble_at)) / S));
	if (r->type != REC_HUNG || r->hung->reach == REACH_ANSWERS)
		return;
	st = step_of(s, n, r->job, r->attempt);
	if (st && st->stepd && !st->hung &&
	    (!st->hung_at || now - MO_MAX(st->hung_at, s->ctl.paused_until) > 20 * S))
		sim_violation(s,
			      "the supervisor of j-%lld attempt %lld on %s is called hung although "
			      "it answers",
			      (long long)r->job, (long long)r->attempt, r->node);
}

/* No attempt is ended that moves, however slowly. */
void check_hang(struct sim *s, const struct record *r)
{
	struct attempt *a = sim_attempt(s, r->job, r->attempt);

	if (r->hang->stage < 0 && a && train_runs(a))
		s->fault_counts[F_HANG_CLEARED]++;
	if (!r->hang->acts)
		return;
	s->fault_counts[F_HANG]++;
	if (a && train_runs(a) && !clock_stood(s, a, STOOD))
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
void check_straggler(struct sim *s, const struct record *r)
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
