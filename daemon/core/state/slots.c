/* See slots.h. */
#include "daemon/core/state/slots.h"

#include <string.h>

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

bool node_awaited(const struct node *n)
{
	return n->state == NODE_UP && !n->agent.reconciled && !n->drain.asked && !n->boot.leaving;
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

static void score(const struct state *s, struct slots *ret)
{
	double *scores = mo_alloc_array(s->n_nodes, sizeof(*scores));

	lemon_scores(s, s->time, scores);
	for (size_t i = 0; i < s->n_nodes; i++)
		ret->nodes[i]->lemon = lemon_points(scores[i]);
	free(scores);
}

static void take(struct node_slots *slots, const struct place *p)
{
	size_t retained = 0;

	for (size_t k = 0; k < slots->n_free; k++) {
		bool taken = false;

		for (size_t m = 0; m < p->n_gpus; m++)
			taken |= p->gpus[m] == slots->free[k];
		if (!taken)
			slots->free[retained++] = slots->free[k];
	}
	slots->n_free = retained;
}

/* As if it had no jobs. */
static void make_idle(const struct state *s, const struct node *n, struct node_slots *io)
{
	const struct check_result *finding;
	const char *why;

	free(io->free);
	io->free = NULL;
	io->n_free = 0;
	/* a job that is not of this state holds nothing in it (dryrun.c) */
	io->spare_of = job_find(s, n->spare.job) ? n->spare.job : MO_NONE;
	io->usable = !node_unfit(s, n);
	io->well = health_standard(n, &finding, &why);
	for (size_t k = 0; k < n->info.n_gpus; k++)
		/* versions before took a hello without it */
		if (n->info.gpus[k].index >= 0)
			mo_ints_add(&io->free, &io->n_free, n->info.gpus[k].index);
}

void node_slots_make(const struct state *s, const struct node *n, const int64_t *jobs,
		     size_t n_jobs, struct node_slots *io)
{
	make_idle(s, n, io);
	for (size_t i = 0; i < n_jobs; i++) {
		const struct job *j = job_find(s, jobs[i]);
		const struct place *p = j ? place_of(j, n->name) : NULL;

		if (p)
			take(io, p);
		for (const struct step *st = j ? step_next(j, n->name, -1) : NULL; st;
		     st = step_next(j, n->name, st->attempt))
			io->usable &= !step_uncertain(s, st);
	}
}

bool node_slots_equal(const struct node_slots *a, const struct node_slots *b)
{
	return a->n_free == b->n_free && a->usable == b->usable && a->well == b->well &&
	       a->spare_of == b->spare_of &&
	       (a->n_free == 0 || memcmp(a->free, b->free, a->n_free * sizeof(*a->free)) == 0);
}

void node_slots_done(struct node_slots *slots)
{
	free(slots->free);
	memset(slots, 0, sizeof(*slots));
}

int64_t node_slots_open(const struct node_slots *slots)
{
	return slots->usable && slots->spare_of == MO_NONE ? (int64_t)slots->n_free : 0;
}

static void slots_count(const struct state *s, const struct job *j, struct slots *slots, bool moves)
{
	if (!moves)
		slots_take(slots, s, j->run.places, j->run.n_places);
	for (size_t i = 0; i < j->n_steps; i++) {
		size_t at;

		if (step_uncertain(s, &j->steps[i]) && node_at(s, j->steps[i].node, &at))
			slots->nodes[at]->usable = false;
	}
}

void slots_init(const struct state *s, struct slots *ret)
{
	slots_init_without(s, NULL, ret);
}

void slots_init_without(const struct state *s, const struct job *moves, struct slots *ret)
{
	*ret = (struct slots){ .n = s->n_nodes, .job = MO_NONE };
	ret->own = mo_alloc_array(s->n_nodes, sizeof(*ret->own));
	ret->nodes = mo_alloc_array(s->n_nodes, sizeof(*ret->nodes));
	for (size_t i = 0; i < s->n_nodes; i++) {
		ret->nodes[i] = &ret->own[i];
		make_idle(s, s->nodes[i], ret->nodes[i]);
	}
	score(s, ret);
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
	free(slots->strange);
	slots->strange = NULL;
	if (j->spec.recipe.spares <= 0)
		return;
	slots->strange = mo_alloc_array(slots->n, sizeof(*slots->strange));
	for (size_t i = 0; i < slots->n; i++)
		slots->strange[i] = slots->nodes[i]->spare_of != j->id ? 3
				    : s->nodes[i]->spare.passed        ? 1
								       : 2;
	for (size_t i = 0; i < j->run.n_ranks; i++) {
		size_t at;

		if (node_at(s, j->run.ranks[i].node, &at))
			slots->strange[at] = 0;
	}
}

void slots_done(struct slots *slots)
{
	for (size_t i = 0; slots->own && i < slots->n; i++)
		node_slots_done(&slots->own[i]);
	free(slots->own);
	free(slots->nodes);
	free(slots->strange);
	memset(slots, 0, sizeof(*slots));
}

void slots_take(struct slots *slots, const struct state *s, const struct place *places,
		size_t n_places)
{
	mo_assert(slots->n == s->n_nodes);
	for (size_t i = 0; i < n_places; i++) {
		size_t at;

		if (node_at(s, places[i].node, &at))
			take(slots->nodes[at], &places[i]);
	}
}

void tally_count(const struct state *s, const struct slots *slots, struct tally *ret)
{
	mo_assert(slots->n == s->n_nodes);
	*ret = (struct tally){ 0 };
	for (size_t i = 0; i < s->n_nodes; i++) {
		ret->gpus += (int64_t)s->nodes[i]->info.n_gpus;
		ret->free += node_slots_open(slots->nodes[i]);
		ret->awaited += node_awaited(s->nodes[i]);
		ret->nodes[node_shown_state(s->nodes[i])]++;
	}
	for (size_t i = 0; i < s->n_jobs; i++)
		ret->jobs[s->jobs[i]->state]++;
}

void tally_of(const struct state *s, struct tally *ret)
{
	struct slots slots;

	if (s->tally && s->tally->n_stale == 0) {
		*ret = *s->tally;
		return;
	}
	slots_init(s, &slots);
	tally_count(s, &slots, ret);
	slots_done(&slots);
}
