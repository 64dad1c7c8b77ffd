/* Step time of one plan: what must hold whatever the constants, and exchanges by hand. How close
 * plans are to measured runs: test_truth.c and `make bench B=planner`. */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "lib/plan/comm.h"
#include "lib/plan/curve.h"
#include "lib/plan/features.h"
#include "lib/plan/search.h"
#include "lib/plan/shape.h"
#include "lib/plan/time.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/model_file.h"

static struct recipe_model model;
static struct gpu_type gpu;

static struct shape shape(const char *name, const char *on, int64_t gpus, int64_t tp, int64_t pp,
			  int64_t ep)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	mo_desc_done(&recipe_model_desc, &model);
	mo_desc_done(&gpu_type_desc, &gpu);
	mo_desc_init(&recipe_model_desc, &model);
	mo_desc_init(&gpu_type_desc, &gpu);
	if (model_load(name, &model, &err) < 0 || gpu_type_load(on, &gpu, &err) < 0)
		fail_msg("%s", err.text);
	int64_t dp = gpus / (tp * pp);

	return (struct shape){ .model = &model,
			       .gpu = &gpu,
			       .precision = "bf16",
			       .schedule = "1f1b",
			       .recompute = "none",
			       .sharding = "zero1",
			       .gpus = gpus,
			       .tp = tp,
			       .pp = pp,
			       .vpp = 1,
			       .ep = ep,
			       .etp = 1,
			       .cp = 1,
			       .dp = dp,
			       .micro = 1,
			       .global = 16 * dp,
			       .seq = 4096,
			       .nic_gbps = 400 };
}

static void within(const char *what, double value, double expected, double fraction)
{
	if (!(fabs(value - expected) <= fraction * fabs(expected)))
		fail_msg("%s: %.10g is not within %g %% of %.10g", what, value, fraction * 100,
			 expected);
}

static struct plan planned(struct shape s)
{
	struct plan p = { 0 };
	const struct plan_time *t = &p.step_time_s;

	time_of(&s, &p);
	within("parts",
	       t->compute + t->a2a + t->pp + t->dp + t->cp + t->tp + t->optimizer + t->launch,
	       t->total, 1e-9);
	return p;
}

static double step(struct shape s)
{
	return planned(s).step_time_s.total;
}

/* What Megatron's modules make again costs what it takes forward: each something, the experts with
 * their exchange most, all together less than all of the layer. */
static void modules_again(void **state)
{
	static const int64_t modules[] = { MODULE_NORMS, MODULE_EXPERT_ACTIVATION, MODULE_SHARED,
					   MODULE_MLA_UP, MODULE_MOE };
	struct shape s = shape("deepseek-v3", "h100", 256, 1, 8, 8);
	struct plan none = planned(s), last = none;
	double sum = 0;

	s.recompute = "full";
	double full = step(s);

	s.recompute = "selective";
	within("no module", step(s), none.step_time_s.total, 1e-12);
	for (size_t i = 0; i < ELEMENTSOF(modules); i++) {
		s.features.recompute_modules = modules[i];
		struct plan p = planned(s);

		assert_true(p.step_time_s.total > last.step_time_s.total &&
			    p.step_time_s.total < full);
		assert_int_equal(p.step_time_s.a2a > none.step_time_s.a2a * 1.01,
				 modules[i] == MODULE_MOE);
		sum += modules[i] != MODULE_SHARED ? p.step_time_s.total - none.step_time_s.total
						   : 0;
		last = p;
	}
	s.features.recompute_modules = MODULE_EXPERT_ACTIVATION | MODULE_NORMS | MODULE_SHARED |
				       MODULE_MLA_UP | MODULE_MOE;
	/* the activation is in the experts' part */
	assert_true(step(s) > last.step_time_s.total && step(s) - none.step_time_s.total < sum);
	assert_true(step(s) < full);
}

/* Forward and backward FLOPs of the kernels cannot be faster than the peak. */
static void never_above_peak(void **state)
{
	static const char *const precisions[] = { "bf16", "fp8" };

	for (size_t i = 0; i < ELEMENTSOF(precisions); i++) {
		struct shape s = shape("llama3-70b", "h100", 64, 4, 4, 1);

		s.precision = precisions[i];
		for (s.micro = 1; s.micro <= 16; s.micro *= 2) {
			s.global = 16 * s.dp * s.micro;
			assert_true(planned(s).mfu > 0.05 && planned(s).mfu < 1);
		}
	}
}

