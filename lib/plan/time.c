/* Step time of one plan: layers' kernels, exchanges and the host's launches make stages, stages
 * and the schedule's bubble make the pipeline, then gradients and the optimizer. */
#include "lib/plan/time.h"

#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/plan/comm.h"
#include "lib/plan/features.h"
#include "lib/plan/idle.h"
#include "lib/plan/layer.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/shape.h"

#define HOST_FORWARD 0.36 /* share of a layer's launches that forward has */
/* share of a dense layer's launches that attention has, norm and residual included */
#define ATTENTION_LAUNCHES 0.6
#define ROUTER_LAUNCHES 0.1 /* of a MoE layer's others */
#define PREPROCESS_LAUNCHES 0.05
/* that weight gradients have: one product of two, none of the rest */
#define HOST_WGRAD 0.16
/* per parameter: gradient, master and two moments read, all but the gradient written, weights
 * written */
#define OPTIMIZER_BYTES 30.0
#define SYNC_FREE_STEP 0.07 /* further share of the launches that stages 2 and 3 save each */

double pass_total(const struct pass *p)
{
	return p->compute + p->a2a + p->tp + p->cp + p->launch;
}

void pass_add(struct pass *to, const struct pass *what, double times)
{
	mo_assert(times >= 0);
	to->compute += times * what->compute;
	to->a2a += times * what->a2a;
	to->tp += times * what->tp;
	to->cp += times * what->cp;
	to->launch += times * what->launch;
}

/* Share of an exchange that remains visible. */
static double a2a_exposed(const struct shape *s)
{
	/* on top of DeepEP's own (Primus' projection: 65, 75, 80, 85 %) */
	static const double sync_free[] = { 0, 0.10, 0.15, 0.20 };
	const struct plan_constants *k = shape_k(s);
	double hidden = s->features.deepep
				? k->deepep_hidden + sync_free[MO_MIN(s->features.sync_free, 3)]
				: 0;

	if (s->features.overlap_a2a || mo_streq(s->schedule, "dualpipe"))
		hidden = MO_MAX(hidden, k->overlap_hidden);
	return 1 - hidden;
}

/* Of the host's time per layer, what graphs take over. */
static double captured_s(const struct shape *s, bool moe)
{
	const struct plan_constants *k = shape_k(s);
	int64_t graphs = s->features.graphs;
	double attention = ATTENTION_LAUNCHES * k->host_dense_s,
	       rest = (moe ? k->host_moe_s : k->host_dense_s) - attention, part = 0;

	if (moe)
		part = graphs & GRAPH_EXPERTS
			       ? 1
			       : (graphs & GRAPH_ROUTER ? ROUTER_LAUNCHES : 0) +
					 (graphs & GRAPH_PREPROCESS ? PREPROCESS_LAUNCHES : 0);
	else
		part = graphs & GRAPH_MLP ? 1 : 0;
	return (graphs & GRAPH_ATTENTION ? attention : 0) + part * rest;
}

static double host_s(const struct shape *s, bool moe)
{
	const struct plan_constants *k = shape_k(s);
	double t = moe ? k->host_moe_s : k->host_dense_s;

	t = (t - captured_s(s, moe)) * (shape_narrow(s) ? k->host_narrow : 1);
	if (moe && s->features.sync_free > 0)
		t *= k->host_sync_free - SYNC_FREE_STEP * (double)(s->features.sync_free - 1);
	if (moe && s->features.expert_launches && !(s->features.graphs & GRAPH_EXPERTS))
		t += k->host_expert_s * (double)s->model->moe->experts / (double)s->ep;
	return s->features.bound ? t * k->host_bound : t;
}

static double gather_exposed(const struct shape *s, double comm, const struct pass *p)
{
	double behind = MO_MIN(comm, p->compute + p->launch);

	return comm - behind * (1 - shape_k(s)->fsdp_contention);
}

/* A layer: its kernels, its exchanges, and the host where it is slower than both. FSDP's gathers
 * count as compute that waits. */
