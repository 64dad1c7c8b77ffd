/* Step time of one plan: kernels, communication, bubble, optimizer, and the launch floor of the host. Not calibrated: good for comparing plans, not for promises. */
#include <math.h>
#include <string.h>

#include "lib/plan/parts.h"

#define SCALEUP_USE 0.7          /* of the links' rate (Primus' projection) */
#define NIC_USE 0.8
#define ATTENTION_USE 0.45       /* of the rate of a large GEMM; backward is slower than that, forward faster */
#define GEMM_UNMEASURED 0.6      /* where nobody measured a large GEMM: between MI325X and MI355X */
#define KERNEL_USE 0.85          /* of the best GEMM, for the shapes of a real layer */
/* Host time to launch a layer's kernels forward and backward. MoE: DeepSeek-V2-Lite on MI355X, 0.385 s per micro-batch of 27 layers, the same for 1 and 2 sequences. */
#define LAUNCH_MOE_S 0.014
#define LAUNCH_DENSE_S 0.0033

double plan_bubble(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches)
{
	double p = (double)pp, v = (double)MO_MAX(vpp, 1), m = (double)micro_batches;

	if (pp <= 1)
		return 0;
	if (mo_streq(schedule, "zb1p"))          /* (p-1)(F+B-W) with F = B = W: a third of 1F1B (Qi et al. 2023) */
		return (p - 1) / (3 * m + p - 1);
	if (mo_streq(schedule, "zbv"))
		return (p - 1) / (6 * m + p - 1);
	if (mo_streq(schedule, "v-half"))
		return (p - 1) / (2 * m + p - 1);
	if (mo_streq(schedule, "v-min"))
		return (p - 1) / (1.5 * m + p - 1);
	if (mo_streq(schedule, "dualpipe"))      /* (p/2-1)(F&B + B - 3W) against 3 per micro-batch */
		return 2 * MO_MAX(p / 2 - 1, 0) / (3 * m + 2 * MO_MAX(p / 2 - 1, 0));
	return (p - 1) / (m * v + p - 1);        /* 1F1B and interleaved */
}

static double shape_factor(double rows, double columns, double inner)
{
	return rows / (rows + 128) * columns / (columns + 128) * inner / (inner + 256);
}

/* Seconds of kernels for one micro-batch on one rank of an average stage, forward and backward. */
static double kernels(const struct shape *s)
{
	const struct recipe_model *m = s->model;
	struct params p = plan_params(m);
	double peak = gpu_peak_tflops(s->gpu, s->precision) * 1e12, gemm = s->gpu->gemm_efficiency != MO_NONE_F ? s->gpu->gemm_efficiency : GEMM_UNMEASURED;
	double rate = peak * gemm * KERNEL_USE, tokens = shape_tokens(s), h = (double)m->hidden, ranks = (double)(s->tp * s->pp);
	double all = plan_flops_per_token(m, s->seq) * tokens / ranks;
	double moe_layers = m->moe ? (double)(plan_moe_layers(m, 0, m->layers) + MO_MAX(m->mtp, 0)) : 0;
	double experts = m->moe ? 6 * moe_layers * (double)m->moe->topk * p.expert * tokens / ranks : 0;
	double linear = 6 * (p.active - (m->tied ? 0 : p.embedding)) * tokens / ranks - experts, attention = MO_MAX(all - experts - linear, 0);

	linear = MO_MAX(linear, 0);
	double time = linear / (rate * shape_factor(tokens, h / (double)s->tp, h)) + attention / (rate * ATTENTION_USE);

	if (m->moe) {            /* grouped GEMM: rows per expert */
		double rows = tokens / (double)s->tp * (double)m->moe->topk * (double)(s->ep * s->etp) / (double)m->moe->experts;

		time += experts / (rate * shape_factor(rows, (double)m->moe->ffn / (double)s->etp, h));
	}
	return mo_streq(s->recompute, "full") ? time * 4 / 3 : time;
}

static double nic_bytes(const struct shape *s)
{
	return s->nic_gbps / 8 * 1e9 * NIC_USE;
}

static double scaleup_bytes(const struct shape *s)
{
	return s->gpu->scaleup_gbs * 1e9 * SCALEUP_USE;
}