static void features_help(void **state)
{
	struct shape s = shape("deepseek-v2", "mi355x", 64, 1, 4, 16), t = s;
	double plain = step(s), last;

	t.features.deepep = true;
	assert_true(step(t) < plain);
	last = step(t);
	t.features.sync_free = 1;
	assert_true(step(t) < last);
	for (int64_t stage = 2; stage <= 3; stage++) {
		last = step(t);
		t.features.sync_free = stage;
		assert_true(step(t) <= last);
	}
	t = s;
	t.features.overlap_a2a = true;
	assert_true(step(t) < plain);
	t = s;
	t.features.fused_loss = true;
	assert_true(step(t) < plain);
	t = s;
	/* inside the node, exchanges leave the host as the slowest */
	t.ep = 8;
	t.features.deepep = true;
	last = step(t);
	t.features.expert_launches = true;
	assert_true(step(t) > last);
	last = step(t);
	t.features.bound = true; /* binding shortens launches, and here they set the pace */
	assert_true(step(t) < last);
	t = s;
	/* gradients of a chunk go behind the next one's computing */
	t.vpp = 3;
	t.schedule = "interleaved";
	last = step(t);
	t.features.late_reduce = true;
	assert_true(step(t) > last);
	t = s;
	t.features.eager = true;
	assert_true(step(t) > plain);
}

/* Graphs take launches from the host, module by module, until nothing waits for it; where the GPU
 * is slower they change nothing. */
static void graphs_free_the_host(void **state)
{
	static const int64_t more[] = { 0, GRAPH_PREPROCESS, GRAPH_PREPROCESS | GRAPH_ROUTER,
					GRAPH_PREPROCESS | GRAPH_ROUTER | GRAPH_ATTENTION,
					GRAPH_ALL };
	struct shape s = shape("qwen3-30b-a3b", "b200", 8, 1, 1, 8),
		     dense = shape("llama3-8b", "b200", 8, 1, 1, 1);
	double last = INFINITY;

	s = shape("qwen3-30b-a3b", "b200", 8, 1, 1, 8);
	for (size_t i = 0; i < ELEMENTSOF(more); i++) {
		s.features.graphs = more[i];
		assert_true(planned(s).step_time_s.launch < last);
		last = planned(s).step_time_s.launch;
	}
	assert_true(last == 0);
	s.features.graphs = 0;
	const struct plan_time bf16 = planned(s).step_time_s;

	s.precision = "fp8"; /* casts are launches too */
	assert_true(planned(s).step_time_s.launch >
		    bf16.launch + bf16.compute - planned(s).step_time_s.compute);
	s.precision = "bf16";
	s.features.graphs = GRAPH_ALL;
	s.micro = 8;
	s.global = 8 * s.dp * 8;
	double with = step(s);

	s.features.graphs = 0;
	within("the GPU is the slowest", step(s), with, 1e-12);
	dense = shape("llama3-8b", "b200", 8, 1, 1, 1);
	dense.seq = 256;
	last = planned(dense).step_time_s.launch;
	dense.features.graphs = GRAPH_MLP;
	assert_true(planned(dense).step_time_s.launch < last &&
		    planned(dense).step_time_s.launch > 0);
	dense.features.graphs |= GRAPH_ATTENTION;
	assert_true(planned(dense).step_time_s.launch == 0);
}

