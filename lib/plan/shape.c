/* A shape: what the recipe says of it, and what follows from its sizes. */
#include "lib/plan/shape.h"

#include <errno.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/plan/features.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"

static const char *schedule_of(const struct recipe *r)
{
	const char *stated = shape_schedule_stated(r);

	if (r->parallelism.schedule && !mo_streq(r->parallelism.schedule, "1f1b"))
		return r->parallelism.schedule;
	return stated && r->parallelism.pp > 1 ? stated
	       : r->parallelism.vpp > 1        ? "interleaved"
					       : "1f1b";
}

/* Sequences of a step. Engines that take only those of a micro-batch do one per step; a
 * pipeline's number of micro-batches is not known without it. */
static int64_t global_of(const struct recipe *r)
{
	const struct recipe_parallelism *p = &r->parallelism;

	return r->global_batch != MO_NONE          ? r->global_batch
	       : r->micro != MO_NONE && p->pp == 1 ? r->micro * (r->gpus / MO_MAX(p->tp * p->cp, 1))
						   : MO_NONE;
}

int shape_of(const struct recipe *r, const struct gpu_type *gpu, int64_t gpus, struct shape *ret,
	     struct mo_error *err)
{
	const struct recipe_parallelism *p = &r->parallelism;
	const char *missing = !r->model                 ? "model"
			      : r->seq == MO_NONE       ? "batch.seq"
			      : global_of(r) == MO_NONE ? "batch.global"
							: NULL;

	if (missing)
		return mo_error_set(err, -EINVAL, "plan: the recipe has no %s: give it", missing);
	if (gpu_peak_tflops(gpu, r->precision) == MO_NONE_F)
		return mo_error_set(err, -EINVAL,
				    "plan: %s has no %s peak in the catalogue: use another "
				    "precision",
				    gpu->name, r->precision);
	*ret = (struct shape){
		.features = shape_features_of(r),
		.model = r->model,
		.gpu = gpu,
		.precision = r->precision,
		.schedule = schedule_of(r),
		.recompute = shape_recompute_of(r),
		.sharding = p->sharding ? p->sharding : "zero1",
		.gpus = gpus,
		.tp = p->tp,
		.pp = p->pp,
		.vpp = p->vpp,
		.ep = p->ep,
		.etp = p->etp,
		.cp = p->cp,
		.micro = r->micro != MO_NONE ? r->micro : 1,
		.global = global_of(r),
		.seq = r->seq,
		.one_micro = r->global_batch == MO_NONE,
		.pass = shape_pass_batch(r),
		.nic_gbps = r->nic_gbps != MO_NONE       ? (double)r->nic_gbps
			    : gpu->nic_gbps != MO_NONE_F ? gpu->nic_gbps
							 : 400,
	};
	return 0;
}

int64_t shape_passes(const struct shape *s)
{
	return s->pp > 1 && s->pass > 0 ? MO_MAX(s->global / (s->dp * s->pass), 1) : 1;
}

int64_t shape_micro_batches(const struct shape *s)
{
	return s->global / (s->dp * s->micro) / shape_passes(s);
}

int64_t shape_edp(const struct shape *s)
{
	return s->gpus / (s->pp * s->ep * s->etp);
}

double shape_tokens(const struct shape *s)
{
	return (double)s->seq * (double)s->micro / (double)s->cp;
}

void shape_stage(const struct shape *s, int64_t stage, int64_t *ret_first, int64_t *ret_last)
{
	pipeline_layers(s->model->layers, s->pp, s->stage_layers, stage, ret_first, ret_last);
}

double shape_grad_bytes(const struct shape *s)
{
	return s->features.grad_bytes > 0 ? (double)s->features.grad_bytes : 4;
}

double shape_moment_bytes(const struct shape *s)
{
	return s->features.moment_bytes > 0 ? (double)s->features.moment_bytes : 8;
}

double shape_state_bytes(const struct shape *s)
{
	return (s->features.small_master ? 2 : 4) + shape_moment_bytes(s);
}

int64_t shape_head_stage(const struct shape *s)
{
	return pipeline_is_v(s->schedule) ? 0 : s->pp - 1;
}

int64_t shape_recomputed(const struct shape *s, int64_t first, int64_t last)
{
	const struct shape_features *f = &s->features;
	int64_t n = 0;

	mo_assert(first >= 0 && first <= last);
	if (!mo_streq(s->recompute, "full"))
		return 0;
	if (!f->recompute_ids)
		return f->recompute_layers > 0
			       ? MO_MIN(f->recompute_layers * pipeline_chunks(s->schedule, s->vpp),
					last - first)
			       : last - first;
	for (const char *at = f->recompute_ids; *at;) {
		int64_t id = 0;
		size_t digits = strspn(at, "0123456789");

		for (size_t i = 0; i < MO_MIN(digits, (size_t)9); i++)
			id = 10 * id + (at[i] - '0');
		n += digits > 0 && id >= first && id < last;
		at += MO_MAX(digits, (size_t)1);
	}
	return n;
}

int64_t shape_stage_recomputed(const struct shape *s, int64_t stage)
{
	int64_t first, last, n = 0;

	if (!s->features.recompute_ids || !mo_streq(s->schedule, "interleaved")) {
		shape_stage(s, stage, &first, &last);
		return shape_recomputed(s, first, last);
	}
	for (int64_t chunk = stage; chunk < s->pp * s->vpp; chunk += s->pp) {
		pipeline_layers(s->model->layers, s->pp * s->vpp, s->chunk_layers, chunk, &first,
				&last);
		n += shape_recomputed(s, first, last);
	}
	return n;
}

static void stage_weights(const struct shape *s, int64_t stage, double *ret_dense,
			  double *ret_experts)
{
	const struct recipe_model *m = s->model;
	struct params p = plan_params(m);
	int64_t first, last;

	shape_stage(s, stage, &first, &last);
	double layers = (double)(last - first), moe = (double)plan_moe_layers(m, first, last),
	       dense = layers - moe;
	bool is_last = stage == shape_head_stage(s);

	*ret_dense = layers * p.attention + dense * p.dense_ffn + moe * (p.shared + p.router);
	*ret_experts = m->moe ? moe * (double)m->moe->experts * p.expert : 0;
	if (stage == 0)
		*ret_dense += p.embedding;
	if (is_last && !(m->tied && stage == 0))
		*ret_dense += p.embedding;
	if (is_last && m->mtp > 0) {
		double mtp_experts =
			m->moe ? (double)m->mtp * (double)m->moe->experts * p.expert : 0;

		*ret_experts += mtp_experts;
		*ret_dense += p.mtp - mtp_experts;
	}
	*ret_dense /= (double)s->tp;
	*ret_experts /= (double)(s->ep * s->etp);
}

int64_t shape_twin(const struct shape *s, int64_t stage)
{
	return mo_streq(s->schedule, "dualpipe") ? s->pp - 1 - stage : stage;
}

void shape_weights(const struct shape *s, int64_t stage, double *ret_dense, double *ret_experts)
{
	int64_t twin = shape_twin(s, stage);
	double dense = 0, experts = 0;

	stage_weights(s, stage, ret_dense, ret_experts);
	if (mo_streq(s->schedule, "dualpipe"))
		stage_weights(s, twin, &dense, &experts);
	*ret_dense += dense;
	*ret_experts += experts;
}
