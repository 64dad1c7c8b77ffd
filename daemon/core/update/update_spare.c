/* See update_spare.h. */
#include "daemon/core/update/update_spare.h"

#include <errno.h>

#include "daemon/core/state/live.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/slots.h"

void spare_ask(struct node *n, int64_t time)
{
	n->spare.passed = false;
	n->spare.asked = n->spare.job != MO_NONE ? time : MO_NONE;
}

void spare_end(struct core *c, struct node *n, int64_t time)
{
	struct job *j = job_edit(&c->owned, n->spare.job);

	if (j) /* it may have been taken out (moed --quarantine) */
		j->spare_us =
			MO_MAX(0, j->spare_us) + n->spare.gpus * MO_MAX(0, time - n->spare.since);
	c->n_spares -= n->spare.job != MO_NONE;
	n->spare.job = n->spare.gpus = n->spare.since = MO_NONE;
	spare_ask(n, time);
	slots_touch(c, n->name);
	c->queue_dirty = true;
}

void spares_end(struct core *c, const struct job *j, int64_t time)
{
	for (size_t i = 0; c->n_spares && i < c->owned.n_nodes; i++)
		if (c->owned.nodes[i]->spare.job == j->id)
			spare_end(c, c->owned.nodes[i], time);
}

int update_spare(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);

	if (!n || r->job == MO_NONE)
		return -EINVAL;
	switch (r->spare->step) {
	case SPARE_KEPT:
		c->n_spares += n->spare.job == MO_NONE;
		n->spare.job = r->job;
		n->spare.gpus = (int64_t)n->info.n_gpus;
		n->spare.since = r->time;
		spare_ask(n, r->time);
		break;
	case SPARE_PASSED: n->spare.passed = true; break;
	case SPARE_LEFT: spare_end(c, n, r->time); break;
	default: return -EINVAL;
	}
	c->queue_dirty = true;
	return 0;
}