/* What each does less of, and where alone. */
static void less_work(void **state)
{
	struct shape s = shape("qwen3-30b-a3b", "gb200", 8, 1, 1, 8), t;

	s.precision = "mxfp8";
	s.micro = 4;
	s.global = 8 * s.dp * 4;
	t = s;
	t.features.fused_experts = true; /* passes over routed rows and casts */
	assert_true(planned(t).step_time_s.compute < 0.9 * planned(s).step_time_s.compute);
	t = s;
	t.features.narrow_attention = true;
	assert_true(step(t) < step(s));
	t.precision = s.precision = "bf16";
	assert_true(step(t) == step(s));
	s.precision = "fp8";
	t = s;
	/* weights of one byte instead of two, beside gradients of four */
	t.features.narrow_gather = true;
	double gather = planned(t).step_time_s.dp / planned(s).step_time_s.dp;

	assert_true(gather > 0.83 && gather < 0.9);
	s.precision = t.precision = "nvfp4";
	assert_true(step(t) == step(s));
	s = shape("llama3-70b", "h100", 64, 4, 4, 1);
	t = s;
	t.features.async_tp = true;
	within("hidden", planned(t).step_time_s.tp, 0.6 * planned(s).step_time_s.tp, 1e-9);
	s = shape("qwen3-30b-a3b", "gb200", 8, 1, 1, 8);
	s.micro = 8;
	s.global = 8 * s.dp * 8;
	double without = step(s);

	model.bias = true;
	assert_true(step(s) > without);
}

/* Exponentials hold up the GPUs whose products are faster: twice as many of them per clock make
 * attention faster and nothing else. */
static void exponentials(void **state)
{
	struct shape s = shape("llama3-8b", "b200", 8, 1, 1, 1);
	double twice, once;

	s.seq = 32768;
	once = step(s);
	gpu.exponentials = 32;
	twice = step(s);
	assert_true(twice < 0.95 * once);
	s.seq = 256;
	once = step(s);
	gpu.exponentials = MO_NONE;
	within("short sequences", step(s), once, 0.02);
	s.seq = 32768;
	s.features.eager = true; /* a portable kernel is bound by its products */
	once = step(s);
	gpu.exponentials = 32;
	assert_true(step(s) == once);
}

static void work_costs(void **state)
{
	struct shape s = shape("mixtral-8x22b", "mi300x", 64, 2, 4, 4), t = s;
	double base = step(s), mfu = planned(s).mfu;

	t.recompute = "full";
	assert_true(step(t) > 1.15 * base && step(t) < 1.45 * base);
	t.features.recompute_layers = 7; /* of 14 per stage */
	assert_true(step(t) > base);
	double half = step(t);

	t.features.recompute_layers = 0;
	assert_true(half < step(t));
	t = s;
	t.global *= 2;
	assert_true(step(t) > 1.6 * base && step(t) < 2 * base); /* the bubble is the same */
	t = s;
	t.micro = 2;
	t.global *= 2;
	assert_true(planned(t).mfu > mfu); /* larger GEMMs */
	t = s;
	t.precision = "fp8";
	assert_true(step(t) < base);
	t = s;
	t.nic_gbps = 800;
	assert_true(step(t) < base);
	gpu.scaleup_gbs *= 2;
	assert_true(step(s) < base);
}

/* At one sequence per micro-batch the host sets the pace of DeepSeek-V2-Lite with one launch per
 * expert: 0.385 s per micro-batch for 1 and nearly as much for 2 (AMD, MI355X). */
static void launch_floor(void **state)
{
	struct shape s = shape("deepseek-v2-lite", "mi355x", 8, 1, 1, 8);

	s.features.expert_launches = true;
	s.global = 8 * 8;
	struct plan one = planned(s);

	within("one sequence", one.step_time_s.total / 8, 0.385, 0.25);
	assert_true(one.step_time_s.launch > 0.3 * one.step_time_s.total);
	s.micro = 2;
	s.global *= 2;
	assert_true(step(s) < 1.15 * one.step_time_s.total);
	s.micro = 12;
	s.global *= 6;
	assert_true(planned(s).step_time_s.launch < 0.2 * step(s));
}

/* Places that tokens reach, counted: scores of all experts by chance, groups by the sum of their
 * best k / limit scores, experts by score in these groups. */
