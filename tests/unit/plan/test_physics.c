/* What physics gives, over thousands of random legal plans (a fixed generator): the sizes of a
 * model, a GPU and a plan are drawn, one of them is changed, and memory or time must move the right
 * way. Nothing here depends on a fitted constant. */
#include <math.h>
#include <string.h>
#include "tests/unit/unit.h"

#include "lib/plan/comm.h"
#include "lib/plan/features.h"
#include "lib/plan/figures.h"
#include "lib/plan/layer.h"
#include "lib/plan/legal.h"
#include "lib/plan/memory.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/reliability.h"
#include "lib/plan/shape.h"
#include "lib/plan/time.h"
#include "lib/recipe/catalogue.h"

#define SHAPES 6000

static const char *const gpu_names[] = { "a100-80", "h100",   "h200",  "b200",
					 "mi300x",  "mi325x", "mi355x" };
static struct gpu_type gpus[ELEMENTSOF(gpu_names)];
static uint64_t seed;

static int64_t any(int64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(seed >> 33) % n;
}

static int64_t power(int64_t most)
{
	return (int64_t)1 << any(most + 1);
}

struct drawn {
	struct shape s;
	struct recipe_model model;
	struct recipe_moe moe;
	struct recipe_mla mla;
	struct gpu_type gpu;
};

static void draw_model(struct drawn *d)
{
	static const int64_t layer_counts[] = { 1, 2, 8, 12, 24, 27, 32, 48, 61, 80, 96 },
			     expert_counts[] = { 8, 16, 60, 64, 128, 160, 256 };
	struct recipe_model *m = &d->model;
	int64_t width = any(2) ? 128 : 64;

	m->layers = layer_counts[any(ELEMENTSOF(layer_counts))];
	m->heads = 8 * power(4);
	m->hidden = m->heads * width / (any(3) ? 1 : 2);
	m->head_dim = width;
	m->kv_heads = any(3) ? m->heads / power(3) : m->heads;
	m->ffn = m->hidden * (2 + any(4));
	m->vocab = 32000 + 1024 * any(150);
	m->gated = any(4);
	m->tied = !any(3);
	m->mtp = !any(5);
	m->window = any(6) ? 0 : 128 * power(4);
	m->attention = (char *)(any(4) ? "flash" : "unfused");
	d->moe = (struct recipe_moe){ .experts = expert_counts[any(ELEMENTSOF(expert_counts))],
				      .topk = 1 + any(8),
				      .ffn = 256 * (1 + any(16)),
				      .shared_ffn = any(2) ? 0 : 512 * (1 + any(4)),
				      .every = 1 };
	if (any(2))
		d->moe.every = 1 + any(2);
	else
		d->moe.dense_layers = any(MO_MIN(m->layers, 4));
	if (!any(3) && d->moe.experts % 8 == 0) {
		d->moe.groups = 8;
		d->moe.topk_groups = 1 + any(8);
	}
	m->moe = any(5) < 3 ? &d->moe : NULL;
	d->mla = (struct recipe_mla){
		.q_lora = any(2) ? 0 : 1536, .kv_lora = 512, .qk_nope = 128, .qk_rope = 64, .v = 128
	};
	m->mla = any(5) ? NULL : &d->mla;
}

static void draw_features(struct shape_features *f)
{
	f->deepep = any(2);
	f->overlap_a2a = !any(3);
	f->fused_loss = any(2);
	f->bound = any(2);
	f->expert_launches = !any(4);
	f->small_master = !any(4);
	f->grad_bytes = any(3) ? 0 : 2;
	f->late_reduce = !any(4);
	f->sync_free = any(4);
}

