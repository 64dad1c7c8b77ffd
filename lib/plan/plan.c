/* The plan document: explicit parallelism gives one plan, auto a search; then scaling and reliability. */
#include "lib/plan/plan.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/layout.h"
#include "lib/model/limits.h"
#include "lib/plan/parts.h"
#include "lib/plan/scale.h"
#include "lib/plan/search.h"

#define TOP_DEFAULT 5

static void note(struct plan *p, const char *text)
{
	mo_strs_add(&p->notes, &p->n_notes, text);
}

static void note_uneven(const struct shape *s, struct plan *p)
{
	_cleanup_(mo_freep) char *layout = s->vpp == 1 ? layout_spread(s->model->layers, MO_MAX(s->model->mtp, 0), s->pp) : NULL;
	_cleanup_(mo_freep) char *text = mo_printf("layers do not divide evenly into the pipeline's stages: the slowest stage sets the pace%s%s", layout ? "; counted are " : "", layout ? layout : "");

	note(p, text);
}

/* All parameters of each stage, as if one rank held them. */
static void count_parameters(const struct shape *s, struct plan *p)
{
	struct shape whole = *s;

	whole.tp = whole.ep = whole.etp = 1;
	whole.schedule = pipeline_is_v(s->schedule) ? s->schedule : "1f1b";           /* with dualpipe a rank holds two stages */
	for (size_t i = 0; i < p->n_memory_stages; i++) {
		double dense, experts;

		shape_weights(&whole, p->memory_stages[i].stage, &dense, &experts);
		p->memory_stages[i].parameters = (int64_t)llround(dense + experts);
	}
}

/* What the figures rest on and the recipe does not say. */
static void note_assumed(const struct shape *s, struct plan *p)
{
	_cleanup_(mo_freep) char *fabric = s->fabric.leaf_gpus > 0 ? mo_printf("leaf switches of %lld GPUs with 1/%.3g of their bandwidth to the spine", (long long)s->fabric.leaf_gpus, s->fabric.spine) :
								     mo_strdup("no loss in the switches between them");
	_cleanup_(mo_freep) char *text = mo_printf("assumed: %snodes of %lld GPUs, %.0f Gbit/s of NICs per GPU, %s, no failures and no stragglers", s->model->moe ? "every expert gets the same share of the tokens, " : "",
						    (long long)s->gpu->domain_gpus, s->nic_gbps, fabric);

	note(p, text);
}

/* What is trained otherwise than it is counted. */
static void note_uncounted(const struct shape *s, struct plan *p)
{
	_cleanup_(mo_freep) char *fp4 = s->features.fp4 ? mo_printf("fp4 is counted as %s", s->precision ? s->precision : "bf16") : NULL;

	if (fp4)
		note(p, fp4);
	if (s->features.adapters)
		note(p, "LoRA: every parameter is counted as trained, which takes more memory than adapters do");
}

void plan_of(const struct shape *s, struct plan *ret)
{
	mo_desc_init(&plan_desc, ret);
	ret->parallelism = (struct plan_parallelism){ s->tp, s->pp, s->vpp, s->ep, s->etp, s->cp, s->dp, mo_strdup(s->sharding) };
	ret->batch = (struct plan_batch){ s->micro, s->global, s->seq };
	ret->recompute = mo_strdup(s->recompute);
	ret->schedule = mo_strdup(s->schedule);
	memory_of(s, &ret->memory_gb);
	memory_stages_of(s, ret);
	count_parameters(s, ret);
	ret->fits = ret->memory_gb.total <= ret->memory_gb.capacity;
	time_of(s, ret);
	ret->error_pct = s->model->moe ? shape_k(s)->error_moe_pct : shape_k(s)->error_dense_pct;
	note(ret, "the step time is computed: four of five comparable public runs are within error_pct of what is computed for them");
	note_assumed(s, ret);
	if (s->gpu->gemm_efficiency == MO_NONE_F)
		note(ret, "nobody published a GEMM measurement of this GPU: 0.6 of its peak is assumed");
	note_uncounted(s, ret);
	if (s->model->mtp > 0)
		note(ret, "total_params leaves out the MTP layers; memory and FLOPs count them");
	if (s->stage_layers)
		note(ret, "stages have the layers that features.pipeline_layout gives them: the fullest one sets the pace");
	else if (s->model->layers % (s->pp * s->vpp))
		note_uneven(s, ret);
	if (!ret->fits) {
		_cleanup_(mo_freep) char *text = mo_printf("does not fit: %.1f of %.1f GB on the fullest rank, reserve included", ret->memory_gb.total, ret->memory_gb.capacity);

		note(ret, text);
	}
}

