/* Kernels of one layer on one rank for one micro-batch: GEMMs by shape, attention, element-wise
 * passes. A kernel takes its arithmetic at the rate of the best measured GEMM times what layers
 * reach of it, at least the time of its operands' traffic, half a wave of tiles at the end, and
 * a start-up; so small and narrow GEMMs are slow without a table of shapes. Shapes are
 * Megatron's: fused QKV and gate/up projections, experts as one grouped GEMM over the local
 * ones. Callers: time.c. */
#include "lib/plan/layer.h"

#include <math.h>

#include "lib/base/assert.h"
#include "lib/plan/features.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/shape.h"

#define GEMM_UNMEASURED 0.6 /* where nobody measured a large GEMM: between MI325X and MI355X */
/* FLOPs of flash attention backward against forward: scores again, then four products */
#define BACKWARD_ATTENTION 2.5
/* FlashAttention-3 paper: at width 128 the exponentials take half as long as the products; cuDNN
 * on H200: 470 and 620 TFLOP/s at widths 64 and 128 */
#define EXPONENTIAL_WIDTH 64.0
#define H100_UNIT_TFLOPS (989.0 / 132)
/* FlashAttention-2 is bound by its products: 313 and 342 TFLOP/s there */
#define PORTABLE_WIDTH 13.0
/* times that fused kernels read or write the routed rows around both exchanges: 8, in buffers
 * half as large again (moe_expert_rank_capacity_factor 1.5) */
#define FUSED_PASSES 12.0
/* of those of the experts: half of the operands come from the activation, which writes them in 8
 * bits */
#define FUSED_CASTS 0.5
/* Megatron adds the experts' second bias expert by expert, weighed in FP32: bytes per element of
 * each pass, counted in its source */
#define BIAS_FORWARD 28.0
#define BIAS_BACKWARD 40.0
#define TILE (128.0 * 256.0) /* elements of the result that a compute unit makes at a time */
/* unfused attention: scores written, masked softmax read and written, dropout read, written,
 * masked, read by the product */
#define SCORE_BYTES 16.0

bool shape_narrow(const struct shape *s)
{
	return s->precision && !mo_streq(s->precision, "bf16") && !mo_streq(s->precision, "fp16");
}

static double best_use(const struct shape *s)
{
	return s->gpu->gemm_efficiency != MO_NONE_F ? s->gpu->gemm_efficiency : GEMM_UNMEASURED;
}

/* FLOP/s of a large GEMM in 16 bit. */
static double rate16(const struct shape *s)
{
	return gpu_peak_tflops(s->gpu, mo_streq(s->precision, "fp16") ? "fp16" : "bf16") * 1e12 *
	       best_use(s) * (s->gpu->fp8_tflops == MO_NONE_F ? shape_k(s)->sustained : 1);
}

/* In 8 or 4 bits. */
static double narrow_rate(const struct shape *s)
{
	double best = s->gpu->gemm_efficiency_fp8 != MO_NONE_F ? s->gpu->gemm_efficiency_fp8
							       : best_use(s);

	return gpu_peak_tflops(s->gpu, s->precision) * 1e12 * best * shape_k(s)->fp8_use;
}

static double memory_s(const struct shape *s, double bytes)
{
	return bytes / (s->gpu->hbm_tbps * 1e12 * shape_k(s)->memory_use);
}

/* WIDE: the output layer, in 16 bits whatever the precision */
enum gemm { PLAIN, GROUPED, WIDE };

/* n groups of rows x inner times inner x columns; out_bytes per element of the result. */
static double gemm(const struct shape *s, double n, double rows, double columns, double inner,
		   double out_bytes, enum gemm kind)
{
	const struct plan_constants *k = shape_k(s);
	bool cast = shape_narrow(s) && kind != WIDE,
	     fused = kind == GROUPED && s->features.fused_experts;
	double width = cast ? 1 : 2, flops = 2 * n * rows * columns * inner,
	       bytes = n * (width * inner * (rows + columns) + out_bytes * rows * columns);
	double casts = cast ? n * rows * inner * k->quantize_passes * (fused ? FUSED_CASTS : 1) : 0,
	       rate = cast ? narrow_rate(s) : rate16(s) * k->gemm_use;

	mo_assert(n >= 0 && rows >= 0 && columns >= 0 && inner >= 0);
	if (flops <= 0)
		return 0;
	/* The last wave of tiles fills the GPU in part; experts of one launch share it. */
	double launches = kind == GROUPED && s->features.expert_launches ? n : 1,
	       units = (double)MO_MAX(s->gpu->compute_units, 0);

	flops += launches * k->tail * 2 * TILE * inner * units;
	return MO_MAX(flops / rate, memory_s(s, bytes)) + memory_s(s, casts) + k->kernel_s;
}

