/* Memory of the fullest rank, in 10^9 bytes. States: 2 bytes of weight, 4 of gradient (Megatron accumulates in FP32), 12 of FP32 master and Adam. Activations: Korthikanti
 * et al. 2022 (34 s b h without recomputation, 5 a s / h of scores) generalised to gated, grouped and latent attention and to experts' routed rows; in flight as in the pipeline schedules' papers. */
#include <string.h>

#include "lib/plan/parts.h"
#include "lib/plan/pipeline.h"

#define GB 1e9
#define STAGES_TRIED 32
#define LOGIT_BYTES 10.0         /* two of the logits, an FP32 copy and its gradient */
#define LOGIT_BYTES_FUSED 6.0    /* V2-Lite: 20 GB less for 12 x 4096 x 102400 */
#define LOGIT_BYTES_EAGER 12.0   /* log-softmax in FP32 kept too, gradient in two bytes */
#define PLAIN_COPIES 10.0        /* copies of a layer's routed rows alive around a plain all-to-all; V2-Lite: 26 GB more than with DeepEP for 12 x 4096 x 6 rows of 2048 */
#define DEEPEP_COPIES 2.0
#define GATHERED 4.0             /* bytes per token and hidden element */

/* Elements that one token keeps in a layer's attention block: both norms' inputs and outputs, what attention reads and gives. Scores of unfused attention in bytes. */
static double attention_elements(const struct recipe_model *m)
{
	double h = (double)m->hidden, a = (double)m->heads, kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, qk, v;

	model_head_widths(m, &qk, &v);
	if (m->mla)
		return 4 * h + (double)(m->mla->q_lora + m->mla->kv_lora + m->mla->qk_rope) + 2 * a * qk + 2 * a * v;
	return 4 * h + (a + 2 * kv) * qk + a * v;
}

/* What only tensor parallelism with sequence parallelism divides: norms' inputs and outputs, and dropout's masks of one byte. */
static double replicated_bytes(const struct recipe_model *m, bool unfused)
{
	return (double)m->hidden * (8 + (unfused ? 2 : 0));
}

static double ffn_elements(const struct recipe_model *m, bool moe)
{
	double g = m->gated ? 3 : 2;

	if (!moe)
		return m->ffn != MO_NONE ? g * (double)m->ffn : 0;
	return (double)m->moe->topk * ((double)m->hidden + g * (double)m->moe->ffn) + g * (double)MO_MAX(m->moe->shared_ffn, 0);
}

/* Bytes that one token of one layer keeps for its backward pass, divided over TP. */
double memory_layer_bytes(const struct shape *s, bool moe, const char *recompute)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, t = (double)s->tp, shared = s->features.no_sequence_parallel ? 1 : t;
	bool unfused = mo_streq(m->attention, "unfused"), selective = mo_streq(recompute, "selective");

	if (mo_streq(recompute, "full"))
		return 2 * h / shared;
	double common = replicated_bytes(m, unfused), rest = 2 * (attention_elements(m) + ffn_elements(m, moe)) - 8 * h;

	/* PyTorch's selective recompute keeps every other product and attention's result; Megatron's drops the scores. */
	if (selective && s->features.eager)
		return (common / 2) / shared + rest / 2 / t;
	if (unfused && !selective)
		rest += 5 * (double)m->heads * (double)s->seq / (double)s->cp;
	return common / shared + rest / t;
}

/* Bytes per token of the layers [first, last): those of the first `again` that are recomputed keep their input only. */
static double layers_bytes(const struct shape *s, int64_t first, int64_t last, int64_t again, double *ret_working)
{
	double bytes = 0;

	*ret_working = 0;
	for (int kind = 0; kind < 2; kind++) {
		int64_t head = plan_moe_layers(s->model, first, first + again), rest = plan_moe_layers(s->model, first + again, last);
		double n = (double)(kind ? head : again - head), others = (double)(kind ? rest : last - first - again - rest);

		if (n + others == 0)
			continue;
		double whole = memory_layer_bytes(s, kind, mo_streq(s->recompute, "full") ? "none" : s->recompute);

		bytes += n * memory_layer_bytes(s, kind, "full") + others * whole;
		if (n > 0)
			*ret_working = MO_MAX(*ret_working, whole);
	}
	return bytes;
}

