/* The plan document: explicit parallelism gives one plan, auto a search; then scaling and
 * reliability. */
#include "lib/plan/plan.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"
#include "lib/model/layout.h"
#include "lib/model/limits.h"
#include "lib/plan/curve.h"
#include "lib/plan/features.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/plans.h"
#include "lib/plan/reliability.h"
#include "lib/plan/scale.h"
#include "lib/plan/shape.h"

#define TOP_DEFAULT 5

/* Layers per stage of features.pipeline_layout; NULL without one. */
static int read_layout(const struct recipe *r, int64_t **ret, int64_t **ret_chunks,
		       struct mo_error *err)
{
	const struct recipe_parallelism *p = &r->parallelism;

	*ret = *ret_chunks = NULL;
	for (size_t i = 0; i < r->n_features; i++)
		if (mo_streq(r->features[i].key, "pipeline_layout") &&
		    layout_given(r->features[i].value) && !p->automatic) {
			*ret = mo_alloc_array((size_t)p->pp, sizeof(**ret));
			*ret_chunks =
				mo_alloc_array((size_t)(p->pp * p->vpp), sizeof(**ret_chunks));
			pipeline_layout_chunks(r->features[i].value, p->pp * p->vpp, *ret_chunks);
			return pipeline_layout(r->features[i].value, p->pp, p->vpp,
					       r->model->layers, *ret, err);
		}
	return 0;
}

static int read_curve(const char *text, const char *program, struct curve *curve,
		      const struct curve **ret, struct mo_error *err)
{
	if (text && !curve_parse(text, curve))
		return mo_error_set(err, -EINVAL,
				    "plan: no row of %s in the file of measured bandwidth: give "
				    "the output of rccl-tests as it is",
				    program);
	*ret = text ? curve : NULL;
	return 0;
}

int plan_make(const struct recipe *r, const struct gpu_type *gpu, const struct plan_options *o,
	      struct plan_doc *ret, struct mo_error *err)
{
	struct plan_doc doc;
	struct shape s = { 0 };
	struct curve alltoall, reduce;
	_cleanup_(mo_freep) int64_t *layers = NULL, *chunks = NULL;

	assert(r && gpu && ret);
	if (r->unread && r->experiment_hash) {
		mo_error_hint(err, "give the numbers that the warning names in the recipe's "
				   "parallelism");
		return mo_error_set(err, -EINVAL,
				    "the sharding is left to the engine, and its experiment does "
				    "not say all of it in numbers");
	}
	if (r->unread) {
		mo_error_hint(err, "plan where the engine's files are, or give all of "
				   "parallelism.tp, pp, ep, etp and cp");
		return mo_error_set(err, -EINVAL,
				    "the sharding is left to the engine's own files, which were "
				    "not read here");
	}
	int k = shape_of(r, gpu, o->gpus > 0 ? o->gpus : r->gpus, &s, err);

	if (k == 0)
		k = read_layout(r, &layers, &chunks, err);
	if (k == 0)
		k = read_curve(o->alltoall, "alltoall_perf", &alltoall, &s.a2a_curve, err);
	if (k == 0)
		k = read_curve(o->reduce, "all_reduce_perf", &reduce, &s.reduce_curve, err);
	if (k < 0)
		return k;
	s.stage_layers = layers;
	s.chunk_layers = chunks;
	s.even_layers = o->even_layers;
	s.fabric = o->fabric;
	mo_desc_init(&plan_doc_desc, &doc);
	k = plans_for(r, &s, o, o->top > 0 ? (size_t)o->top : TOP_DEFAULT, &doc, err);
	if (k < 0) {
		mo_desc_done(&plan_doc_desc, &doc);
		return k;
	}
	struct params p = plan_params(r->model);

	doc.model = (struct plan_model){ (int64_t)llround(p.total), (int64_t)llround(p.active),
					 plan_flops_per_token(r->model, r->seq) };
	doc.hardware = (struct plan_hardware){ mo_strdup(gpu->name), s.gpus };
	reliability_of(&s, doc.plans[0].step_time_s.total, &o->failures, &doc.reliability);
	reliability_spares(&s, r->spares, &doc.reliability);
	scaling_of(r, &s, o, &doc);
	mo_desc_done(&plan_doc_desc, ret);
	*ret = doc;
	return 0;
}

void plan_apply(const struct plan_doc *doc, struct recipe *r)
{
	const struct plan *best = doc->n_plans ? &doc->plans[0] : NULL;
	struct recipe_parallelism *p = &r->parallelism;

	if (!best)
		return;
	if (p->automatic) {
		const struct plan_parallelism *b = &best->parallelism;

		p->tp = b->tp;
		p->pp = b->pp;
		p->vpp = b->vpp;
		p->ep = b->ep;
		p->etp = b->etp;
		p->cp = b->cp;
		p->dp = b->dp;
		mo_str_set(&p->sharding, b->sharding);
		mo_str_set(&p->schedule, best->schedule);
		if (!plan_recompute_given(r))
			mo_str_set(&r->recompute, best->recompute);
		r->micro = best->batch.micro;
	}
	if (r->checkpoint.every == 0) {
		int64_t every = (int64_t)llround(doc->reliability.checkpoint_every_s /
						 best->step_time_s.total);

		r->checkpoint.every = MO_MAX(every, 1);
		r->checkpoint.automatic = true;
	}
}

void plan_apply_layout(struct recipe *r)
{
	const struct recipe_parallelism *p = &r->parallelism;
	_cleanup_(mo_freep) char *layout =
		p->automatic && r->model && r->model->layers % (p->pp * p->vpp)
			? layout_spread(r->model->layers, MO_MAX(r->model->mtp, 0), p->pp * p->vpp)
			: NULL;
	struct kv *at = NULL;

	if (!p->automatic)
		return;
	for (size_t i = 0; i < r->n_features && !at; i++)
		at = mo_streq(r->features[i].key, "pipeline_layout") ? &r->features[i] : NULL;
	if (!at && !layout)
		return;
	if (!at) {
		at = MO_ADD(r, features, &kv_desc);
		at->key = mo_strdup("pipeline_layout");
	}
	mo_str_set(&at->value, layout ? layout : "auto");
}