/* False: not legal, draw again. */
static bool draw(struct drawn *d)
{
	static const char *const schedules[] = { "1f1b", "1f1b",   "interleaved", "zb1p",
						 "zbv",  "v-half", "v-min",       "dualpipe" },
				 *const shardings[] = { "none", "zero1", "zero2", "zero3" },
				 *const levels[] = { "none", "selective", "full" };
	struct shape *s = &d->s;

	*d = (struct drawn){ 0 };
	mo_desc_init(&recipe_model_desc, &d->model);
	draw_model(d);
	d->gpu = gpus[any(ELEMENTSOF(gpus))];
	s->model = &d->model;
	s->gpu = &d->gpu;
	s->precision = any(4) || d->gpu.fp8_tflops == MO_NONE_F ? "bf16" : "fp8";
	s->schedule = schedules[any(ELEMENTSOF(schedules))];
	s->recompute = levels[any(ELEMENTSOF(levels))];
	s->sharding = shardings[any(ELEMENTSOF(shardings))];
	s->tp = power(3);
	s->cp = any(3) ? 1 : power(3);
	s->pp = power(4);
	s->vpp =
		mo_streq(s->schedule, "interleaved") ? 2 + any(4) : pipeline_chunks(s->schedule, 1);
	s->dp = power(6) * (any(5) ? 1 : 3);
	s->gpus = s->tp * s->cp * s->pp * s->dp;
	s->ep = d->model.moe ? power(5) : 1;
	s->etp = d->model.moe && !any(4) ? 2 : 1;
	s->micro = power(3);
	s->seq = 1024 * power(5);
	s->global = s->dp * s->micro * (any(3) ? power(6) : 1 + any(50));
	s->nic_gbps = 100 * (double)power(3);
	draw_features(&s->features);
	return shape_is_legal(s);
}

static double step(const struct shape *s)
{
	struct plan p = { 0 };

	time_of(s, &p);
	return p.step_time_s.total;
}

/* Kernels of a pipeline's layers for all micro-batches: time to compute without what exchanges
 * behind it cost. */
static double compute(const struct shape *s)
{
	struct kernels dense = dense_kernels(s),
		       moe = s->model->moe ? moe_kernels(s) : (struct kernels){ 0 },
		       head = head_kernels(s);
	double with = (double)plan_moe_layers(s->model, 0, s->model->layers),
	       without = (double)s->model->layers - with;

	return (double)shape_micro_batches(s) *
	       (without * (dense.forward + dense.backward + dense.recompute) +
		with * (moe.forward + moe.backward + moe.recompute) + head.forward + head.backward);
}

static double exchanged(const struct shape *s)
{
	return comm_a2a(s);
}

static struct plan_memory memory(const struct shape *s)
{
	struct plan_memory m;

	memory_of(s, &m);
	return m;
}

static double total_gb(const struct shape *s)
{
	return memory(s).total;
}

/* Of all stages the most. */
static double most_of(const struct shape *s, size_t at)
{
	double most = 0;

	for (int64_t i = 0; i < s->pp; i++) {
		struct plan_memory m;

		memory_of_stage(s, i, &m);
		most = MO_MAX(most, *(const double *)((const char *)&m + at));
	}
	return most;
}

static double weights_gb(const struct shape *s)
{
	return most_of(s, offsetof(struct plan_memory, params));
}
static double activations_gb(const struct shape *s)
{
	return most_of(s, offsetof(struct plan_memory, activations));
}
static double states_gb(const struct shape *s)
{
	return most_of(s, offsetof(struct plan_memory, optimizer));
}

/* FSDP behind a pipeline keeps weights and gradients whole between its exchanges, and two gathered
 * layers elsewhere. */
static bool fsdp(const struct drawn *d)
{
	return mo_streq(d->s.sharding, "zero3");
}

/* Changes: false = does not apply here. What is legal is looked at behind them. */
static bool more_ranks(struct drawn *d)
{
	d->s.dp *= 2;
	d->s.gpus *= 2;
	return true;
}

/* Of a node's mesh more GPUs have more links each. */
static bool more_nodes(struct drawn *d)
{
	return more_ranks(d) && d->s.dp / 2 * d->s.tp * d->s.cp >= d->gpu.domain_gpus;
}

static bool longer(struct drawn *d)
{
	d->s.seq *= 2;
	return true;
}

static bool larger_micro(struct drawn *d)
{
	d->s.micro *= 2;
	return true;
}

static bool wider_tp(struct drawn *d)
{
	d->s.tp *= 2;
	d->s.gpus *= 2;
	return !d->s.features.no_sequence_parallel;
}

/* The ranks of a stage stay, so tensor parallel ones are taken from the replicas. */
static bool tp_for_dp(struct drawn *d)
{
	d->s.tp *= 2;
	d->s.dp /= 2;
	return true;
}

static bool wider_cp(struct drawn *d)
{
	d->s.cp *= 2;
	d->s.gpus *= 2;
	return true;
}

static bool more_stages(struct drawn *d)
{
	d->s.pp *= 2;
	d->s.gpus *= 2;
	return mo_streq(d->s.schedule, "1f1b") && d->model.layers % d->s.pp == 0 && !fsdp(d);
}

static bool wider_ep(struct drawn *d)
{
	d->s.ep *= 2;
	return d->model.moe;
}

