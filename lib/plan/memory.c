/* Memory of the fullest rank, in 10^9 bytes. States: 2 bytes of weight, 4 of gradient (Megatron accumulates in FP32), 12 of FP32 master and Adam. Activations: Korthikanti
 * et al. 2022 for dense layers, Primus' form for experts; in flight as in the pipeline schedules' papers. */
#include <string.h>

#include "lib/plan/parts.h"
#include "lib/plan/pipeline.h"

#define GB 1e9
#define STAGES_TRIED 32
#define RESERVE 0.05     /* of capacity: RCCL, allocator, fragmentation take 9-17 GB on MI300X and MI355X */

static double attention_bytes(const struct shape *s, bool recompute)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, a = (double)m->heads, kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a;
	double d = m->head_dim != MO_NONE ? (double)m->head_dim : h / a, elements;

	if (m->mla)
		elements = 2 * h + (double)(m->mla->q_lora + m->mla->kv_lora + m->mla->qk_rope) + 2 * a * (double)(m->mla->qk_nope + m->mla->qk_rope) + 2 * a * (double)m->mla->v;
	else
		elements = 2 * h + (a + 2 * kv) * d + a * d;
	/* Scores, softmax and dropout mask of unfused attention are the part that selective recompute drops. */
	double scores = mo_streq(m->attention, "unfused") && !recompute ? 5 * a * (double)s->seq / (double)s->cp : 0;

	return 2 * elements + scores;
}

/* Bytes that one token of one layer keeps for its backward pass, before TP. */
static double layer_bytes(const struct shape *s, bool moe_layer)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, g = m->gated ? 3 : 2;

	if (mo_streq(s->recompute, "full"))
		return 2 * h;
	double bytes = attention_bytes(s, mo_streq(s->recompute, "selective"));

	if (!moe_layer || !m->moe)
		return bytes + 2 * g * (double)m->ffn;
	double rows = (double)m->moe->topk, shared = m->moe->shared_ffn > 0 ? h + g * (double)m->moe->shared_ffn : 0;

	return bytes + 2 * (rows * (h + g * (double)m->moe->ffn) + shared);
}

static double activations(const struct shape *s, int64_t stage)
{
	const struct recipe_model *m = s->model;
	int64_t first, last;
	double tokens = shape_tokens(s) / (double)s->tp, bytes = 0, working;

	shape_stage(s, stage, &first, &last);
	int64_t moe = plan_moe_layers(m, first, last), dense = last - first - moe;

	if (dense)
		bytes += (double)dense * layer_bytes(s, false);
	if (moe)
		bytes += (double)moe * layer_bytes(s, true);
	bytes *= tokens * pipeline_in_flight(s->schedule, s->pp, s->vpp, shape_micro_batches(s), stage);
	if (mo_streq(s->recompute, "full")) {    /* the layer that is being recomputed */
		struct shape none = *s;

		none.recompute = "none";
		working = tokens * MO_MAX(dense ? layer_bytes(&none, false) : 0, moe ? layer_bytes(&none, true) : 0);
		bytes += working;
	}
	if (stage == s->pp - 1)                  /* logits, their FP32 copy and its gradient */
		bytes += tokens * (double)m->vocab * (2 + 4 + 4);
	return bytes;
}

void memory_of_stage(const struct shape *s, int64_t stage, struct plan_memory *ret)
{
	double dense, experts, dp = (double)(s->dp * s->cp), edp = (double)shape_edp(s);
	bool zero1 = mo_streq(s->sharding, "zero1"), zero2 = mo_streq(s->sharding, "zero2"), zero3 = mo_streq(s->sharding, "zero3");

	shape_weights(s, stage, &dense, &experts);
	double whole = dense + experts, share = dense / dp + experts / edp;

	ret->params = 2 * (zero3 ? share : whole) / GB;
	ret->grads = 4 * (zero2 || zero3 ? share : whole) / GB;
	ret->optimizer = 12 * (zero1 || zero2 || zero3 ? share : whole) / GB;
	ret->activations = activations(s, stage) / GB;
	ret->comm = 0;
	if (s->ep > 1)           /* dispatch and combine buffers of one layer */
		ret->comm += 2 * 2 * shape_tokens(s) / (double)s->tp * (double)s->model->moe->topk * (double)s->model->hidden / GB;
	if (zero3) {             /* the gathered layer and the next one */
		int64_t first, last;

		shape_stage(s, stage, &first, &last);
		ret->comm += 2 * 2 * whole / (double)MO_MAX(last - first, 1) / GB;
	}
	ret->capacity = (double)s->gpu->hbm_bytes / GB;
	ret->reserve = RESERVE * ret->capacity;
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