static double simulated(const struct recipe_moe *m, int64_t n)
{
	static uint64_t seed = 11;
	enum { TOKENS = 3000 };
	int64_t groups = m->groups > 0 ? m->groups : 1, limit = m->groups > 0 ? m->topk_groups : 1,
		each = m->experts / groups, reached = 0;
	double score[512] = { 0 }, sum[64];
	bool place[512], group[64];

	for (int t = 0; t < TOKENS; t++) {
		for (int64_t e = 0; e < m->experts; e++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			score[e] = (double)(seed >> 11);
		}
		for (int64_t g = 0; g < groups; g++) {
			double last = INFINITY;

			sum[g] = 0;
			group[g] = false;
			for (int64_t i = 0; i < m->topk / limit; i++) {
				double most = -1;

				for (int64_t e = g * each; e < (g + 1) * each; e++)
					most = score[e] < last && score[e] > most ? score[e] : most;
				sum[g] += last = most;
			}
		}
		for (int64_t i = 0; i < limit; i++) {
			int64_t best = 0;

			for (int64_t g = 0; g < groups; g++)
				best = !group[g] && (group[best] || sum[g] > sum[best]) ? g : best;
			group[best] = true;
		}
		memset(place, 0, sizeof(place));
		for (int64_t i = 0; i < m->topk; i++) {
			int64_t best = 0;

			for (int64_t e = 0; e < m->experts; e++)
				best = group[e / each] && (!group[best / each] ||
							   score[e] > score[best])
					       ? e
					       : best;
			score[best] = -1;
			place[best * n / m->experts] = true;
		}
		for (int64_t i = 0; i < n; i++)
			reached += place[i];
	}
	return (double)reached / TOKENS;
}

static void reached_places(void **state)
{
	static const struct recipe_moe models[] = {
		{ .experts = 256, .topk = 8, .groups = 8, .topk_groups = 4 },
		{ .experts = 160, .topk = 6, .groups = 8, .topk_groups = 3 },
		{ .experts = 128, .topk = 8, .groups = 16, .topk_groups = 8 },
		{ .experts = 256, .topk = 8, .groups = 8, .topk_groups = 8 },
		{ .experts = 256, .topk = 8 },
		{ .experts = 8, .topk = 2 },
		{ .experts = 64, .topk = 6 },
		{ .experts = 128, .topk = 8, .groups = 16, .topk_groups = 4 },
		{ .experts = 128, .topk = 8, .groups = 16, .topk_groups = 6 },
	};

	for (size_t i = 0; i < ELEMENTSOF(models); i++)
		for (int64_t n = 1; n <= models[i].experts; n *= 2) {
			double expected = models[i].experts % n ? 0 : simulated(&models[i], n),
			       counted = comm_reached(&models[i], (double)n);

			/* between one and two experts per group: the best one may be left out */
			double off = i == ELEMENTSOF(models) - 1 ? 0.08 : 0.04;

			if (expected > 0 && fabs(counted / expected - 1) > off)
				fail_msg("model %zu, %d places: %.3f reached, %.3f in a simulation",
					 i, (int)n, counted, expected);
			assert_true(counted >= 1 - 1e-9 &&
				    counted <= (double)MO_MIN(n, models[i].topk) + 1e-9);
		}
	/* DeepSeek-V3 on four nodes: 3.1 of them. */
	within("EP32", comm_reached(&models[0], 4), 3.14, 0.01);
}

/* k routed rows leave the node for each expert that is elsewhere; DeepEP sends a token once per
 * node that has any of them. */
