/* When ranks died, as the controller maps it from the clocks of their nodes, and who is called the
 * first of several: held against the times at which they did. */
#include "tests/sim/moed.h"
#include "tests/sim/check.h"

#include <stdlib.h>

#include "daemon/core/state/heard.h"

/* A node that its hypervisor stopped is heard anew for so long until its clock is believed. */
#define BELIEVED (90 * S)

/* Whether the controller can have heard what the clock of the death said: it is of this boot, whose
 * clocks did not stand since. */
static bool comparable(const struct sim *s, const struct proc *p)
{
	const struct simnode *n = &s->nodes[p->step->node];
	const struct node *known = node_find(core_state(s->ctl.core), n->name);
	char boot[64];

	node_boot_name(n, boot);
	return known && n->power && p->step->boot == n->boot && mo_streq(known->boot.id, boot) &&
	       n->clock.frozen_until <= p->ended_at && n->clock.frozen_until + BELIEVED < s->now;
}

static int64_t mapped(const struct sim *s, const struct proc *p, int64_t *ret_error)
{
	return node_clock_time(core_state(s->ctl.core), s->nodes[p->step->node].name,
			       p->ended_mono_ns, ret_error);
}

static void check_death(struct sim *s, const struct proc *p)
{
	int64_t error = 0, at = mapped(s, p, &error), truth = p->ended_at + s->ctl.skew;

	if (at != MO_NONE && llabs(at - truth) > error)
		sim_violation(s,
			      "rank %lld of j-%lld attempt %lld died on %s %lld us %s than its "
			      "node's clock is taken to say, within %lld us",
			      (long long)p->rank, (long long)p->step->job,
			      (long long)p->step->attempt, s->nodes[p->step->node].name,
			      llabs(at - truth), truth < at ? "earlier" : "later",
			      (long long)error);
}

/* A rank that ended by itself, badly, as the controller knows. */
static bool of_itself(const struct rank *k)
{
	return k->exit && k->exit->code != 0 && !mo_streq(k->exit->cause, "killed") &&
	       !mo_streq(k->exit->cause, "stopped") && (k->exit->code > 0 || k->exit->signal > 0);
}

/* Signals that name no echo of another death, and codes that are no word for a signal. */
static bool same_kind(const struct rank *a, const struct rank *b)
{
	return (a->exit->signal > 0) == (b->exit->signal > 0) && a->exit->code <= 128 &&
	       b->exit->code <= 128;
}

/* Nobody died clearly before the rank that is called the first. */
static void check_first(struct sim *s, const struct job *j, const struct attempt *a, int64_t first,
			bool said)
{
	const struct proc *p = a->ranks[first];
	bool at_once = false;

	for (int64_t i = 0; i < a->world; i++) {
		const struct proc *other = a->ranks[i];
		int64_t error = 0, other_error = 0;

		if (!other || other->alive || other->step == p->step || !comparable(s, other) ||
		    !of_itself(&j->run.ranks[i]) || mapped(s, p, &error) == MO_NONE ||
		    mapped(s, other, &other_error) == MO_NONE)
			continue;
		error += other_error;
		at_once |= llabs(other->ended_at - p->ended_at) <= error;
		/* by what ranks said, another one may count for more (verdict.c) */
		if (!said && same_kind(&j->run.ranks[i], &j->run.ranks[first]) &&
		    other->ended_at < p->ended_at - 2 * error)
			sim_violation(s,
				      "rank %lld of j-%lld attempt %lld is called the first to "
				      "die, but rank %lld did %lld us before, and clocks are %lld "
				      "us off",
				      (long long)first, (long long)j->id, (long long)j->attempt,
				      (long long)i, (long long)(p->ended_at - other->ended_at),
				      (long long)error);
	}
	s->fault_counts[F_DEATHS_CONCURRENT] += at_once;
}

void check_deaths(struct sim *s, const struct record *r)
{
	const struct incident *inc = &r->incident->details;
	const struct attempt *a = sim_past_attempt(s, r->job, inc->attempt);
	const struct job *j = job_find(core_state(s->ctl.shadow), r->job);
	int64_t first = inc->first_rank;

	for (int64_t i = 0; a && i < a->world; i++)
		if (a->ranks[i] && !a->ranks[i]->alive && comparable(s, a->ranks[i]))
			check_death(s, a->ranks[i]);
	if (!a || first < 0 || !a->ranks[first] || a->ranks[first]->alive || !j ||
	    j->attempt != inc->attempt || j->run.n_ranks != (size_t)a->world ||
	    !of_itself(&j->run.ranks[first]) || !comparable(s, a->ranks[first]) ||
	    !(mo_starts_with(inc->cause, "exit code") || mo_starts_with(inc->cause, "signal")))
		return;
	s->fault_counts[F_DEATHS_ORDERED] +=
		j->failure.node && !mo_streq(j->failure.node, inc->node);
	check_first(s, j, a, first, inc->rule != NULL);
}