static struct layer_cost layer(const struct shape *s, struct kernels g, bool moe)
{
	const struct plan_constants *k = shape_k(s);
	struct params p = plan_params(s->model);
	struct layer_cost c = { .wgrad = g.wgrad };
	double again =
		g.forward > 0 && mo_streq(s->recompute, "full") ? g.recompute / g.forward : 0;
	/* Megatron's module moe */
	double exchanged = mo_streq(s->recompute, "selective") && moe && !s->features.eager &&
					   (s->features.recompute_modules & MODULE_MOE)
				   ? 1
				   : again;
	double tp = comm_tp(s) * (s->features.async_tp ? 1 - k->async_tp_hidden : 1),
	       cp = comm_cp(s) * k->cp_exposed, a2a = moe ? comm_a2a(s) * a2a_exposed(s) : 0;

	c.forward = (struct pass){ .compute = g.forward, .a2a = a2a, .tp = tp, .cp = cp };
	c.backward = (struct pass){ .compute = g.backward + g.recompute,
				    .a2a = a2a * (1 + exchanged),
				    .tp = tp * (1 + again),
				    .cp = cp * (2 + again) };
	double host = host_s(s, moe);

	c.forward.launch = MO_MAX(HOST_FORWARD * host - pass_total(&c.forward), 0);
	double backward_host = (1 - HOST_FORWARD + again * HOST_FORWARD) * host,
	       split_host = pipeline_splits(s->schedule) && s->pp > 1 ? HOST_WGRAD * host : 0;

	/* Where the weight gradient is work of its own, each of the two parts waits for its
	 * launches. */
	c.backward.launch =
		MO_MAX(backward_host - split_host -
			       (pass_total(&c.backward) - (split_host > 0 ? g.wgrad : 0)),
		       0) +
		MO_MAX(split_host - g.wgrad, 0);
	c.wgrad = MO_MAX(g.wgrad, split_host);
	if (comm_fsdp(s) && s->pp == 1) {
		double t = (double)s->tp,
		       common = (p.attention + (moe ? p.shared + p.router : p.dense_ffn)) / t;
		double gather = comm_fsdp_gather(s, common, false);

		if (moe)
			gather += comm_fsdp_gather(s,
						   p.expert * (double)s->model->moe->experts /
							   (double)(s->ep * s->etp),
						   true);
		c.forward.compute += gather_exposed(s, gather, &c.forward);
		/* weights again, and gradients */
		c.backward.compute +=
			gather_exposed(s,
				       gather + shape_grad_bytes(s) / comm_weight_bytes(s) * gather,
				       &c.backward);
	}
	return c;
}

void costs_of(const struct shape *s, struct costs *ret)
{
	struct kernels e = embedding_kernels(s), h = head_kernels(s);
	bool moe = s->model->moe != NULL;

	*ret = (struct costs){ .dense = layer(s, dense_kernels(s), false) };
	if (moe)
		ret->moe = layer(s, moe_kernels(s), true);
	ret->embedding = (struct layer_cost){ .forward = { .compute = e.forward },
					      .backward = { .compute = e.backward } };
	ret->head = (struct layer_cost){ .forward = { .compute = h.forward },
					 .backward = { .compute = h.backward },
					 .wgrad = h.wgrad };
	const struct layer_cost *more = moe ? &ret->moe : &ret->dense;
	double mtp = (double)MO_MAX(s->model->mtp, 0);

	pass_add(&ret->head.forward, &more->forward, mtp);
	pass_add(&ret->head.backward, &more->backward, mtp);
	ret->head.wgrad += mtp * more->wgrad;
}

static void cost_add(struct layer_cost *to, const struct layer_cost *what, double times)
{
	pass_add(&to->forward, &what->forward, times);
	pass_add(&to->backward, &what->backward, times);
	to->wgrad += times * what->wgrad;
}

struct layer_cost stage_cost(const struct shape *s, const struct costs *c, int64_t stage)
{
	struct layer_cost r = { 0 };
	int64_t first, last;

	mo_assert(stage >= 0 && stage < s->pp);
	shape_stage(s, stage, &first, &last);
	int64_t moe = plan_moe_layers(s->model, first, last);

	cost_add(&r, &c->dense, (double)(last - first - moe));
	cost_add(&r, &c->moe, (double)moe);
	if (stage == 0)
		cost_add(&r, &c->embedding, 1);
	if (stage == shape_head_stage(s))
		cost_add(&r, &c->head, 1);
	return r;
}