static void exchanges(void **state)
{
	struct shape s = shape("deepseek-v3", "h800", 128, 1, 1, 64);
	struct recipe_moe any = *s.model->moe, limited = any;
	struct recipe_model routed = *s.model;
	const struct plan_constants *k = &plan_constants;
	double row = 4096.0 * 7168 * 2, nodes = 8, rate = 50e9 * k->a2a_nic_use,
	       far = row * 8 * 7 / 8 / rate;

	within("plain", comm_a2a(&s), 2 * (far + k->collective_s + 64 * k->a2a_peer_s), 1e-9);
	s.features.deepep = true;
	any.groups = any.topk_groups = 0;
	routed.moe = &any;
	s.model = &routed;
	far = row * comm_reached(&any, nodes) * 7 / 8 / rate;
	within("once per node", comm_a2a(&s),
	       2 * (far + k->collective_s + (8 + nodes - 1) * k->a2a_peer_s), 1e-9);
	routed.moe = &limited;
	far = row * 4 * 7 / 8 / rate;
	within("four nodes at most", comm_a2a(&s),
	       2 * (far + k->collective_s + (8 + nodes - 1) * k->a2a_peer_s), 1e-9);
	/* 16 nodes, eight groups of two: a token's four groups have one row for sure and one more
	 * or less, which reach one node and some. */
	s.gpus = s.ep = 128;
	far = row * comm_reached(&limited, 16) * 15 / 16 / rate;
	within("groups of two nodes", comm_a2a(&s),
	       2 * (far + k->collective_s + (8 + 15) * k->a2a_peer_s), 1e-9);
	assert_true(comm_reached(&limited, 16) > 5 && comm_reached(&limited, 16) < 6);
	s.gpus = 128;
	s.ep = 8;
	double inside = comm_a2a(&s);

	s.ep = 16;
	assert_true(comm_a2a(&s) > inside);
	s.ep = 1;
	assert_true(comm_a2a(&s) == 0);
	/* Two of the eight GPUs of a mesh reach each other by one link of seven. */
	s = shape("deepseek-v3", "mi300x", 64, 1, 1, 2);
	within("one link", comm_a2a(&s),
	       2 * (row * 8 / 2 / (64e9 * k->scaleup_use) + k->collective_s + 2 * k->a2a_peer_s),
	       1e-9);
	/* From a mesh plain exchanges with more nodes get slower than what they send; DeepEP's do
	 * not. */
	s = shape("deepseek-v3", "mi300x", 128, 1, 1, 64);
	far = row * 8 * 7 / 8 / rate * pow(4, k->a2a_congestion);
	within("congested", comm_a2a(&s), 2 * (far + k->collective_s + 64 * k->a2a_peer_s), 1e-9);
	s.features.deepep = true;
	assert_true(comm_a2a(&s) < 0.2 * 2 * far);
	/* So do tensor parallel groups: four of eight have three links each, all eight seven;
	 * through a switch the size of the group changes little. */
	s = shape("llama3-70b", "mi300x", 64, 4, 1, 1);
	double four = comm_tp(&s), fixed = 4 * k->collective_s;

	s.tp = 8;
	within("links of a mesh",
	       (comm_tp(&s) - fixed - 28 * k->ring_step_s) / (four - fixed - 12 * k->ring_step_s),
	       3.0 / 7 * (7.0 / 8) / (3.0 / 4), 1e-6);
	s = shape("llama3-70b", "h100", 64, 4, 1, 1);
	four = comm_tp(&s);
	s.tp = 8;
	assert_true(comm_tp(&s) > four);
	/* A tensor parallel group over two nodes goes at the rate of eight NICs. */
	s = shape("llama3-70b", "h100", 64, 8, 1, 1);
	double near = comm_tp(&s);

	s.tp = 16;
	s.dp = 4;
	assert_true(comm_tp(&s) > near);
	assert_true(comm_cp(&s) == 0 && comm_p2p(&s) == 0);
}

static void measured_curves(void **state)
{
	static const char text[] =
		"# nThread 1 nGpus 8\n#       size         count      type   redop    root     "
		"time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
		"     1048576        262144     float     sum      -1    120.0    8.74   15.29     "
		" 0    119.0    8.81   15.42      0\n"
		"    16777216       4194304     float     sum      -1    210.0   79.89  139.81     "
		" 0    211.0   79.51  139.15      0\n"
		"   268435456      67108864     float     sum      -1   1500.0  178.96  313.17     "
		" 0   1501.0  178.84  312.97      0\n# Avg bus bandwidth    : 156.0\n";
	struct curve c;

	assert_true(curve_parse(text, &c));
	assert_int_equal(c.n, 3);
	within("first", curve_at(&c, 1048576), 15.29, 1e-9);
	within("last", curve_at(&c, 1e12), 313.17, 1e-9);
	within("between", curve_at(&c, 4194304), sqrt(15.29 * 139.81), 1e-6);
	/* takes as long as the smallest */
	within("below", curve_at(&c, 524288), 15.29 / 2, 1e-9);
	assert_false(curve_parse("no table\n1 2 3\n", &c));
	assert_false(curve_parse("", &c));
	static const char *const no_network[] = {
		"1024 256 float none -1 10 nan nan 0", "1024 256 float none -1 10 inf inf 0",
		"1024 256 float none -1 10 0 0 0",     "1024 256 float none -1 10 1 1e-300 0",
		"1e300 256 float none -1 10 1 1 0",    "1024 256 float none -1 10 1 1e300 0"
	};

	for (size_t i = 0; i < ELEMENTSOF(no_network); i++)
		assert_false(curve_parse(no_network[i], &c));
	assert_true(curve_parse(text, &c));
	struct shape s = shape("llama3-70b", "mi300x", 64, 1, 1, 1);
	double before = comm_grads(&s, 1e9, 0);

	for (size_t i = 0; i < c.n; i++)
		c.points[i].gbs /= 100;
	s.reduce_curve = &c;
	assert_true(comm_grads(&s, 1e9, 0) > 2 * before);
}

