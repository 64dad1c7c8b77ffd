/* Which slots are free, of nodes that take work; what is given away of them while placing. */
#include "daemon/core/rules/slots.h"

#include <string.h>

#include "daemon/core/rules/place.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/lemon.h"
#include "lib/base/assert.h"

const char *node_unfit(const struct state *s, const struct node *n)
{
	(void)s;
	if (n->drain.asked)
		return n->drain.done ? "drained" : "draining";
	if (n->state != NODE_UP)
		return node_state_names[n->state];
	if (!n->agent.reconciled)
		return "not heard since the controller started";
	if (n->agent.token_expired)
		return "its token has expired";
	if (n->agent.obeys != MO_NONE && n->agent.obeys > s->epoch)
		return "its agent obeyed a later state of this controller, or another controller";
	if (n->boot.leaving)
		return "its machine is going down";
	if (n->strays.any)
		return "it holds a step that this controller never stored";
	return NULL;
}

const char *step_uncertain(const struct state *s, const struct step *st)
{
	const struct node *n = node_find(s, st->node);

	if (st->forgotten || (st->gone && st->ended))
		return NULL;
	if (!n || !mo_streq(n->boot.id, st->boot_id))
		return NULL; /* that boot is over */
	if (st->gone)
		return "it was fenced; a step of before the fence may still be there";
	if (st->missing)
		return "a step on it is not known to its agent any more";
	if (st->hung)
		return "the end of a step on it is uncertain (hung supervisor)";
	return st->n_stuck_pids ? "it holds a process that cannot be killed" : NULL;
}

static void slots_count(const struct state *s, const struct job *j, struct slots *slots, bool moves)
{
	if (!moves)
		slots_take(slots, s, j->run.places, j->run.n_places);
	for (size_t i = 0; i < j->n_steps; i++) {
		size_t at;

		if (step_uncertain(s, &j->steps[i]) && node_at(s, j->steps[i].node, &at))
			slots->usable[at] = false;
	}
}

/* Two failures of half a point each, some time ago, are still a point. */
static void score(const struct state *s, int64_t *ret)
{
	double *scores = mo_alloc_array(s->n_nodes, sizeof(*scores));

	lemon_scores(s, s->time, scores);
	for (size_t i = 0; i < s->n_nodes; i++)
		ret[i] = (int64_t)(scores[i] + 0.25);
	free(scores);
}

void slots_init(const struct state *s, struct slots *ret)
{
	slots_init_without(s, NULL, ret);
}

void slots_init_without(const struct state *s, const struct job *moves, struct slots *ret)
{
	ret->n = s->n_nodes;
	ret->free = mo_alloc_array(s->n_nodes, sizeof(*ret->free));
	ret->n_free = mo_alloc_array(s->n_nodes, sizeof(*ret->n_free));
	ret->usable = mo_alloc_array(s->n_nodes, sizeof(*ret->usable));
	ret->well = mo_alloc_array(s->n_nodes, sizeof(*ret->well));
	ret->lemon = mo_alloc_array(s->n_nodes, sizeof(*ret->lemon));
	ret->spare_of = mo_alloc_array(s->n_nodes, sizeof(*ret->spare_of));
	ret->strange = mo_alloc_array(s->n_nodes, sizeof(*ret->strange));
	ret->job = MO_NONE;
	score(s, ret->lemon);
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct node *n = s->nodes[i];
		const struct check_result *finding;
		const char *why;

		/* a job that is not of this state holds nothing in it (dryrun.c) */
		ret->spare_of[i] = job_find(s, n->spare.job) ? n->spare.job : MO_NONE;
		ret->usable[i] = !node_unfit(s, n);
		ret->well[i] = health_standard(n, &finding, &why);
		for (size_t k = 0; k < n->info.n_gpus; k++)
			/* versions before took a hello without it */
			if (n->info.gpus[k].index >= 0)
				mo_ints_add(&ret->free[i], &ret->n_free[i], n->info.gpus[k].index);
	}
	for (size_t i = 0; i < state_n_holders(s); i++) {
		const struct job *j = state_holder(s, i);

		if (j && (j->run.n_places || j->n_steps))
			slots_count(s, j, ret, j == moves);
	}
	mo_assert(ret->n == s->n_nodes);
}

/* Nodes that it had know the job, have its image, and were not to blame; a spare that was checked
 * comes next. */
void slots_for(struct slots *slots, const struct state *s, const struct job *j)
{
	slots->job = j->id;
	memset(slots->strange, 0, slots->n * sizeof(*slots->strange));
	if (j->spec.recipe.spares <= 0)
		return;
	for (size_t i = 0; i < slots->n; i++)
		slots->strange[i] = slots->spare_of[i] != j->id ? 3
				    : s->nodes[i]->spare.passed ? 1
								: 2;
	for (size_t i = 0; i < j->run.n_ranks; i++) {
		size_t at;

		if (node_at(s, j->run.ranks[i].node, &at))
			slots->strange[at] = 0;
	}
}

void slots_done(struct slots *slots)
{
	for (size_t i = 0; i < slots->n; i++)
		free(slots->free[i]);
	free(slots->free);
	free(slots->n_free);
	free(slots->usable);
	free(slots->well);
	free(slots->lemon);
	free(slots->spare_of);
	free(slots->strange);
	memset(slots, 0, sizeof(*slots));
}

void slots_take(struct slots *slots, const struct state *s, const struct place *places,
		size_t n_places)
{
	mo_assert(slots->n == s->n_nodes);
	for (size_t i = 0; i < n_places; i++) {
		size_t at, retained = 0;
		bool known = node_at(s, places[i].node, &at);

		for (size_t k = 0; known && k < slots->n_free[at]; k++) {
			bool taken = false;

			for (size_t m = 0; m < places[i].n_gpus; m++)
				taken |= places[i].gpus[m] == slots->free[at][k];
			if (!taken)
				slots->free[at][retained++] = slots->free[at][k];
		}
		if (known)
			slots->n_free[at] = retained;
	}
}