static bool more_micro_batches(struct drawn *d)
{
	d->s.global *= 2;
	return true;
}

static bool more_layers(struct drawn *d)
{
	d->model.layers *= 2;
	return !fsdp(d);
}

static bool more_vocabulary(struct drawn *d)
{
	d->model.vocab *= 2;
	return true;
}

static bool more_per_token(struct drawn *d)
{
	d->moe.topk *= 2;
	return d->model.moe && d->moe.topk <= d->moe.experts;
}

static bool more_experts(struct drawn *d)
{
	d->moe.experts *= 2;
	return d->model.moe;
}

static bool faster_nics(struct drawn *d)
{
	d->s.nic_gbps *= 2;
	return true;
}

static bool faster_links(struct drawn *d)
{
	d->gpu.scaleup_gbs *= 2;
	if (d->gpu.link_gbs != MO_NONE_F)
		d->gpu.link_gbs *= 2;
	return true;
}

static bool faster_memory(struct drawn *d)
{
	d->gpu.hbm_tbps *= 2;
	return true;
}

static bool faster_arithmetic(struct drawn *d)
{
	d->gpu.bf16_tflops *= 2;
	if (d->gpu.fp8_tflops != MO_NONE_F)
		d->gpu.fp8_tflops *= 2;
	return true;
}

static bool recompute_all(struct drawn *d)
{
	bool less = !mo_streq(d->s.recompute, "full");

	d->s.recompute = "full";
	return less;
}

static bool recompute_some(struct drawn *d)
{
	bool less = mo_streq(d->s.recompute, "none");

	d->s.recompute = "selective";
	return less;
}

static bool shard_more(struct drawn *d)
{
	const char *const order[] = { "none", "zero1", "zero2" };

	for (size_t i = 0; i + 1 < ELEMENTSOF(order); i++)
		if (mo_streq(d->s.sharding, order[i])) {
			d->s.sharding = order[i + 1];
			return true;
		}
	return false;
}

static bool use_deepep(struct drawn *d)
{
	bool had = d->s.features.deepep;

	d->s.features.deepep = true;
	return d->model.moe && !had;
}

static bool use_overlap(struct drawn *d)
{
	bool had = d->s.features.overlap_a2a;

	d->s.features.overlap_a2a = true;
	return !had;
}

static bool use_fused_loss(struct drawn *d)
{
	bool had = d->s.features.fused_loss;

	d->s.features.fused_loss = true;
	return !had;
}

static bool use_bind(struct drawn *d)
{
	bool had = d->s.features.bound;

	d->s.features.bound = true;
	return !had;
}

static bool use_small_states(struct drawn *d)
{
	bool had = d->s.features.small_master;

	d->s.features.small_master = true;
	return !had;
}

static bool interleave_more(struct drawn *d)
{
	d->s.vpp *= 2;
	return mo_streq(d->s.schedule, "interleaved");
}

static double bubble(const struct shape *s)
{
	return plan_bubble(s->schedule, s->pp, s->vpp, shape_micro_batches(s));
}

/* GPU seconds of a step: what scaling may not make less. */
static double work(const struct shape *s)
{
	return step(s) * (double)s->gpus;
}

