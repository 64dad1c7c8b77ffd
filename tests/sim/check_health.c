/* What follows from findings of nodes' health. */
#include "tests/sim/check.h"

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