/* A linear layer of n groups: forward, gradient of the input, gradient of the weights added to
 * FP32. */
static void linear(const struct shape *s, double n, double rows, double columns, double inner,
		   enum gemm kind, struct kernels *add)
{
	double wgrad = gemm(s, n, columns, inner, rows, 8, kind);

	add->forward += gemm(s, n, rows, columns, inner, 2, kind);
	add->backward += gemm(s, n, rows, inner, columns, 2, kind) + wgrad;
	add->wgrad += wgrad;
}

static void projections(const struct shape *s, double rows, struct kernels *add)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, t = (double)s->tp, a = (double)m->heads,
	       kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, qk, v;

	model_head_widths(m, &qk, &v);
	if (!m->mla) {
		linear(s, 1, rows, (a + 2 * kv) * qk / t, h, PLAIN, add);
		linear(s, 1, rows, h, a * v / t, PLAIN, add);
		return;
	}
	double q = (double)m->mla->q_lora, z = (double)m->mla->kv_lora,
	       rope = (double)m->mla->qk_rope;

	if (q > 0) {
		linear(s, 1, rows, q, h, PLAIN, add);
		linear(s, 1, rows, a * qk / t, q, PLAIN, add);
	} else
		linear(s, 1, rows, a * qk / t, h, PLAIN, add);
	linear(s, 1, rows, z + rope, h, PLAIN, add);
	linear(s, 1, rows, a * ((double)m->mla->qk_nope + v) / t, z, PLAIN, add);
	linear(s, 1, rows, h, a * v / t, PLAIN, add);
}

/* PyTorch's attention on AMD GPUs is AOTriton. */
static bool triton(const struct shape *s)
{
	return s->features.triton_attention ||
	       (s->features.eager && mo_streq(s->gpu->vendor, "amd"));
}

/* Exponentials cost as much as the products of a head of this width: more where the products are
 * faster, per compute unit. */
static double exponential_width(const struct shape *s)
{
	const struct gpu_type *g = s->gpu;
	double rate = g->exponentials > 0 ? (double)g->exponentials / 16 : 1;

	return EXPONENTIAL_WIDTH / rate *
	       (g->compute_units > 0
			? gpu_peak_tflops(g, "bf16") / (double)g->compute_units / H100_UNIT_TFLOPS
			: 1);
}

/* Scores and values. The portable flash kernel (FlashAttention-2, Triton) was written for the
 * GPUs before 8 bit GEMMs and loses on later ones. Unfused: two batched GEMMs of the full
 * square, and the passes over the scores. */
static void attention(const struct shape *s, double rows, struct kernels *add)
{
	const struct recipe_model *m = s->model;
	const struct plan_constants *k = shape_k(s);
	double qk, v, a = (double)m->heads / (double)s->tp,
		      context = model_context(m, (double)s->seq), forward;

	model_head_widths(m, &qk, &v);
	if (mo_streq(m->attention, "unfused")) {
		double square = rows * (double)s->seq * a;

		forward = 2 * square * (qk + v) / (rate16(s) * k->gemm_use) +
			  memory_s(s, SCORE_BYTES * square);
		add->forward += forward + 5 * k->kernel_s;
		add->backward += 2 * forward + 10 * k->kernel_s;
		if (mo_streq(s->recompute, "selective"))
			add->recompute += forward + 5 * k->kernel_s;
		return;
	}
	/* Kernels that are written for GPUs with 8 bit units spend on exponentials what a head
	 * of that width costs; portable ones, and all on earlier GPUs, are bound by their
	 * products. */
	bool later = s->gpu->fp8_tflops != MO_NONE_F, portable = !later || s->features.eager;
	double width = (qk + v) / 2,
	       narrower = s->features.narrow_attention && shape_narrow(s)
				  ? rate16(s) / narrow_rate(s)
				  : 1,
	       use = portable
			     ? width / (width + PORTABLE_WIDTH) * k->portable_attention *
				       (later ? k->later_attention : 1) *
				       (triton(s) ? k->triton_attention : 1)
			     : width / (width * narrower + exponential_width(s)) * k->attention_use;

	if (s->features.eager && s->cp > 1)
		use *= k->ring_attention;
	forward = 2 * rows * context * a * (qk + v) / (rate16(s) * use);
	add->forward += forward + k->kernel_s;
	add->backward += BACKWARD_ATTENTION * forward / k->backward_attention + k->kernel_s;
}

