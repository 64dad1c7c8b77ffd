/* What one token keeps of one layer for the backward pass. Korthikanti et al. 2022 (34 h bytes
 * without recomputation, 5 a s of scores) generalised to gated, grouped and latent attention and
 * to experts' routed rows; less what Megatron's selective recomputation drops
 * (transformer_config.py, recompute_modules), what MaxText's remat_policy does not save
 * (decoders.py), and the half of a GEMM's input that Transformer Engine keeps where it computes
 * in 8 bits. Callers: memory.c. */
#include "lib/plan/retained.h"

#include <string.h>

#include "lib/plan/features.h"
#include "lib/plan/params.h"
#include "lib/plan/shape.h"

#define STORED_NARROW 1.0  /* bytes of an element that Transformer Engine keeps in 8 bits */
#define STORED_4BIT 0.5625 /* and in NVFP4: a scale of 8 bits for 16 elements */

/* Bytes of what a token keeps. wide: h wide, divided by TP only with sequence parallelism. */
struct retained {
	double wide, rest;
};

static bool drops(const struct shape *s, const char *recompute, int64_t module)
{
	return mo_streq(recompute, "selective") && (s->features.recompute_modules & module);
}

/* Of an element that a GEMM has read, for the gradient of its weights. PyTorch's and JAX' 8 bit
 * products keep the operand as it was. */
static double stored(const struct shape *s)
{
	bool narrow =
		s->precision && !mo_streq(s->precision, "bf16") && !mo_streq(s->precision, "fp16");

	if (!narrow || s->features.eager || s->features.shard_bytes > 0)
		return 2;
	return mo_streq(s->precision, "nvfp4") ? STORED_4BIT : STORED_NARROW;
}

/* Both norms' inputs and outputs, queries, keys, values and attention's result, which the next
 * product keeps in its own width where that is another. */
static struct retained attention_retained(const struct shape *s, bool moe, const char *recompute)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, a = (double)m->heads,
	       kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, in = stored(s), qk, v;
	bool unfused = mo_streq(m->attention, "unfused");
	bool masks = unfused && !s->features.no_dropout;
	struct retained k = { .wide = 4 * h + (masks ? 2 * h : 0) }; /* a byte each */

	model_head_widths(m, &qk, &v);
	/* a router reads 16 bits */
	double outputs = drops(s, recompute, MODULE_NORMS) ? 0 : in * h + (moe ? 2 : in) * h;

	k.wide += outputs;
	if (!m->mla)
		k.rest = 2 * (a + 2 * (s->features.eager ? a : kv)) * qk +
			 (m->qk_norm ? 2 * (a + kv) * qk : 0);
	else
		k.rest = 2 * (double)(m->mla->q_lora + m->mla->kv_lora + m->mla->qk_rope) +
			 (drops(s, recompute, MODULE_MLA_UP) ? 0 : 2 * a * (2 * qk + v));
	/* PyTorch's tensor parallelism keeps them gathered, Megatron gathers again */
	if (s->features.shard_bytes > 0 && !s->features.xla && s->tp > 1)
		k.rest += outputs * (double)(s->tp - 1);
	k.rest += 2 * a * v + (in < 2 ? in * a * v : 0);
	if (unfused && !mo_streq(recompute, "selective"))
		k.rest += (masks ? 5 : 2) * a * (double)s->seq / (double)s->cp;
	return k;
}

/* A gated product of width f: what the activation function reads, and its result. */
static double activation_retained(const struct shape *s, double f, bool result_dropped)
{
	double in = stored(s);

	/* and the gate behind its function, beside the product */
	if (s->features.eager && !s->features.compiled && s->model->gated)
		in += 2;
	return f *
	       ((s->model->gated ? 2 : 1) * (s->features.narrow_activation ? MO_MIN(in, 1) : 2) +
		(result_dropped ? 0 : in));
}

/* Routed rows are kept as the experts read them; on AMD GPUs those of a plain all-to-all once
 * more (DeepSeek-V2-Lite on MI355X: DeepEP saves 26 GB, 27 layers of 12 x 4096 x 6 rows; Qwen3
 * 235B in eight schedules). NeMo's runs on NVIDIA GPUs have no room for that. */
static double ffn_retained(const struct shape *s, bool moe, const char *recompute)
{
	const struct recipe_model *m = s->model;

	if (!moe)
		return m->ffn != MO_NONE && !drops(s, recompute, MODULE_MLP)
			       ? activation_retained(s, (double)m->ffn, false)
			       : 0;
	if (drops(s, recompute, MODULE_MOE))
		return 0;
	double again = !s->features.deepep && mo_streq(s->gpu->vendor, "amd") ? 2 : 0;
	double routed = (stored(s) + again) * (double)m->hidden +
			activation_retained(s, (double)m->moe->ffn,
					    drops(s, recompute, MODULE_EXPERT_ACTIVATION));

	return (double)m->moe->topk * routed +
	       (drops(s, recompute, MODULE_SHARED)
			? 0
			: activation_retained(s, (double)MO_MAX(m->moe->shared_ffn, 0), false));
}