static const char *schedule_of(const struct recipe *r)
{
	const char *told = shape_schedule_told(r);

	if (r->parallelism.schedule && !mo_streq(r->parallelism.schedule, "1f1b"))
		return r->parallelism.schedule;
	return told && r->parallelism.pp > 1 ? told : r->parallelism.vpp > 1 ? "interleaved" : "1f1b";
}

/* Sequences of a step. Engines that take only those of a micro-batch do one per step; a pipeline's number of micro-batches is not known without it. */
static int64_t global_of(const struct recipe *r)
{
	const struct recipe_parallelism *p = &r->parallelism;

	return r->global_batch != MO_NONE ? r->global_batch : r->micro != MO_NONE && p->pp == 1 ? r->micro * (r->gpus / MO_MAX(p->tp * p->cp, 1)) : MO_NONE;
}

/* Sequences that a rank puts through the pipeline at once where its own configuration says so; it goes through so often that a step is
 * full. A micro-batch of the recipe makes it one pass. 0: one pass. */
static int64_t pass_of(const struct recipe *r)
{
	const char *told = recipe_leaves(r, "batch.micro") ? shape_flag(&r->engine, "training.local_batch_size") : NULL;
	int64_t n;

	return told && mo_parse_i64(told, 1, MO_RANKS_MAX, &n) == 0 ? n : 0;
}

int shape_of(const struct recipe *r, const struct gpu_type *gpu, int64_t gpus, struct shape *ret, struct mo_error *err)
{
	const struct recipe_parallelism *p = &r->parallelism;
	const char *missing = !r->model ? "model" : r->seq == MO_NONE ? "batch.seq" : global_of(r) == MO_NONE ? "batch.global" : NULL;

	if (missing)
		return mo_error_set(err, -EINVAL, "plan: the recipe has no %s: give it", missing);
	if (gpu_peak_tflops(gpu, r->precision) == MO_NONE_F)
		return mo_error_set(err, -EINVAL, "plan: %s has no %s peak in the catalogue: use another precision", gpu->name, r->precision);
	*ret = (struct shape){
		.features = shape_features_of(r),
		.model = r->model, .gpu = gpu, .precision = r->precision, .schedule = schedule_of(r), .recompute = shape_recompute_of(r),
		.sharding = p->sharding ? p->sharding : "zero1", .gpus = gpus, .tp = p->tp, .pp = p->pp, .vpp = p->vpp, .ep = p->ep, .etp = p->etp, .cp = p->cp,
		.micro = r->micro != MO_NONE ? r->micro : 1, .global = global_of(r), .seq = r->seq, .one_micro = r->global_batch == MO_NONE,
		.pass = pass_of(r),
		.nic_gbps = r->nic_gbps != MO_NONE ? (double)r->nic_gbps : gpu->nic_gbps != MO_NONE_F ? gpu->nic_gbps : 400,
	};
	return 0;
}

/* The multiples of unit beside value, for people; caller frees. */
static char *multiples_near(int64_t unit, int64_t value)
{
	int64_t below = value / unit * unit;

	return below > 0 ? mo_printf("%lld or %lld", (long long)below, (long long)(below + unit)) : mo_printf("%lld", (long long)unit);
}

/* Explicit sizes on another number of GPUs: dp takes the difference. */
static int fit_dp(struct shape *s, struct mo_error *err)
{
	int64_t ranks = s->tp * s->pp * s->cp, experts = s->ep * s->etp;

	assert(ranks > 0 && experts > 0);
	_cleanup_(mo_freep) char *gpus = multiples_near(ranks, s->gpus), *stages = multiples_near(experts * s->pp, s->gpus);

	if (s->gpus % ranks)
		return mo_error_set(err, -EINVAL, "cluster.gpus: %lld do not divide by tp x pp x cp = %lld: use %s", (long long)s->gpus, (long long)ranks, gpus);
	s->dp = s->gpus / ranks;
	if (s->gpus / s->pp % experts)
		return mo_error_set(err, -EINVAL, "parallelism.ep: the %lld GPUs of a stage do not divide by ep x etp = %lld: use another ep, or cluster.gpus %s", (long long)(s->gpus / s->pp), (long long)experts, stages);
	_cleanup_(mo_freep) char *batch = multiples_near(s->dp * s->micro, s->global);

	if (s->global % (s->dp * s->micro))
		return mo_error_set(err, -EINVAL, "batch.global: %lld does not divide by batch.micro %lld x dp %lld: use %s", (long long)s->global, (long long)s->micro, (long long)s->dp, batch);
	if (s->pp > 1 && s->pass > 0 && s->pass % s->micro)
		return mo_error_set(err, -EINVAL, "training.local_batch_size: %lld does not divide by the micro-batch of the pipeline, %lld", (long long)s->pass, (long long)s->micro);
	if (s->pp > 1 && s->pass > 0 && s->global % (s->dp * s->pass))
		return mo_error_set(err, -EINVAL, "batch.global: %lld does not divide by training.local_batch_size %lld x dp %lld", (long long)s->global, (long long)s->pass, (long long)s->dp);
	return pipeline_check(s->schedule, s->pp, s->vpp, shape_micro_batches(s), s->model->layers, err);
}

