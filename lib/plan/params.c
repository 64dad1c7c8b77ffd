/* Parameters and FLOPs of a model. Checked against published totals: DeepSeek-V2-Lite 15.7 B, V2
 * 235.7 B, V3 671.0 B, Kimi-K2 1026.4 B, Qwen3-30B 30.5 B, Mixtral-8x22B 140.6 B, Llama-3-70B
 * 70.6 B; FLOPs per token against the figures that Megatron reports for eight models (0 to +0.5
 * %). */
#include "lib/plan/params.h"

#include "lib/base/assert.h"

/* Width of a query/key and of a value head. */
void model_head_widths(const struct recipe_model *m, double *ret_qk, double *ret_v)
{
	double d =
		m->head_dim != MO_NONE ? (double)m->head_dim : (double)m->hidden / (double)m->heads;

	*ret_qk = m->mla ? (double)(m->mla->qk_nope + m->mla->qk_rope) : d;
	*ret_v = m->mla ? (double)m->mla->v : d;
}

static double attention_weights(const struct recipe_model *m)
{
	double h = (double)m->hidden, a = (double)m->heads,
	       kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, qk, v;

	model_head_widths(m, &qk, &v);
	if (!m->mla)
		return 2 * h * a * qk + 2 * h * kv * qk;
	double q = (double)m->mla->q_lora, z = (double)m->mla->kv_lora,
	       rope = (double)m->mla->qk_rope, nope = (double)m->mla->qk_nope;
	double queries = q > 0 ? h * q + q * a * qk + q : h * a * qk;

	return queries + h * (z + rope) + z * a * (nope + v) + z + a * v * h;
}

/* Counted, not walked: a search asks this for every stage of every sharding. */
int64_t plan_moe_layers(const struct recipe_model *m, int64_t first, int64_t last)
{
	mo_assert(first >= 0 && first <= last);
	if (!m->moe)
		return 0;
	int64_t every = MO_MAX(m->moe->every, 1),
		from = MO_MAX(first, MO_MAX(m->moe->dense_layers, 0));

	return last > from ? (last + every - 1) / every - (from + every - 1) / every : 0;
}

struct params plan_params(const struct recipe_model *m)
{
	double h = (double)m->hidden, g = m->gated ? 3 : 2, norms = 2 * h;
	double moe_layers = (double)plan_moe_layers(m, 0, m->layers),
	       dense_layers = (double)m->layers - moe_layers;
	struct params p = {
		.attention = attention_weights(m) + norms,
		.dense_ffn = m->ffn != MO_NONE ? g * h * (double)m->ffn : 0,
		.embedding = h * (double)m->vocab,
	};
	double embeddings = (m->tied ? 1 : 2) * p.embedding + h, experts = 0, topk = 0;

	if (m->moe) {
		experts = (double)m->moe->experts;
		topk = (double)m->moe->topk;
		p.expert = g * h * (double)m->moe->ffn;
		p.shared = g * h * (double)m->moe->shared_ffn;
		p.router = h * experts;
	}
	double others = (double)m->layers * p.attention + dense_layers * p.dense_ffn +
			moe_layers * (p.shared + p.router) + embeddings;

	p.total = others + moe_layers * experts * p.expert;
	p.active = others + moe_layers * topk * p.expert;
	/* An MTP layer is one more layer and a projection of 2h to h. */
	p.mtp = m->mtp > 0 ? (double)m->mtp * (p.attention + 2 * h * h +
					       (m->moe ? p.shared + p.router + experts * p.expert
						       : p.dense_ffn))
			   : 0;
	mo_assert(p.active <= p.total * (1 + 1e-9));
	return p;
}

/* Mean number of earlier tokens that a token attends to. */
double model_context(const struct recipe_model *m, double seq)
{
	double w = (double)m->window;

	return m->window > 0 && w < seq ? w - w * w / (2 * seq) : seq / 2;
}

double plan_flops_per_token(const struct recipe_model *m, int64_t seq)
{
	struct params p = plan_params(m);
	double qk, v, layers = (double)(m->layers + MO_MAX(m->mtp, 0)),
		      matmul = p.active - (m->tied ? 0 : p.embedding);

	model_head_widths(m, &qk, &v);
	if (m->mtp > 0) /* active weights of the MTP layers, and their logits */
		matmul += p.mtp -
			  (m->moe ? (double)m->mtp * (double)(m->moe->experts - m->moe->topk) *
					    p.expert
				  : 0) +
			  (double)m->mtp * p.embedding;
	return 6 * matmul +
	       6 * layers * model_context(m, (double)seq) * (double)m->heads * (qk + v);
}