/* MaxText saves the layer's input and what the policy names, in 16 bits. */
static double remat_retained(const struct shape *s, bool moe)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, a = (double)m->heads,
	       kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, g = m->gated ? 2 : 1, qk, v;
	double rows = moe ? (double)m->moe->topk : 1,
	       f = moe                 ? (double)m->moe->ffn
		   : m->ffn != MO_NONE ? (double)m->ffn
				       : 0,
	       shared = moe ? (double)MO_MAX(m->moe->shared_ffn, 0) : 0;

	model_head_widths(m, &qk, &v);
	const double elements[] = { m->mla ? a * (2 * qk + v) : (a + 2 * kv) * qk, h, a * v,
				    g * (rows * f + shared), rows * h };
	double saved = h;

	for (size_t i = 0; i < ELEMENTSOF(elements); i++)
		saved += s->features.remat_saved & (1 << i) ? elements[i] : 0;
	return 2 * saved / (double)s->tp;
}

/* Selective recomputation of torchtitan keeps the layer's input, attention's result and every
 * other product: queries, values, gate and the last, which compilation drops as nothing reads
 * it. */
static double every_other_retained(const struct shape *s, bool moe)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, a = (double)m->heads,
	       kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, qk, v,
	       last = s->features.compiled ? 0 : h;
	double rows = moe ? (double)m->moe->topk : 1,
	       f = moe                 ? (double)m->moe->ffn
		   : m->ffn != MO_NONE ? (double)m->ffn
				       : 0,
	       shared = moe ? (double)MO_MAX(m->moe->shared_ffn, 0) : 0;

	model_head_widths(m, &qk, &v);
	return 2 * (h + last + a * qk + kv * v + a * v + rows * f + shared) / (double)s->tp;
}

double memory_layer_bytes(const struct shape *s, bool moe, const char *recompute)
{
	double t = (double)s->tp, shared = s->features.no_sequence_parallel ? 1 : t;

	if (mo_streq(recompute, "full"))
		return 2 * (double)s->model->hidden / shared;
	if (mo_streq(recompute, "selective") && s->features.xla)
		return remat_retained(s, moe);
	if (mo_streq(recompute, "selective") && s->features.shard_bytes > 0)
		return every_other_retained(s, moe);
	struct retained k = attention_retained(s, moe, recompute);

	k.rest += ffn_retained(s, moe, recompute);
	return k.wide / shared + k.rest / t;
}

double memory_layer_offloaded(const struct shape *s, bool moe)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, a = (double)m->heads,
	       kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, in = stored(s),
	       k = moe ? (double)m->moe->topk : 0, e = moe ? (double)m->moe->ffn : 0, qk, v;
	double wide = 1 / (s->features.no_sequence_parallel ? 1 : (double)s->tp),
	       t = 1 / (double)s->tp;
	bool norms = !drops(s, s->recompute, MODULE_NORMS),
	     up = !drops(s, s->recompute, MODULE_MLA_UP),
	     experts = !drops(s, s->recompute, MODULE_MOE);

	model_head_widths(m, &qk, &v);
	const double bytes[] = {
		2 * h * wide,
		norms ? in * h * wide : 0,
		m->mla ? up * 2 * a * (2 * qk + v) * t : 2 * (a + 2 * kv) * qk * t,
		(2 * a * v + (in < 2 ? in * a * v : 0)) * t,
		2 * h * wide,
		experts * in * k * h * t,
		experts * activation_retained(s, k * e, true) * t,
	};
	double sum = 0;

	for (size_t i = 0; i < ELEMENTSOF(bytes) && !mo_streq(s->recompute, "full"); i++)
		sum += s->features.offload_modules & (1 << i) ? bytes[i] : 0;
	return sum;
}

double memory_layer_gradients(const struct shape *s, bool moe)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, a = (double)m->heads,
	       kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, g = m->gated ? 2 : 1, qk, v;
	double f = moe                 ? (double)MO_MAX(m->moe->shared_ffn, 0)
		   : m->ffn != MO_NONE ? (double)m->ffn
				       : 0,
	       attention = 0;

	model_head_widths(m, &qk, &v);
	if (m->mla)
		attention = (double)(m->mla->q_lora + m->mla->kv_lora + m->mla->qk_rope) +
			    a * (qk + (double)m->mla->qk_nope + v);
	else
		attention = (a + 2 * kv) * qk;
	double elements = attention + h + g * f + (f > 0 ? h : 0) +
			  (moe ? (double)m->moe->topk * (g * (double)m->moe->ffn + h) : 0);

	return stored(s) * elements / (double)s->tp;
}