int plans_for(const struct recipe *r, struct shape *s, const struct plan_options *o, size_t top, struct plan_doc *doc, struct mo_error *err)
{
	if (r->parallelism.automatic)
		return plan_search(r, s, o, top, doc, err);
	int ret = fit_dp(s, err);

	if (ret == 0) {
		plan_of(s, MO_ADD(doc, plans, &plan_desc));
		plan_note_replica(s, &doc->plans[doc->n_plans - 1]);
		if (!o->figures)
			(doc->plans[doc->n_plans - 1].fits ? search_neighbours : search_nearest)(r, o, s, &doc->plans[doc->n_plans - 1]);
	}
	return ret;
}

/* Layers per stage of features.pipeline_layout; NULL without one. */
static int read_layout(const struct recipe *r, int64_t **ret, int64_t **ret_chunks, struct mo_error *err)
{
	const struct recipe_parallelism *p = &r->parallelism;

	*ret = *ret_chunks = NULL;
	for (size_t i = 0; i < r->n_features; i++)
		if (mo_streq(r->features[i].key, "pipeline_layout") && layout_given(r->features[i].value) && !p->automatic) {
			*ret = mo_alloc_array((size_t)p->pp, sizeof(**ret));
			*ret_chunks = mo_alloc_array((size_t)(p->pp * p->vpp), sizeof(**ret_chunks));
			pipeline_layout_chunks(r->features[i].value, p->pp * p->vpp, *ret_chunks);
			return pipeline_layout(r->features[i].value, p->pp, p->vpp, r->model->layers, *ret, err);
		}
	return 0;
}

static int read_curve(const char *text, const char *program, struct curve *curve, const struct curve **ret, struct mo_error *err)
{
	if (text && !curve_parse(text, curve))
		return mo_error_set(err, -EINVAL, "plan: no row of %s in the file of measured bandwidth: give the output of rccl-tests as it is", program);
	*ret = text ? curve : NULL;
	return 0;
}

int plan_make(const struct recipe *r, const struct gpu_type *gpu, const struct plan_options *o, struct plan_doc *ret, struct mo_error *err)
{
	struct plan_doc doc;
	struct shape s = { 0 };
	struct curve alltoall, reduce;
	_cleanup_(mo_freep) int64_t *layers = NULL, *chunks = NULL;

	if (r->unread && r->experiment_hash) {
		mo_error_hint(err, "give the numbers that the warning names in the recipe's "
				   "parallelism");
		return mo_error_set(err, -EINVAL,
				    "the sharding is left to the engine, and its experiment does "
				    "not say all of it in numbers");
	}
	if (r->unread) {
		mo_error_hint(err, "plan where the experiment's files are, or give all of parallelism.tp, pp, ep, etp and cp");
		return mo_error_set(err, -EINVAL, "the sharding is left to the engine's experiment, which was not read here");
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

	doc.model = (struct plan_model){ (int64_t)llround(p.total), (int64_t)llround(p.active), plan_flops_per_token(r->model, r->seq) };
	doc.hardware = (struct plan_hardware){ mo_strdup(gpu->name), s.gpus };
	reliability_of(&s, doc.plans[0].step_time_s.total, &o->failures, &doc.reliability);
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
		int64_t every = (int64_t)llround(doc->reliability.checkpoint_every_s / best->step_time_s.total);

		r->checkpoint.every = MO_MAX(every, 1);
		r->checkpoint.automatic = true;
	}
}

void plan_apply_layout(struct recipe *r)
{
	const struct recipe_parallelism *p = &r->parallelism;
	_cleanup_(mo_freep) char *layout = p->automatic && r->model && r->model->layers % (p->pp * p->vpp) ? layout_spread(r->model->layers, MO_MAX(r->model->mtp, 0), p->pp * p->vpp) : NULL;
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
