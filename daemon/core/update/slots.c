/* See slots.h. Nodes are remembered by their live parts, which stay where they are. */
#include "daemon/core/update/slots.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/lemon.h"
#include "lib/base/assert.h"

#define SCORE_EVERY_US (3600 * 1000000LL)

static void touch(struct core *c, struct live *l)
{
	if (l->stale)
		return;
	l->stale = true;
	*MO_GROW(c->stale, c->tally.n_stale) = l;
}

void slots_touch(struct core *c, const char *node)
{
	struct live *l = core_live(c, node);

	if (l)
		touch(c, l);
}

void slots_touch_places(struct core *c, const struct job *j)
{
	for (size_t i = 0; i < j->run.n_places; i++)
		slots_touch(c, j->run.places[i].node);
}

void slots_touch_all(struct core *c)
{
	c->looked += (int64_t)c->owned.n_nodes;
	for (size_t i = 0; i < c->owned.n_nodes; i++)
		touch(c, c->lives[i]);
}

void slots_changed(struct core *c, const struct record *r)
{
	switch (r->type) {
	case REC_EVENT: return;
	case REC_NODE: slots_touch(c, r->hello->said.node); return;
	case REC_PLACE:
		for (size_t i = 0; i < r->place->n_places; i++)
			slots_touch(c, r->place->places[i].node);
		return;
	case REC_INCIDENT:
	case REC_STRAGGLER:
	case REC_CHECK:
	case REC_HISTORY: c->scored_at = MO_NONE; break;
	default: break;
	}
	slots_touch(c, r->node);
}

static void tally_node(struct core *c, const struct live *l, int sign)
{
	c->tally.gpus += sign * l->counted.gpus;
	c->tally.free += sign * l->counted.free;
	c->tally.awaited += sign * l->counted.awaited;
	c->tally.nodes[l->counted.state] += sign * l->counted.nodes;
}

static void refresh(struct core *c, struct live *l)
{
	const struct node *n = l->node;

	node_slots_make(&c->state, n, l->jobs, l->n_jobs, &l->slots);
	tally_node(c, l, -1);
	l->counted.gpus = (int64_t)n->info.n_gpus;
	l->counted.free = node_slots_open(&l->slots);
	l->counted.awaited = node_awaited(n);
	l->counted.state = node_shown_state(n);
	l->counted.nodes = 1;
	tally_node(c, l, 1);
	l->stale = false;
}

void slots_refresh(struct core *c)
{
	mo_assert(c->slots.n == c->state.n_nodes);
	for (size_t i = 0; i < c->tally.n_stale; i++)
		refresh(c, c->stale[i]);
	c->tally.n_stale = 0;
}

void slots_score(struct core *c)
{
	const struct state *s = &c->state;
	double *scores;

	if (c->scored_at != MO_NONE && s->time - c->scored_at < SCORE_EVERY_US &&
	    s->time >= c->scored_at)
		return;
	scores = mo_alloc_array(s->n_nodes, sizeof(*scores));
	lemon_scores(s, s->time, scores);
	for (size_t i = 0; i < s->n_nodes; i++)
		c->lives[i]->slots.lemon = lemon_points(scores[i]);
	free(scores);
	c->looked += (int64_t)s->n_nodes;
	c->scored_at = s->time;
}

void slots_reindex(struct core *c)
{
	memset(c->tally.jobs, 0, sizeof(c->tally.jobs));
	for (size_t i = 0; i < c->owned.n_jobs; i++)
		tally_job(c, c->owned.jobs[i]->state, 1);
	c->owned.tally = &c->tally;
	c->scored_at = MO_NONE;
	slots_touch_all(c);
}

void tally_job(struct core *c, int state, int sign)
{
	c->tally.jobs[state] += sign;
	mo_assert(c->tally.jobs[state] >= 0);
}