enum way { GROWS, FALLS }; /* or stays */
static const struct {
	const char *name;
	bool (*change)(struct drawn *d);
	double (*value)(const struct shape *s);
	enum way way;
} rules[] = {
	{ "more GPUs, same batch: time to compute", more_ranks, compute, FALLS },
	{ "more GPUs, same batch: GPU seconds", more_nodes, work, GROWS },
	{ "more GPUs, same batch: states of a rank", more_ranks, states_gb, FALLS },
	{ "longer sequences: memory", longer, total_gb, GROWS },
	{ "longer sequences: time", longer, step, GROWS },
	{ "larger micro-batches: activations", larger_micro, activations_gb, GROWS },
	{ "tensor parallelism: weights of a rank", wider_tp, weights_gb, FALLS },
	{ "tensor parallelism: activations", wider_tp, activations_gb, FALLS },
	{ "tensor parallelism of the same GPUs: weights of a rank", tp_for_dp, weights_gb, FALLS },
	{ "context parallelism: activations", wider_cp, activations_gb, FALLS },
	{ "more stages: weights of a rank", more_stages, weights_gb, FALLS },
	{ "expert parallelism: weights of a rank", wider_ep, weights_gb, FALLS },
	{ "more micro-batches: time", more_micro_batches, step, GROWS },
	{ "more micro-batches: bubble", more_micro_batches, bubble, FALLS },
	{ "more micro-batches: memory", more_micro_batches, total_gb, GROWS },
	{ "more chunks: bubble", interleave_more, bubble, FALLS },
	{ "more layers: memory", more_layers, total_gb, GROWS },
	{ "more layers: time", more_layers, step, GROWS },
	{ "a larger vocabulary: memory", more_vocabulary, total_gb, GROWS },
	{ "a larger vocabulary: time", more_vocabulary, step, GROWS },
	{ "more experts per token: time", more_per_token, step, GROWS },
	{ "more experts per token: activations", more_per_token, activations_gb, GROWS },
	{ "more experts: memory", more_experts, total_gb, GROWS },
	{ "faster NICs: time", faster_nics, step, FALLS },
	{ "faster links: time", faster_links, step, FALLS },
	{ "faster memory: time", faster_memory, step, FALLS },
	{ "faster arithmetic: time", faster_arithmetic, step, FALLS },
	{ "full recomputation: memory", recompute_all, total_gb, FALLS },
	{ "selective recomputation: memory", recompute_some, total_gb, FALLS },
	{ "full recomputation: time", recompute_all, compute, GROWS },
	{ "more sharding: memory", shard_more, total_gb, FALLS },
	{ "DeepEP: exchange", use_deepep, exchanged, FALLS },
	{ "DeepEP: memory", use_deepep, total_gb, FALLS },
	{ "overlapped exchanges: time", use_overlap, step, FALLS },
	{ "a fused loss: memory", use_fused_loss, total_gb, FALLS },
	{ "a fused loss: time", use_fused_loss, step, FALLS },
	{ "binding: time", use_bind, step, FALLS },
	{ "smaller states: memory", use_small_states, total_gb, FALLS },
};

static void tell(const char *rule, const struct drawn *d, double before, double after)
{
	const struct shape *s = &d->s;
	const struct recipe_model *m = &d->model;

	fail_msg("%s: %.12g became %.12g: %s layers %d hidden %d heads %d/%d ffn %d vocab %d moe "
		 "%s experts %d topk %d ffn %d shared %d groups %d/%d mla %d mtp %d window %d %s; "
		 "gpus %d tp %d cp %d pp %d vpp %d ep %d etp %d dp %d micro %d "
		 "global %d seq %d %s %s %s %s; deepep %d overlap %d fused %d sync %d",
		 rule, before, after, s->gpu->name, (int)m->layers, (int)m->hidden, (int)m->heads,
		 (int)m->kv_heads, (int)m->ffn, (int)m->vocab, m->moe ? "yes" : "no",
		 (int)d->moe.experts, (int)d->moe.topk, (int)d->moe.ffn, (int)d->moe.shared_ffn,
		 (int)d->moe.groups, (int)d->moe.topk_groups, m->mla != NULL, (int)m->mtp,
		 (int)m->window, m->attention, (int)s->gpus, (int)s->tp, (int)s->cp, (int)s->pp,
		 (int)s->vpp, (int)s->ep, (int)s->etp, (int)s->dp, (int)s->micro, (int)s->global,
		 (int)s->seq, s->schedule, s->recompute, s->sharding, s->precision,
		 s->features.deepep, s->features.overlap_a2a, s->features.fused_loss,
		 (int)s->features.sync_free);
}

static void copy(const struct drawn *from, struct drawn *to)
{
	*to = *from;
	to->s.model = &to->model;
	to->s.gpu = &to->gpu;
	to->model.moe = from->model.moe ? &to->moe : NULL;
	to->model.mla = from->model.mla ? &to->mla : NULL;
}

/* V-half and V-min are blocks that repeat, made for F = B = W; what they lose otherwise, and save
 * at their ends, is counted to within a chunk's forward. Transfers lengthen bubbles by their share
 * of a stage, in which a weight gradient that fills a bubble counts too. */
static double slack_of(const struct shape *s)
{
	return pipeline_is_v(s->schedule) ? 0.02 : pipeline_splits(s->schedule) ? 1e-3 : 1e-9;
}

