/* A plan's schedule with the times of its stages: what the picture draws. */
#include "lib/plan/schedule_plan.h"

#include <errno.h>

#include "lib/plan/comm.h"
#include "lib/model/layout.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/schedule.h"
#include "lib/plan/schedule_run.h"
#include "lib/plan/search.h"
#include "lib/plan/shape.h"
#include "lib/plan/time.h"

/* Layers of each virtual stage as features.pipeline_layout has them; NULL: evenly. */
static int64_t *layers_of(const struct recipe *r, const struct plan *p, int64_t stages)
{
	for (size_t i = 0; i < r->n_features && !r->parallelism.automatic &&
			   stages == p->parallelism.pp * p->parallelism.vpp;
	     i++)
		if (mo_streq(r->features[i].key, "pipeline_layout") &&
		    layout_given(r->features[i].value)) {
			int64_t *ret = mo_alloc_array((size_t)stages, sizeof(*ret));

			pipeline_layout_chunks(r->features[i].value, stages, ret);
			return ret;
		}
	return NULL;
}

/* Each virtual stage as if it were a rank of its own: its layers, the embedding on the first
 * one, the output layer on the last. */
static void costs_of_stages(const struct shape *shape, const struct recipe *r, const struct plan *p,
			    int64_t stages, struct sched_cost *ret)
{
	_cleanup_(mo_freep) int64_t *layers = layers_of(r, p, stages);
	struct shape v = *shape;
	struct costs c;

	costs_of(shape, &c);
	v.pp = stages;
	v.vpp = 1;
	v.schedule = "1f1b";
	v.stage_layers = layers;
	for (int64_t i = 0; i < stages; i++) {
		struct layer_cost cost = stage_cost(&v, &c, i);
		double backward = pass_total(&cost.backward);

		ret[i] = (struct sched_cost){ pass_total(&cost.forward),
					      MO_MAX(backward - cost.wgrad, 0),
					      MO_MIN(cost.wgrad, backward) };
	}
}

int plan_schedule(const struct recipe *r, const struct gpu_type *gpu, const struct plan *p,
		  const struct plan_options *o, int64_t micro_batches, struct sched *ret,
		  struct mo_error *err)
{
	struct shape s;
	int k = shape_of(r, gpu,
			 p->parallelism.tp * p->parallelism.pp * p->parallelism.cp *
				 p->parallelism.dp,
			 &s, err);

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
	s.fabric = o ? o->fabric : (struct plan_fabric){ 0 };
	k = sched_make(p->schedule, x->pp, x->vpp, micro_batches, ret, err);
	if (k < 0)
		return k;
	int64_t stages = sched_stages(ret);
	struct sched_cost *cost = mo_alloc_array((size_t)stages, sizeof(*cost));

	costs_of_stages(&s, r, p, stages, cost);
	k = sched_run(ret, cost, comm_p2p(&s), err);
	free(cost);
	return k;
}