/* What a rank computes of a micro-batch: its stage; with DualPipe one half of the micro-batches
 * run through the stage at the other end, which the rank holds too. */
static struct layer_cost rank_cost(const struct shape *s, const struct costs *c, int64_t rank)
{
	struct layer_cost r = stage_cost(s, c, rank), sum = { 0 };

	mo_assert(rank >= 0 && rank < s->pp);
	if (!mo_streq(s->schedule, "dualpipe"))
		return r;
	struct layer_cost other = stage_cost(s, c, s->pp - 1 - rank);

	cost_add(&sum, &r, 0.5);
	cost_add(&sum, &other, 0.5);
	return sum;
}

double optimizer_s(const struct shape *s, int64_t stage)
{
	double dense, experts, weights;

	shape_weights(s, stage, &dense, &experts);
	weights = mo_streq(s->sharding, "none")
			  ? dense + experts
			  : dense / (double)(s->dp * s->cp) + experts / (double)shape_edp(s);
	return weights * OPTIMIZER_BYTES / (s->gpu->hbm_tbps * 1e12 * shape_k(s)->memory_use);
}

/* Gradients to their owners and weights back: behind the computing of other chunks of the
 * pipeline. FSDP has paid per layer, unless there is a pipeline: then once per step, as weights
 * and gradients stay whole in between. */
static double data_parallel(const struct shape *s, double micro_batch_s)
{
	double dense, experts;

	if (comm_fsdp(s) && s->pp == 1)
		return 0;
	shape_weights(s, 0, &dense, &experts);
	/* A chunk's gradients are done, and its weights needed, pp micro-batches of a chunk
	 * before and after those of the next one. */
	double time = comm_grads(s, dense, experts),
	       v = (double)pipeline_chunks(s->schedule, s->vpp);
	double behind = (v - 1) * MO_MIN(time, (double)s->pp * micro_batch_s) / v;

	return s->features.late_reduce ? time : time - behind * (1 - shape_k(s)->dp_contention);
}

static struct pass both(const struct layer_cost *c)
{
	struct pass p = c->forward;

	pass_add(&p, &c->backward, 1);
	return p;
}

void time_of(const struct shape *s, struct plan *p)
{
	struct costs c;
	struct pass slow = { 0 };
	double passes = (double)shape_passes(s), n = (double)shape_micro_batches(s) * passes;
	double mean = 0, forward = 0, wgrad = 0;
	struct plan_time *t = &p->step_time_s;

	costs_of(s, &c);
	for (int64_t i = 0; i < s->pp; i++) {
		struct layer_cost stage = rank_cost(s, &c, i);
		struct pass whole = both(&stage);

		mean += pass_total(&whole) / (double)s->pp;
		forward += pass_total(&stage.forward) / (double)s->pp;
		wgrad += MO_MIN(stage.wgrad, pass_total(&stage.backward)) / (double)s->pp;
		if (pass_total(&whole) > pass_total(&slow))
			slow = whole;
	}
	double p2p = 2 * comm_p2p(s) * (double)s->vpp * (s->vpp > 1 ? shape_k(s)->p2p_exposed : 1);

	double idle = passes * pipeline_idle(s->schedule, s->pp, s->vpp, shape_micro_batches(s),
					     forward, mean - forward - wgrad, wgrad);

	p->bubble = mean > 0 ? idle / (mean * n + idle) : 0;
	t->compute = slow.compute * n;
	t->a2a = slow.a2a * n;
	t->tp = slow.tp * n;
	t->cp = slow.cp * n;
	t->launch = slow.launch * n;
	t->pp = (mean + p2p) * n * p->bubble / (1 - p->bubble) + p2p * n;
	t->dp = data_parallel(s, pass_total(&slow));
	t->optimizer = optimizer_s(s, 0);
	t->total = t->compute + t->a2a + t->tp + t->cp + t->launch + t->pp + t->dp + t->optimizer;

	double tokens = (double)s->global * (double)s->seq,
	       flops = plan_flops_per_token(s->model, s->seq);

	p->tokens_per_s_per_gpu = tokens / t->total / (double)s->gpus;
	p->tflops_per_gpu = flops * p->tokens_per_s_per_gpu / 1e12;
	p->mfu = p->tflops_per_gpu / gpu_peak_tflops(s->gpu, s->precision);
}