static void passes(const struct shape *s, double forward_bytes, double backward_bytes, int kernels,
		   struct kernels *add)
{
	double start = shape_k(s)->kernel_s,
	       more = s->features.eager && !s->features.compiled ? shape_k(s)->eager_passes : 1;

	mo_assert(forward_bytes >= 0 && backward_bytes >= 0 && kernels >= 0);
	add->forward += memory_s(s, more * forward_bytes) + kernels * start;
	add->backward += memory_s(s, more * backward_bytes) + 2 * kernels * start;
}

/* Two norms and two residual additions (rows of this rank's part of the sequence), positions on
 * queries and keys. */
static void around(const struct shape *s, double rows, struct kernels *add)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, a = (double)m->heads,
	       kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, qk, v;

	model_head_widths(m, &qk, &v);
	double turned = 2 * (m->mla ? 2 * a * qk : (a + kv) * qk) / (double)s->tp,
	       wide = h / (s->features.no_sequence_parallel ? 1 : (double)s->tp);

	passes(s, 2 * rows * (10 * wide + turned), 2 * rows * (12 * wide + turned), 6, add);
}

/* PyTorch repeats forward as far as backward needs an operand: not the layer's last product.
 * Selectively, as torchtitan does, every other product (keys, attention's output, the second of
 * a gated pair) and all that lies between. Llama 8B on 4 H200: 1.21 and 1.09 times the step
 * without. rows go through products of width f. */
static double repeated_eager(const struct shape *s, double rows, double f,
			     const struct kernels *whole)
{
	const struct recipe_model *m = s->model;
	double h = (double)m->hidden, t = (double)s->tp, tokens = shape_tokens(s),
	       a = (double)m->heads, kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : a, qk, v;
	struct kernels last = { 0 }, some = { 0 };

	linear(s, 1, rows, h, f, PLAIN, &last);
	if (!mo_streq(s->recompute, "selective"))
		return whole->forward - last.forward;
	model_head_widths(m, &qk, &v);
	linear(s, 1, tokens, kv * qk / t, h, PLAIN, &some);
	linear(s, 1, tokens, h, a * v / t, PLAIN, &some);
	if (m->gated)
		linear(s, 1, rows, f, h, PLAIN, &some);
	around(s, tokens, &some);
	return some.forward;
}

/* What runs forward again, `rows` of them through products of width f. */
static void finish(const struct shape *s, double rows, double f, struct kernels *add)
{
	double layers = (double)s->model->layers,
	       some = s->features.recompute_ids ? (double)shape_recomputed(s, 0, s->model->layers)
		      : s->features.recompute_layers > 0
			      ? MO_MIN((double)(s->features.recompute_layers *
						pipeline_chunks(s->schedule, s->vpp) * s->pp),
				       layers)
			      : layers;

	if (s->features.eager && !mo_streq(s->recompute, "none"))
		add->recompute = repeated_eager(s, rows, f, add);
	else if (mo_streq(s->recompute, "full"))
		add->recompute = add->forward * some / layers;
}

/* Megatron's selective recomputation: what a module takes forward, once more. */
static void again(const struct shape *s, int64_t module, double forward, struct kernels *add)
{
	if (mo_streq(s->recompute, "selective") && !s->features.eager &&
	    (s->features.recompute_modules & module))
		add->recompute += forward;
}

/* Modules that layers of both kinds have: norms, and the up projections of latent attention with
 * their positions. */
static void common_again(const struct shape *s, double rows, struct kernels *add)
{
	const struct recipe_model *m = s->model;
	double t = (double)s->tp, a = (double)m->heads, qk, v;
	struct kernels norms = { 0 }, up = { 0 };

	passes(s, 2 * rows * 4 * (double)m->hidden / (s->features.no_sequence_parallel ? 1 : t), 0,
	       2, &norms);
	again(s, MODULE_NORMS, norms.forward, add);
	if (!m->mla)
		return;
	model_head_widths(m, &qk, &v);
	if (m->mla->q_lora > 0)
		linear(s, 1, rows, a * qk / t, (double)m->mla->q_lora, PLAIN, &up);
	linear(s, 1, rows, a * ((double)m->mla->qk_nope + v) / t, (double)m->mla->kv_lora, PLAIN,
	       &up);
	passes(s, 2 * rows * 4 * a * qk / t, 0, 2, &up);
	again(s, MODULE_MLA_UP, up.forward, add);
}