static double activations(const struct shape *s, int64_t stage)
{
	const struct recipe_model *m = s->model;
	int64_t first, last;
	double tokens = shape_tokens(s), working, extra;

	shape_stage(s, stage, &first, &last);
	double flight = pipeline_in_flight(s->schedule, s->pp, s->vpp, shape_micro_batches(s), stage), bytes = layers_bytes(s, first, last, MO_MIN(shape_stage_recomputed(s, stage), last - first), &working) * flight + working;

	if (s->tp > 1 && !s->features.no_sequence_parallel)      /* a layer's input of all ranks, and the gradient of it */
		bytes += GATHERED * (double)m->hidden;
	if (stage == shape_head_stage(s)) {
		double logits = s->features.fused_loss ? LOGIT_BYTES_FUSED : s->features.eager ? LOGIT_BYTES_EAGER : LOGIT_BYTES, heads = 1 + (double)MO_MAX(m->mtp, 0);

		bytes += heads * logits * (double)m->vocab / (double)s->tp;
		if (m->mtp > 0)
			bytes += (double)m->mtp * layers_bytes(s, m->layers - 1, m->layers, shape_recomputed(s, m->layers - 1, m->layers), &extra);
	}
	return bytes * tokens;
}

/* Buffers of exchanges: routed rows around the all-to-all, layers that FSDP has gathered, communicators. */
static double buffers(const struct shape *s, double whole, int64_t layers)
{
	const struct plan_constants *k = shape_k(s);
	double bytes = s->gpus > 1 ? MO_MIN(k->communicator_bytes + k->communicator_rank_bytes * (double)s->gpus, k->communicator_max_bytes) : 0;

	if (s->ep > 1 && s->model->moe)
		bytes += (s->features.deepep ? DEEPEP_COPIES : PLAIN_COPIES) * 2 * shape_tokens(s) / (double)s->tp * (double)s->model->moe->topk * (double)s->model->hidden;
	if (comm_fsdp(s) && s->pp == 1)      /* the layer at work and the next one, weights and gradients */
		bytes += 2 * (2 + 4) * whole / (double)MO_MAX(layers, 1);
	return bytes;
}

void memory_of_stage(const struct shape *s, int64_t stage, struct plan_memory *ret)
{
	const struct plan_constants *k = shape_k(s);
	double dense, experts, dp = shape_shards(s), edp = (double)shape_edp(s), grad = shape_grad_bytes(s), states = shape_state_bytes(s);
	bool zero1 = mo_streq(s->sharding, "zero1"), zero2 = mo_streq(s->sharding, "zero2"), zero3 = comm_fsdp(s);
	/* FSDP behind a pipeline gathers weights once per step and reduces gradients once: both are whole in between. */
	bool held = zero3 && s->pp > 1;
	int64_t first, last;

	shape_weights(s, stage, &dense, &experts);
	shape_stage(s, stage, &first, &last);
	double whole = dense + experts, share = dense / dp + experts / edp;

	ret->params = 2 * (zero3 ? share + (held ? whole : 0) : whole) / GB;
	ret->grads = grad * ((zero2 || zero3) && !held ? share : whole) / GB;
	ret->optimizer = states * (zero1 || zero2 || zero3 ? share : whole) / GB;
	ret->activations = activations(s, stage) / GB;
	ret->comm = buffers(s, whole, last - first) / GB;
	ret->capacity = (double)s->gpu->hbm_bytes / GB;
	ret->reserve = k->reserve * ret->capacity + k->reserve_bytes / GB;
	ret->total = ret->params + ret->grads + ret->optimizer + ret->activations + ret->comm + ret->reserve;
}

void memory_of(const struct shape *s, struct plan_memory *ret)
{
	struct plan_memory m;

	*ret = (struct plan_memory){ .total = -1 };
	for (int64_t stage = 0; stage < s->pp; stage++) {
		/* Later stages hold fewer micro-batches; of them only the last, with the logits, can be the fullest. */
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
		*row = (struct plan_stage){ stage, last - first, m.total, m.params, m.grads, m.optimizer, m.activations, m.comm, m.reserve };
	}
}
