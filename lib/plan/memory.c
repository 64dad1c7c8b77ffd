/* Memory of the fullest rank, in 10^9 bytes. States: 2 bytes of weight, 4 of gradient (Megatron
 * accumulates in FP32), 12 of FP32 master and Adam; where FSDP shards FP32 weights these are the
 * master. Activations: what each layer keeps (retained.c), in flight as in the pipeline schedules'
 * papers. */
#include "lib/plan/memory.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/plan/comm.h"
#include "lib/plan/retained.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/shape.h"

#define GB 1e9
#define STAGES_TRIED 32
/* two of the logits, an FP32 copy that becomes the softmax and its gradient in place */
#define LOGIT_BYTES 6.0
/* the gradient takes the logits' place; V2-Lite: 20 GB less for 12 x 4096 x 102400 */
#define LOGIT_BYTES_FUSED 2.0
#define LOGIT_BYTES_EAGER 12.0 /* log-softmax in FP32 kept too, gradient in two bytes */
/* of a loss that torch.compile or one kernel computes: logits and their gradient, in two bytes */
#define LOGIT_BYTES_COMPILED 4.0
#define ROUTED_COPIES 2.0  /* of a layer's routed rows around an exchange */
#define NVFP4_BYTES 0.5625 /* with a scale of 8 bits for 16 elements */
/* own runs on H200 (tests/data/planner): PyTorch's allocator holds 0 to 20 % more than is
 * counted, half of them 10 % */
#define FRAGMENTATION 0.10
/* of capacity, what an allocator without expandable segments cannot give back: own series of
 * growing micro-batches on H200, none that ran out is planned to fit */
#define FIXED_SEGMENTS 0.07
/* of capacity: XLA plans what its pool holds, and the pool has the rest
 * (XLA_PYTHON_CLIENT_MEM_FRACTION) */
#define POOL_LEAVES 0.03
#define GATHERED 4.0 /* bytes per token and hidden element */

/* Bytes per token of the layers [first, last): those of the first `again` that are recomputed
 * keep their input only. *ret_working: what the layer at work makes again. */
static double layers_bytes(const struct shape *s, int64_t first, int64_t last, int64_t again,
			   double *ret_working)
{
	const char *level = mo_streq(s->recompute, "full") ? "none" : s->recompute;
	double bytes = 0,
	       chunk = (double)MO_MIN(MO_MAX(s->features.recompute_chunk, 1), MO_MAX(again, 1));

	mo_assert(first <= last && again >= 0 && again <= last - first);
	*ret_working = 0;
	for (int kind = 0; kind < 2; kind++) {
		int64_t head = plan_moe_layers(s->model, first, first + again),
			rest = plan_moe_layers(s->model, first + again, last);
		double n = (double)(kind ? head : again - head),
		       others = (double)(kind ? rest : last - first - again - rest);

		if (n + others == 0)
			continue;
		double whole = memory_layer_bytes(s, kind, "none"),
		       retained = MO_MAX(memory_layer_bytes(s, kind, level) -
						 memory_layer_offloaded(s, kind),
					 0);

		bytes += n * memory_layer_bytes(s, kind, "full") / chunk + others * retained;
		*ret_working = MO_MAX(*ret_working,
				      n > 0 ? chunk * whole - memory_layer_bytes(s, kind, "full")
					    : whole - retained);
	}
	return bytes;
}

/* Of what a stage keeps, the share of the layers whose activations wait in the host's memory;
 * one of them is always on its way. */
static double on_gpu(const struct shape *s, int64_t layers)
{
	int64_t gone = MO_MIN(MO_MAX(s->features.offload_layers - 1, 0), layers);

	return 1 - (double)gone / (double)MO_MAX(layers, 1);
}

static double logit_bytes(const struct shape *s)
{
	if (s->features.eager || (s->features.shard_bytes > 0 && !s->features.xla))
		return s->features.fused_loss ? LOGIT_BYTES_COMPILED : LOGIT_BYTES_EAGER;
	return s->features.fused_loss ? LOGIT_BYTES_FUSED : LOGIT_BYTES;
}

/* Zero-bubble schedules put off the gradients of weights: one micro-batch's wait, with the
 * gradients of its products' results (Qwen3 235B on MI355X: 11 to 16 GB in four schedules). */