struct kernels dense_kernels(const struct shape *s)
{
	const struct recipe_model *m = s->model;
	struct kernels r = { 0 };
	double rows = shape_tokens(s), h = (double)m->hidden, t = (double)s->tp,
	       f = m->ffn != MO_NONE ? (double)m->ffn / t : 0;

	projections(s, rows, &r);
	attention(s, rows, &r);
	around(s, rows, &r);
	double before = r.forward;

	linear(s, 1, rows, (m->gated ? 2 : 1) * f, h, PLAIN, &r);
	linear(s, 1, rows, h, f, PLAIN, &r);
	passes(s, 2 * rows * f * (m->gated ? 3 : 2), 2 * rows * f * (m->gated ? 5 : 3), 1, &r);
	again(s, MODULE_MLP, r.forward - before, &r);
	common_again(s, rows, &r);
	finish(s, rows, f, &r);
	return r;
}

struct kernels moe_kernels(const struct shape *s)
{
	const struct recipe_model *m = s->model;
	struct kernels r = { 0 };

	if (!m->moe)
		return r;
	double rows = shape_tokens(s), h = (double)m->hidden, t = (double)s->tp, y = (double)s->etp,
	       gate = m->gated ? 2 : 1;
	double e = (double)m->moe->ffn / y,
	       local = MO_MAX((double)m->moe->experts / (double)s->ep, 1),
	       routed = rows / t * (double)m->moe->topk * y;
	double shared = (double)MO_MAX(m->moe->shared_ffn, 0) / t,
	       moved = 2 * rows / t * (double)m->moe->topk * h *
		       (s->features.fused_experts ? FUSED_PASSES : shape_k(s)->permute_passes);

	projections(s, rows, &r);
	attention(s, rows, &r);
	around(s, rows, &r);
	double before = r.forward;
	struct kernels beside = { 0 }, activation = { 0 };

	linear(s, 1, rows / t, (double)m->moe->experts, h, PLAIN, &r);
	linear(s, local, routed / local, gate * e, h, GROUPED, &r);
	linear(s, local, routed / local, h, e, GROUPED, &r);
	linear(s, 1, rows, gate * shared, h, PLAIN, &beside);
	linear(s, 1, rows, h, shared, PLAIN, &beside);
	r.forward += beside.forward;
	r.backward += beside.backward;
	r.wgrad += beside.wgrad;
	double acts = 2 * ((s->features.fused_experts ? 0 : routed * e) + rows * shared);

	passes(s, moved + acts * (gate + 1), moved + acts * (2 * gate + 1), 12, &r);
	if (m->bias && !s->features.fused_experts)
		passes(s, BIAS_FORWARD * routed * h, BIAS_BACKWARD * routed * h, 2 * (int)local,
		       &r);
	passes(s, 2 * routed * e * (gate + 1), 0, 1, &activation);
	again(s, MODULE_MOE, r.forward - before, &r);
	if (!(s->features.recompute_modules & MODULE_MOE)) {
		again(s, MODULE_SHARED, beside.forward, &r);
		again(s, MODULE_EXPERT_ACTIVATION, activation.forward, &r);
	}
	common_again(s, rows, &r);
	finish(s, routed, e, &r);
	return r;
}

struct kernels embedding_kernels(const struct shape *s)
{
	double bytes = 2 * shape_tokens(s) / (double)s->tp * (double)s->model->hidden;
	struct kernels r = { 0 };

	passes(s, 2 * bytes, 4 * bytes, 1, &r);
	return r;
}

/* Logits and loss, once more for each MTP layer with its projection; the MTP layer itself is
 * added by time.c. */
struct kernels head_kernels(const struct shape *s)
{
	const struct recipe_model *m = s->model;
	struct kernels r = { 0 };
	double rows = shape_tokens(s), h = (double)m->hidden, v = (double)m->vocab / (double)s->tp,
	       heads = 1 + (double)MO_MAX(m->mtp, 0);

	for (int i = 0; i < (int)heads; i++) {
		linear(s, 1, rows, v, h, WIDE, &r);
		passes(s, rows * v * (s->features.fused_loss ? 4 : 14),
		       rows * v * (s->features.fused_loss ? 4 : 8), 3, &r);
		if (i > 0)
			linear(s, 1, rows, h, 2 * h / (double)s->tp, PLAIN, &r);
	}
	return r;
}