/* Leaf and spine: what stays below a leaf is as fast as ever; of rings one member of a leaf sends
 * beyond it; exchanges and pipelines pay for what crosses. */
static void leaves_and_spine(void **state)
{
	struct shape s = shape("deepseek-v3", "mi300x", 1024, 1, 8, 32), free = s;
	const double a2a = comm_a2a(&s), grads = comm_grads(&s, 1e9, 1e9), p2p = comm_p2p(&s);

	s.features.deepep = free.features.deepep = true;
	const double deepep = comm_a2a(&s);

	for (int64_t leaf = 8; leaf <= 1024; leaf *= 2)
		for (double spine = 1; spine <= 8; spine *= 2) {
			s.fabric = (struct plan_fabric){ leaf, spine };
			s.features.deepep = false;
			bool slower = comm_a2a(&s) > a2a * (1 + 1e-9);

			assert_int_equal(slower, leaf < 32 && spine > 1);
			s.features.deepep = true;
			assert_true(comm_a2a(&s) >= deepep &&
				    comm_a2a(&s) <= deepep * spine * (1 + 1e-9));
			assert_true(comm_grads(&s, 1e9, 1e9) >= grads &&
				    comm_grads(&s, 1e9, 1e9) <= grads * spine * (1 + 1e-9));
			assert_true(comm_p2p(&s) >= p2p &&
				    comm_p2p(&s) <= p2p * spine * (1 + 1e-9));
			if (leaf == 1024)
				assert_true(comm_p2p(&s) == p2p &&
					    comm_grads(&s, 1e9, 1e9) == grads &&
					    comm_a2a(&s) == deepep);
		}
	/* a stage has 128 GPUs: all that it sends on crosses */
	s.fabric = (struct plan_fabric){ 64, 4 };
	within("pipeline",
	       (comm_p2p(&s) - plan_constants.collective_s) / (p2p - plan_constants.collective_s),
	       4, 1e-9);
}

/* The reduction of FSDP's gathers with more computing per layer, and once per step behind a
 * pipeline. */
static void fsdp(void **state)
{
	struct shape s = shape("llama3-70b", "mi300x", 64, 1, 1, 1), one;
	double hidden, seen;

	s.sharding = "zero3";
	s.recompute = "full";
	s.micro = 1;
	s.seq = 512;
	seen = step(s) / 512;
	s.seq = 8192;
	hidden = step(s) / 8192;
	assert_true(seen > 1.3 * hidden);
	one = s;
	one.nic_gbps = 50;
	assert_true(step(one) > step(s));
}

int main(void)
{
	mo_desc_init(&recipe_model_desc, &model);
	mo_desc_init(&gpu_type_desc, &gpu);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_again),
		cmocka_unit_test(never_above_peak),
		cmocka_unit_test(features_help),
		cmocka_unit_test(graphs_free_the_host),
		cmocka_unit_test(less_work),
		cmocka_unit_test(exponentials),
		cmocka_unit_test(work_costs),
		cmocka_unit_test(launch_floor),
		cmocka_unit_test(exchanges),
		cmocka_unit_test(reached_places),
		cmocka_unit_test(measured_curves),
		cmocka_unit_test(leaves_and_spine),
		cmocka_unit_test(fsdp),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	mo_desc_done(&recipe_model_desc, &model);
	mo_desc_done(&gpu_type_desc, &gpu);
	return r;
}