/* Dispatch and combine, forward and backward, of all experts' layers of a stage. Ranks of an expert group are consecutive, so a node holds domain / etp of them. */
static double all_to_all(const struct shape *s)
{
	const struct recipe_model *m = s->model;

	if (s->ep == 1 || !m->moe)
		return 0;
	double x = (double)s->ep, inside = (double)MO_MIN(s->ep, MO_MAX(s->gpu->domain_gpus / s->etp, 1));
	double layers = (double)plan_moe_layers(m, 0, m->layers) / (double)s->pp;
	double bytes = 4 * layers * shape_tokens(s) / (double)s->tp * (double)m->moe->topk * (double)m->hidden * 2;

	return bytes * (inside - 1) / x / scaleup_bytes(s) + bytes * (x - inside) / x / nic_bytes(s);
}

static double tensor_parallel(const struct shape *s)
{
	if (s->tp == 1)
		return 0;
	double layers = (double)s->model->layers / (double)s->pp, t = (double)s->tp;
	double bytes = 4 * 2.2 * layers * shape_tokens(s) * (double)s->model->hidden * 2 * (t - 1) / t;

	return bytes / (s->tp > s->gpu->domain_gpus ? nic_bytes(s) : scaleup_bytes(s));
}

/* The ring of context parallelism hides behind attention but for about a fifth. */
static double context_parallel(const struct shape *s)
{
	const struct recipe_model *m = s->model;
	double kv = m->kv_heads != MO_NONE ? (double)m->kv_heads : (double)m->heads, d = m->head_dim != MO_NONE ? (double)m->head_dim : (double)m->hidden / (double)m->heads;
	double layers = (double)m->layers / (double)s->pp, bytes = 3 * (double)(s->cp - 1) * 2 * shape_tokens(s) * kv * d * 2 / (double)s->tp * layers;

	return s->cp == 1 ? 0 : 0.2 * bytes / (s->cp * s->tp > s->gpu->domain_gpus ? nic_bytes(s) : scaleup_bytes(s));
}

/* Gradients' reduce-scatter and weights' all-gather, hidden behind most of a micro-batch. */
static double data_parallel(const struct shape *s, double micro_batch_s)
{
	double dense, experts, d = (double)(s->dp * s->cp), e = (double)shape_edp(s);

	shape_weights(s, 0, &dense, &experts);
	double bytes = (4 + 2) * (dense * (d - 1) / d + experts * (e - 1) / e);
	double time = bytes / (s->gpus <= s->gpu->domain_gpus ? scaleup_bytes(s) : nic_bytes(s));

	return MO_MAX(time - 0.7 * micro_batch_s, 0);
}

static double optimizer(const struct shape *s)
{
	double dense, experts;

	shape_weights(s, 0, &dense, &experts);
	bool sharded = !mo_streq(s->sharding, "none");
	double weights = sharded ? dense / (double)(s->dp * s->cp) + experts / (double)shape_edp(s) : dense + experts;

	return weights * (2 * 12 + 4 + 2) / (s->gpu->hbm_tbps * 1e12 * 0.8);
}

void time_of(const struct shape *s, struct plan *p)
{
	const struct recipe_model *m = s->model;
	double n = (double)shape_micro_batches(s), moe_layers = (double)plan_moe_layers(m, 0, m->layers);
	double compute = kernels(s), a2a = all_to_all(s), tp = tensor_parallel(s), cp = context_parallel(s), busy = compute + a2a + tp + cp;
	double host = (moe_layers * LAUNCH_MOE_S + ((double)m->layers - moe_layers) * LAUNCH_DENSE_S) / (double)s->pp, launch = MO_MAX(host - busy, 0);
	double micro_batch = busy + launch, stages = s->pp > 1 ? n * (double)s->vpp * 2 * shape_tokens(s) * (double)m->hidden * 2 / (double)s->tp / nic_bytes(s) : 0;
	struct plan_time *t = &p->step_time_s;

	p->bubble = plan_bubble(s->schedule, s->pp, s->vpp, shape_micro_batches(s));
	t->compute = compute * n;
	t->a2a = a2a * n;
	t->tp = tp * n;
	t->cp = cp * n;
	t->launch = launch * n;
	t->pp = micro_batch * n * p->bubble / (1 - p->bubble) + (s->vpp > 1 ? 0 : stages / 2);
	t->dp = data_parallel(s, micro_batch);
	t->optimizer = optimizer(s);
	t->total = t->compute + t->a2a + t->tp + t->cp + t->launch + t->pp + t->dp + t->optimizer;

	double tokens = (double)s->global * (double)s->seq, flops = plan_flops_per_token(m, s->seq);

	p->tokens_per_s_per_gpu = tokens / t->total / (double)s->gpus;
	p->tflops_per_gpu = flops * p->tokens_per_s_per_gpu / 1e12;
	p->mfu = p->tflops_per_gpu / gpu_peak_tflops(s->gpu, s->precision);
}