static double waiting(const struct shape *s, int64_t first, int64_t last)
{
	double moe = (double)plan_moe_layers(s->model, first, last);

	if (!mo_streq(s->schedule, "zb1p") && !pipeline_is_v(s->schedule))
		return 0;
	return (moe > 0 ? moe * memory_layer_gradients(s, true) : 0) +
	       ((double)(last - first) - moe) * memory_layer_gradients(s, false);
}

/* Bytes per token that a stage keeps for the micro-batches in flight. */
static double stage_retained(const struct shape *s, int64_t stage, double *ret_working)
{
	int64_t first, last;

	mo_assert(stage >= 0 && stage < s->pp);
	shape_stage(s, stage, &first, &last);
	double flight =
		pipeline_in_flight(s->schedule, s->pp, s->vpp, shape_micro_batches(s), stage);

	return layers_bytes(s, first, last, MO_MIN(shape_stage_recomputed(s, stage), last - first),
			    ret_working) *
		       flight * on_gpu(s, last - first) +
	       waiting(s, first, last);
}

static double activations(const struct shape *s, int64_t stage)
{
	const struct recipe_model *m = s->model;
	int64_t twin = shape_twin(s, stage), head = shape_head_stage(s);
	double working, twin_working, extra, bytes = stage_retained(s, stage, &working);

	if (twin != stage) { /* half of the micro-batches come from each end */
		bytes = (bytes + stage_retained(s, twin, &twin_working)) / 2;
		working = MO_MAX(working, twin_working);
	}
	double at_work = working, loss = 0;

	/* a layer's input of all ranks, and the gradient of it */
	if (s->tp > 1 && !s->features.no_sequence_parallel)
		at_work += GATHERED * (double)m->hidden;
	if (stage == head || twin == head) {
		double heads = 1 + (double)MO_MAX(m->mtp, 0),
		       results = s->features.keeps_outputs && s->pp > 1
					 ? 2 * (double)(shape_micro_batches(s) - 1)
					 : 0;

		loss = (heads * logit_bytes(s) + results) * (double)m->vocab / (double)s->tp;
		if (m->mtp > 0)
			bytes +=
				(double)m->mtp *
				layers_bytes(s, m->layers - 1, m->layers,
					     shape_recomputed(s, m->layers - 1, m->layers), &extra);
	}
	/* XLA gives the memory of the loss to the layers; the allocators of others keep both. */
	return (bytes + (s->features.xla ? MO_MAX(at_work, loss) : at_work + loss)) *
	       shape_tokens(s);
}

/* Buffers of exchanges: routed rows around the all-to-all, layers that FSDP has gathered,
 * communicators. */
static double buffers(const struct shape *s, double whole, int64_t layers)
{
	const struct plan_constants *k = shape_k(s);
	double bytes = s->gpus > 1 ? MO_MIN(k->communicator_bytes +
						    k->communicator_rank_bytes * (double)s->gpus,
					    k->communicator_max_bytes)
				   : 0;

	if (s->ep > 1 && s->model->moe)
		bytes += ROUTED_COPIES * 2 * shape_tokens(s) / (double)s->tp *
			 (double)s->model->moe->topk * (double)s->model->hidden;
	/* torch.distributed.pipelining has a buffer for each micro-batch that a chunk will
	 * receive, and for each gradient. */
	if (s->pp > 1 && s->features.shard_bytes > 0 && !s->features.xla)
		bytes += 2 * 2 *
			 (double)(shape_micro_batches(s) * pipeline_chunks(s->schedule, s->vpp)) *
			 shape_tokens(s) / (double)s->tp * (double)s->model->hidden;
	/* the layer at work and the next one, weights and gradients */
	if (comm_fsdp(s) && s->pp == 1)
		bytes += 2 * (2 + shape_grad_bytes(s)) * whole / (double)MO_MAX(layers, 1);
	return bytes;
}

/* What allocators hold and do not use. Near the edge they give it back, and the share of
 * capacity is the margin that `fits` leaves; ROCm needs as much of it whatever runs. */
static double beside(const struct shape *s, double counted, double capacity)
{
	bool amd = mo_streq(s->gpu->vendor, "amd");
	double margin =
		(amd || s->features.expandable ? shape_k(s)->reserve : FIXED_SEGMENTS) * capacity;

	if (s->features.xla)
		return POOL_LEAVES * capacity;
	return amd ? margin : MO_MIN(margin, FRAGMENTATION * counted);
}

