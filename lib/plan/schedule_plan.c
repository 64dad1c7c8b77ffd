/* A plan's schedule with the times of its stages: what the picture draws. */
#include <errno.h>

#include "lib/plan/parts.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/schedule.h"
#include "lib/plan/search.h"

static int64_t stage_of(const struct sched *s, int64_t virtual_stage)
{
	int64_t last = 2 * s->pp - 1;

	if (s->chunks == 2 && s->split && sched_stages(s) > s->pp)      /* a V */
		return virtual_stage < s->pp ? virtual_stage : last - virtual_stage;
	return virtual_stage % s->pp;
}

/* A rank's layers spread evenly over its chunks. */
static struct sched_cost cost_of(const struct shape *shape, const struct costs *c, const struct sched *s, int64_t i, int64_t stages)
{
	struct layer_cost rank = stage_cost(shape, c, stage_of(s, i));
	double parts = (double)(stages / s->pp), forward = pass_total(&rank.forward) / parts, backward = pass_total(&rank.backward) / parts, w = rank.wgrad / parts;

	return (struct sched_cost){ forward, MO_MAX(backward - w, 0), MO_MIN(w, backward) };
}

int plan_schedule(const struct recipe *r, const struct gpu_type *gpu, const struct plan *p, int64_t micro_batches, struct sched *ret, struct mo_error *err)
{
	struct shape s;
	struct costs c;
	int k = shape_of(r, gpu, p->parallelism.tp * p->parallelism.pp * p->parallelism.cp * p->parallelism.dp, &s, err);

	if (k < 0)
		return k;
	const struct plan_parallelism *x = &p->parallelism;

	s.tp = x->tp;
	s.pp = x->pp;
	s.vpp = x->vpp;
	s.ep = x->ep;
	s.etp = x->etp;
	s.cp = x->cp;
	s.dp = x->dp;
	s.micro = p->batch.micro;
	s.recompute = p->recompute;
	s.schedule = p->schedule;
	s.sharding = x->sharding;
	shape_route(&s);
	k = sched_make(p->schedule, x->pp, x->vpp, micro_batches, ret, err);
	if (k < 0)
		return k;
	int64_t stages = sched_stages(ret);
	struct sched_cost *cost = mo_alloc_array((size_t)stages, sizeof(*cost));

	costs_of(&s, &c);
	for (int64_t i = 0; i < stages; i++)
		cost[i] = cost_of(&s, &c, ret, i, stages);
	k = sched_run(ret, cost, comm_p2p(&s), err);
	free(cost);
	return k;
}
