/* See wake.h. */
#include "daemon/core/update/wake.h"

#include "daemon/core/update/verify.h"
#include "lib/base/assert.h"

void wake_node(struct core *c, const char *node)
{
	struct live *l = core_live(c, node);

	mo_assert(node && *node);
	if (!l || l->wakes)
		return;
	l->wakes = true;
	*MO_GROW(c->wake_nodes, c->n_wake_nodes) = l;
}

static void wake_verify(struct core *c, const struct record *r)
{
	const struct job *j = job_find(&c->owned, r->job);

	for (int64_t part = 0; j && part <= j->verify.parts; part++) {
		const char *node = verify_node(&c->owned, j, part);

		if (node)
			wake_node(c, node);
	}
}

void wake_changed(struct core *c, const struct record *r)
{
	switch (r->type) {
	case REC_JOB:
	case REC_PLACE:
	case REC_FAIL:
	case REC_HANG:
	case REC_INTENT: ids_add(&c->wake_jobs, &c->n_wake_jobs, r->job); break;
	case REC_NOTES:
	case REC_GONE:
		wake_node(c, r->node);
		wake_verify(c, r);
		break;
	case REC_SCAN: wake_verify(c, r); break;
	case REC_SPARE:
	case REC_DRAIN: wake_node(c, r->node); break;
	case REC_CHECK:
		for (size_t i = 0; i < r->check->n_nodes; i++)
			wake_node(c, r->check->nodes[i]);
		break;
	default: break;
	}
}