/* Of a weight's copies for 8 or 4 bit products, for forward and, transposed, for backward. */
static double cached_bytes(const struct shape *s)
{
	return !s->precision || mo_streq(s->precision, "bf16") || mo_streq(s->precision, "fp16")
		       ? 0
		       : 2 * (mo_streq(s->precision, "nvfp4") ? NVFP4_BYTES : 1);
}

/* Weights of a stage that are never in a narrow type: embedding and output layer. */
static double ends(const struct shape *s, int64_t stage)
{
	int64_t twin = shape_twin(s, stage), head = shape_head_stage(s);
	bool first = stage == 0 || twin == 0, last = stage == head || twin == head;

	return plan_params(s->model).embedding / (double)s->tp *
	       (first + (last && !(s->model->tied && first)));
}

void memory_of_stage(const struct shape *s, int64_t stage, struct plan_memory *ret)
{
	const struct plan_constants *k = shape_k(s);
	double dense, experts, dp = shape_shards(s), edp = (double)shape_edp(s),
			       grad = shape_grad_bytes(s), states = shape_state_bytes(s);
	bool zero1 = mo_streq(s->sharding, "zero1"), zero2 = mo_streq(s->sharding, "zero2"),
	     zero3 = comm_fsdp(s);
	/* FSDP behind a pipeline gathers weights once per step and reduces gradients once: both
	 * are whole in between. */
	bool held = zero3 && s->pp > 1;
	int64_t first, last;

	mo_assert(stage >= 0 && stage < s->pp);
	shape_weights(s, stage, &dense, &experts);
	shape_stage(s, stage, &first, &last);
	/* each layer is on two ranks of a pipeline */
	double whole = dense + experts,
	       share = (dense / dp + experts / edp) / (mo_streq(s->schedule, "dualpipe") ? 2 : 1);
	/* FSDP's shards are the master weights */
	double own = zero3 && s->features.shard_bytes > 0 ? (double)s->features.shard_bytes : 0;

	ret->params = ((own > 0 ? own : 2) * (zero3 ? share : whole) + (held ? 2 * whole : 0)) / GB;
	ret->grads = grad * ((zero2 || zero3) && !held ? share : whole) / GB;
	ret->optimizer = (1 - s->features.optimizer_offload) *
			 (own > 0 ? shape_moment_bytes(s) : states) *
			 (zero1 || zero2 || zero3 ? share : whole) / GB;
	ret->activations = activations(s, stage) / GB;
	ret->comm =
		(buffers(s, whole, last - first) +
		 (s->features.cached_weights && !zero3 ? cached_bytes(s) * (whole - ends(s, stage))
						       : 0)) /
		GB;
	ret->capacity = (double)s->gpu->hbm_bytes / GB;
	double counted = ret->params + ret->grads + ret->optimizer + ret->activations + ret->comm;

	ret->reserve = beside(s, counted, ret->capacity) + k->reserve_bytes / GB;
	ret->total = counted + ret->reserve;
}

void memory_of(const struct shape *s, struct plan_memory *ret)
{
	struct plan_memory m;

	*ret = (struct plan_memory){ .total = -1 };
	for (int64_t stage = 0; stage < s->pp; stage++) {
		/* Later stages hold fewer micro-batches; of them only the last, with the logits,
		 * can be the fullest. */
		if (stage >= STAGES_TRIED && stage < s->pp - 1)
			stage = s->pp - 1;
		memory_of_stage(s, stage, &m);
		if (m.total > ret->total)
			*ret = m;
	}
}

void memory_stages_of(const struct shape *s, struct plan *p)
{
	for (int64_t stage = 0; stage < s->pp; stage++) {
		struct plan_stage *row = MO_ADD(p, memory_stages, &plan_stage_desc);
		struct plan_memory m;
		int64_t first, last;

		memory_of_stage(s, stage, &m);
		shape_stage(s, stage, &first, &last);
		*row = (struct plan_stage){ stage,       last - first,  m.total, m.params, m.grads,
					    m.optimizer, m.activations, m.comm,  m.reserve };
	}
}