static void test_monotone(void **state)
{
	int looked[ELEMENTSOF(rules)] = { 0 }, drawn = 0;

	seed = 20261121;
	while (drawn < SHAPES) {
		struct drawn d, e;

		if (!draw(&d))
			continue;
		drawn++;
		for (size_t i = 0; i < ELEMENTSOF(rules); i++) {
			copy(&d, &e);
			if (!rules[i].change(&e) || !shape_is_legal(&e.s))
				continue;
			double before = rules[i].value(&d.s), after = rules[i].value(&e.s),
			       slack = slack_of(&d.s) * fabs(before);

			looked[i]++;
			if (rules[i].way == GROWS ? after < before - slack : after > before + slack)
				tell(rules[i].name, &d, before, after);
		}
	}
	for (size_t i = 0; i < ELEMENTSOF(rules); i++)
		if (looked[i] < 100)
			fail_msg("%s: looked at %d times only", rules[i].name, looked[i]);
}

/* Of every plan: numbers, not less than nothing; parts that add up; the fullest stage is the
 * plan's; no faster than the peak; a bubble below 1. */
static void test_sound(void **state)
{
	seed = 7;
	for (int drawn = 0; drawn < SHAPES;) {
		struct drawn d;
		struct plan p;

		if (!draw(&d))
			continue;
		drawn++;
		plan_of(&d.s, &p);
		const struct plan_memory *m = &p.memory_gb;
		const struct plan_time *x = &p.step_time_s;
		const double memory_parts[] = { m->params,      m->grads, m->optimizer,
						m->activations, m->comm,  m->reserve },
			     time_parts[] = { x->compute, x->a2a, x->pp,        x->dp,
					      x->cp,      x->tp,  x->optimizer, x->launch };
		double gb = 0, seconds = 0, fullest = 0;

		for (size_t i = 0; i < ELEMENTSOF(memory_parts); i++) {
			if (!isfinite(memory_parts[i]) || memory_parts[i] < 0)
				tell("memory", &d, (double)i, memory_parts[i]);
			gb += memory_parts[i];
		}
		for (size_t i = 0; i < ELEMENTSOF(time_parts); i++) {
			if (!isfinite(time_parts[i]) || time_parts[i] < 0)
				tell("time", &d, (double)i, time_parts[i]);
			seconds += time_parts[i];
		}
		for (size_t i = 0; i < p.n_memory_stages; i++)
			fullest = MO_MAX(fullest, p.memory_stages[i].total);
		if (fabs(gb - p.memory_gb.total) > 1e-9 * gb ||
		    fabs(seconds - p.step_time_s.total) > 1e-9 * seconds ||
		    fabs(fullest - p.memory_gb.total) > 1e-9 * gb)
			tell("sums", &d, p.memory_gb.total, gb);
		if (!(p.mfu > 0 && p.mfu < 1) || !(p.bubble >= 0 && p.bubble < 1) ||
		    p.n_memory_stages != (size_t)d.s.pp)
			tell("mfu and bubble", &d, p.mfu, p.bubble);
		mo_desc_done(&plan_desc, &p);
	}
}

/* Failures that come more often, saves and restarts that take longer: never more useful time, at
 * the best interval of each. A spare more, a failure less: never a lower chance. */
static void test_failures(void **state)
{
	seed = 3;
	for (int i = 0; i < SHAPES; i++) {
		double mttf = 600 * exp((double)any(1000) / 100), save = 1 + (double)any(300),
		       restart = 10 + (double)any(900), mean = 0.01 * exp((double)any(1000) / 120),
		       target = 0.5 + (double)any(499) / 1000;
		double tau = plan_daly_s(save, mttf), ettr = plan_ettr(tau, save, restart, mttf);

		assert_true(ettr > 0 && ettr < 1 && tau > 0);
		assert_true(plan_ettr(plan_daly_s(save, mttf / 2), save, restart, mttf / 2) <=
			    ettr);
		assert_true(plan_ettr(tau, save * 2, restart, mttf) <= ettr &&
			    plan_ettr(tau, save, restart * 2, mttf) <= ettr);
		assert_true(plan_daly_s(save, mttf * 2) >= tau &&
			    plan_young_s(save, mttf * 2) > plan_young_s(save, mttf));
		assert_true(plan_spares(mean * 1.5, target) >= plan_spares(mean, target) &&
			    plan_spares(mean, target + 0.0005) >= plan_spares(mean, target));
	}
}

static int load(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(gpus); i++) {
		mo_desc_init(&gpu_type_desc, &gpus[i]);
		if (gpu_type_load(gpu_names[i], &gpus[i], NULL) < 0)
			return -1;
	}
	return 0;
}

static int unload(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(gpus); i++)
		mo_desc_done(&gpu_type_desc, &gpus[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_monotone),
					    cmocka_unit_test(test_sound),
					    cmocka_unit_test(test_failures) };

	return cmocka_run_group_tests(tests, load, unload);
}
