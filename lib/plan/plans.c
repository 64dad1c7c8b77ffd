/* Plans of one size: the recipe's own sharding, or the search for the best ones. The planner
 * asks it for the size that was asked for, scale.c for others. */
#include "lib/plan/plans.h"

#include <assert.h>
#include <errno.h>

#include "lib/plan/figures.h"
#include "lib/plan/neighbours.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/search.h"
#include "lib/plan/shape.h"

/* The multiples of unit beside value, for people; caller frees. */
static char *multiples_near(int64_t unit, int64_t value)
{
	int64_t below = value / unit * unit;

	return below > 0 ? mo_printf("%lld or %lld", (long long)below, (long long)(below + unit))
			 : mo_printf("%lld", (long long)unit);
}

/* Explicit sizes on another number of GPUs: dp takes the difference. */
static int fit_dp(struct shape *s, struct mo_error *err)
{
	int64_t ranks = s->tp * s->pp * s->cp, experts = s->ep * s->etp;

	assert(ranks > 0 && experts > 0);
	_cleanup_(mo_freep) char *gpus = multiples_near(ranks, s->gpus),
				 *stages = multiples_near(experts * s->pp, s->gpus);

	if (s->gpus % ranks)
		return mo_error_set(err, -EINVAL,
				    "cluster.gpus: %lld do not divide by tp x pp x cp = %lld: use "
				    "%s",
				    (long long)s->gpus, (long long)ranks, gpus);
	s->dp = s->gpus / ranks;
	if (s->gpus / s->pp % experts)
		return mo_error_set(err, -EINVAL,
				    "parallelism.ep: the %lld GPUs of a stage do not divide by ep "
				    "x etp = %lld: use another ep, or cluster.gpus %s",
				    (long long)(s->gpus / s->pp), (long long)experts, stages);
	_cleanup_(mo_freep) char *batch = multiples_near(s->dp * s->micro, s->global);

	if (s->global % (s->dp * s->micro))
		return mo_error_set(err, -EINVAL,
				    "batch.global: %lld does not divide by batch.micro %lld x dp "
				    "%lld: use %s",
				    (long long)s->global, (long long)s->micro, (long long)s->dp,
				    batch);
	if (s->pp > 1 && s->pass > 0 && s->pass % s->micro)
		return mo_error_set(err, -EINVAL,
				    "training.local_batch_size: %lld does not divide by the "
				    "micro-batch of the pipeline, %lld",
				    (long long)s->pass, (long long)s->micro);
	if (s->pp > 1 && s->pass > 0 && s->global % (s->dp * s->pass))
		return mo_error_set(err, -EINVAL,
				    "batch.global: %lld does not divide by "
				    "training.local_batch_size %lld x dp %lld",
				    (long long)s->global, (long long)s->pass, (long long)s->dp);
	return pipeline_check(s->schedule, s->pp, s->vpp, shape_micro_batches(s), s->model->layers,
			      err);
}

int plans_for(const struct recipe *r, struct shape *s, const struct plan_options *o, size_t top,
	      struct plan_doc *doc, struct mo_error *err)
{
	if (r->parallelism.automatic)
		return plan_search(r, s, o, top, doc, err);
	int ret = fit_dp(s, err);

	if (ret == 0) {
		plan_of(s, MO_ADD(doc, plans, &plan_desc));
		if (!o->figures)
			(doc->plans[doc->n_plans - 1].fits
				 ? neighbours_compare
				 : neighbours_nearest)(r, o, s, &doc->plans[doc->n_plans - 1]);
	}
	return ret;
}
