/* Memory against what was published: Korthikanti's table, the vendor's projections for 1T and 2T
 * models, measured runs; and what must hold whatever the numbers. */
#include "lib/plan/features.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "lib/plan/retained.h"
#include "lib/plan/memory.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/shape.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/model_file.h"
#include "lib/recipe/engine_plan.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/engine_load.h"

#define GIB 1073741824.0

static struct recipe_model model;
static struct gpu_type gpu;

static struct shape shape(const char *name, const char *on, int64_t gpus, int64_t tp, int64_t pp,
			  int64_t vpp, int64_t ep, int64_t cp, int64_t micro, int64_t seq)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	mo_desc_done(&recipe_model_desc, &model);
	mo_desc_done(&gpu_type_desc, &gpu);
	mo_desc_init(&recipe_model_desc, &model);
	mo_desc_init(&gpu_type_desc, &gpu);
	if ((name && model_load(name, &model, &err) < 0) || gpu_type_load(on, &gpu, &err) < 0)
		fail_msg("%s", err.text);
	int64_t dp = gpus / (tp * pp * cp);

	return (struct shape){ .model = &model,
			       .gpu = &gpu,
			       .precision = "bf16",
			       .schedule = vpp > 1 ? "interleaved" : "1f1b",
			       .recompute = "none",
			       .sharding = "zero1",
			       .gpus = gpus,
			       .tp = tp,
			       .pp = pp,
			       .vpp = vpp,
			       .ep = ep,
			       .etp = 1,
			       .cp = cp,
			       .dp = dp,
			       .micro = micro,
			       .global = micro * dp * pp * 4,
			       .seq = seq,
			       .nic_gbps = 400 };
}

static struct shape gpt(int64_t layers, int64_t hidden, int64_t heads, int64_t gpus, int64_t pp,
			int64_t vpp, int64_t micro)
{
	struct shape s = shape(NULL, "a100-80", gpus, 8, pp, vpp, 1, 1, micro, 2048);

	model.layers = layers;
	model.hidden = hidden;
	model.heads = heads;
	model.ffn = 4 * hidden;
	model.vocab = 51200;
	model.gated = false;
	model.tied = true;
	model.attention = mo_strdup("unfused");
	s.precision = "fp16";
	s.sharding = "none";
	return s;
}

static void within(const char *what, double value, double expected, double fraction)
{
	if (!(fabs(value - expected) <= fraction * fabs(expected)))
		fail_msg("%s: %g is not within %g %% of %g", what, value, fraction * 100, expected);
}

/* Korthikanti et al. 2022, table 5 and figure 1 (as Calculon's validation has them), GiB of the
 * first stage: activations without recomputation and without sequence parallelism, and with
 * sequence parallelism and selective recomputation. */
static void korthikanti(void **state)
{
	static const struct {
		const char *name;
		int64_t layers, hidden, heads, gpus, pp, vpp, micro;
		double none, selective;
	} rows[] = {
		{ "22B", 48, 6144, 64, 8, 1, 1, 4, 59.25, 9.5625 },
		{ "175B", 96, 12288, 96, 64, 8, 3, 1, 66.84375, 12.3515625 },
		{ "530B", 105, 20480, 128, 280, 35, 3, 1, 114.0234375, 23.076171875 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct shape s = gpt(rows[i].layers, rows[i].hidden, rows[i].heads, rows[i].gpus,
				     rows[i].pp, rows[i].vpp, rows[i].micro);
		double flight = shape_tokens(&s) *
				pipeline_in_flight(s.schedule, s.pp, s.vpp, 4 * s.pp, 0) *
				(double)(s.model->layers / s.pp);

		s.features.no_sequence_parallel = true;
		within(rows[i].name, memory_layer_bytes(&s, false, "none") * flight / GIB,
		       rows[i].none, 0.02);
		s.features.no_sequence_parallel = false;
		within(rows[i].name, memory_layer_bytes(&s, false, "selective") * flight / GIB,
		       rows[i].selective, 0.02);
	}
}

struct bar {
	const char *model;
	int64_t pp, ep, cp;
	double weights, states, activations;
};
/* Figures 8 and 9 of the vendor's MoE package, 768 GPUs, in 10^9 bytes: weights (gradients as
 * much), optimizer of 10 bytes per parameter, activations. */
static const struct bar bars[] = {
	{ "moe-1t", 24, 8, 1, 12.8, 16.0, 153.4 },  { "moe-1t", 24, 8, 2, 12.8, 16.0, 76.7 },
	{ "moe-1t", 24, 16, 1, 7.5, 18.6, 153.4 },  { "moe-1t", 24, 16, 2, 7.5, 18.6, 76.7 },
	{ "moe-1t", 48, 8, 1, 7.2, 18.0, 183.8 },   { "moe-1t", 48, 8, 2, 7.2, 18.0, 91.9 },
	{ "moe-2t", 24, 8, 1, 23.3, 29.1, 262.2 },  { "moe-2t", 24, 8, 2, 23.3, 29.1, 131.1 },
	{ "moe-2t", 24, 16, 1, 12.8, 31.9, 262.2 }, { "moe-2t", 24, 16, 2, 12.8, 31.9, 131.1 },
	{ "moe-2t", 48, 8, 1, 12.5, 31.2, 314.6 },
};

static struct plan_memory of_bar(const struct bar *b)
{
	struct shape s = shape(b->model, "mi355x", 768, 1, b->pp, 0, b->ep, b->cp, 1, 4096);
	struct plan_memory m;

	s.vpp = model.layers / b->pp;
	s.schedule = "interleaved";
	s.features.small_master = s.features.deepep = true;
	s.features.grad_bytes = 2;
	memory_of_stage(&s, 0, &m);
	return m;
}

/* Their tool leaves out the query and output projections, 4.4 % of active weights; we count them.
 * Its optimizer is sharded over the experts' replicas, dense weights too; ours over all. */
static void vendors_bars(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(bars); i++) {
		const struct bar *b = &bars[i];
		_cleanup_(mo_freep) char *what =
			mo_printf("%s pp %lld ep %lld cp %lld", b->model, (long long)b->pp,
				  (long long)b->ep, (long long)b->cp);
		struct plan_memory m = of_bar(b);
		double left_out = 2 * 2.0 *
				  (double)(model.hidden * model.heads * model.head_dim *
					   model.layers / b->pp) /
				  1e9,
		       shown = m.params - left_out, owners = 768.0 / (double)(b->pp * b->ep);

		within(what, shown, b->weights, 0.01);
		within(what, m.grads - left_out, b->weights, 0.01);
		within(what, shown / 2 * 10 / owners, b->states, 0.01);
		assert_true(m.optimizer <= m.params / 2 * 10 / owners);
		within(what, m.activations, b->activations, 0.11);
	}
}

/* What the vendor concludes from the bars comes out of the arithmetic. */
static void vendors_conclusions(void **state)
{
	static const struct {
		const char *model;
		double saved;
	} cp2[] = { { "moe-1t", 76.7 }, { "moe-2t", 131.1 } };

	for (size_t i = 0; i < ELEMENTSOF(cp2); i++) {
		struct bar one = { cp2[i].model, 24, 8, 1, 0, 0, 0 }, two = one, wide = one,
			   deep = one;

		two.cp = 2;
		wide.ep = 16;
		deep.pp = 48;
		struct plan_memory m1 = of_bar(&one), m2 = of_bar(&two), m16 = of_bar(&wide),
				   m48 = of_bar(&deep);

		within("CP 2 saves", m1.activations - m2.activations, cp2[i].saved, 0.10);
		within("EP 16 leaves activations", m16.activations, m1.activations, 1e-9);
		/* halved experts' weights, twice the optimizer: little of the whole */
		assert_true(fabs(m16.total - m1.total) < 0.08 * m1.total);
		assert_true(m48.activations > 1.15 * m1.activations);
		assert_true(m48.total > m1.total);
	}
}

/* Primus' printed projection of Mixtral 8x22B: 5.125 GiB for 2 x 8192 tokens of one MoE layer. */
static void primus_layer(void **state)
{
	struct shape s = shape("mixtral-8x22b", "mi355x", 64, 1, 4, 2, 8, 1, 2, 8192);

	s.features.deepep = true;
	/* Three norms, two residuals, the router and attention keep h elements each there; here two
	 * norms keep their inputs and outputs, and nothing else has that width. */
	double wide = 2 * (7 - 4) * (double)model.hidden;

	within("MoE layer", (memory_layer_bytes(&s, true, "none") + wide) * shape_tokens(&s) / GIB,
	       5.125, 1e-4);
}

/* Measured in 10^9 bytes: DeepSeek-V2-Lite on 8 MI355X (share of 309.2 GB), Llama 3 with torchtitan
 * on H100 of 96 GB. */
static void measured(void **state)
{
	static const struct {
		int64_t micro;
		bool fused, deepep;
		double gb;
	} lite[] = {
		{ 1, false, false, 86.7 },  { 2, false, false, 106.7 },  { 4, false, false, 146.8 },
		{ 8, false, false, 234.3 }, { 12, false, false, 306.5 }, { 12, true, false, 285.0 },
		{ 12, true, true, 258.6 },  { 14, true, true, 294.0 },
	};
	struct plan_memory m;

	for (size_t i = 0; i < ELEMENTSOF(lite); i++) {
		struct shape s =
			shape("deepseek-v2-lite", "mi355x", 8, 1, 1, 1, 8, 1, lite[i].micro, 4096);

		s.features.fused_loss = lite[i].fused;
		s.features.deepep = lite[i].deepep;
		memory_of(&s, &m);
		within("V2-Lite", m.total, lite[i].gb, 0.10);
	}
	struct shape s = shape("llama3-70b", "h100-500w", 256, 8, 1, 1, 1, 1, 16, 8192);

	s.sharding = "zero3";
	s.recompute = "full";
	s.features.eager = true;
	memory_of(&s, &m);
	within("70B on 256", m.total, 72.6, 0.12);
	s = shape("llama3.1-405b", "h100-500w", 512, 8, 8, 1, 1, 1, 1, 32768);
	s.sharding = "zero3";
	s.recompute = "full";
	s.features.eager = true;
	memory_of(&s, &m);
	within("405B on 512", m.total, 80.9, 0.10);
}

static double layer(const struct shape *s, bool moe)
{
	return memory_layer_bytes(s, moe, "selective");
}

/* What Megatron's modules drop, by hand from the sizes of DeepSeek-V3: 7168 wide, 128 heads of 192
 * and 128, 8 experts of 2048, a shared one, dense layers of 18432. */
static void modules(void **state)
{
	static const struct {
		int64_t module;
		double moe, dense;
	} rows[] = {
		{ MODULE_CORE_ATTENTION, 0, 0 },
		{ MODULE_NORMS, 2 * 2.0 * 7168, 2 * 2.0 * 7168 },
		{ MODULE_MLA_UP, 2 * 128.0 * (2 * 192 + 128), 2 * 128.0 * (2 * 192 + 128) },
		{ MODULE_EXPERT_ACTIVATION, 2 * 8 * 2048.0, 0 },
		{ MODULE_SHARED, 2 * 3 * 2048.0, 0 },
		{ MODULE_MOE, 2 * (8 * (7168 + 3 * 2048.0) + 3 * 2048.0), 0 },
		{ MODULE_MLP, 0, 2 * 3 * 18432.0 },
	};
	struct shape s = shape("deepseek-v3", "h800", 2048, 1, 16, 1, 64, 1, 1, 4096);

	s.features.deepep = true;
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		s.features.recompute_modules = rows[i].module;
		within("experts", memory_layer_bytes(&s, true, "none") - layer(&s, true),
		       rows[i].moe, 1e-12);
		within("dense", memory_layer_bytes(&s, false, "none") - layer(&s, false),
		       rows[i].dense, 1e-12);
	}
	s.features.recompute_modules = MODULE_NORMS | MODULE_MLA_UP | MODULE_EXPERT_ACTIVATION;
	double dropped = rows[1].moe + rows[2].moe + rows[3].moe;

	within("together", memory_layer_bytes(&s, true, "none") - layer(&s, true), dropped, 1e-12);
	/* what is made again cannot be offloaded too */
	s.recompute = "selective";
	s.features.offload_modules = OFFLOAD_ATTN_NORM | OFFLOAD_QKV | OFFLOAD_CORE_ATTENTION |
				     OFFLOAD_EXPERT_UP | OFFLOAD_EXPERT_ACTIVATION;
	within("offloaded", memory_layer_offloaded(&s, true), 2 * (7168 + 8 * (7168.0 + 2 * 2048)),
	       1e-12);
	s.recompute = "none";
	within("more", memory_layer_offloaded(&s, true),
	       2 * (2 * 7168 + 128.0 * (2 * 192 + 128) + 8 * (7168.0 + 2 * 2048)), 1e-12);
	s.features.offload_modules = 0;
	/* Operands in 8 bits: both norms' outputs but the router's, routed rows, activations'
	 * results; attention's result is kept twice. */
	double sixteen = memory_layer_bytes(&s, true, "none");

	s.precision = "fp8";
	within("8 bits", sixteen - memory_layer_bytes(&s, true, "none"),
	       7168 + 8 * (7168.0 + 2048) + 2048 - 128.0 * 128, 1e-12);
	double narrow = memory_layer_bytes(&s, true, "none");

	s.features.narrow_activation = true;
	within("what SwiGLU reads", narrow - memory_layer_bytes(&s, true, "none"),
	       2 * (8 * 2048.0 + 2048), 1e-12);
	s.features.shard_bytes = 4; /* PyTorch keeps what it cast */
	s.features.narrow_activation = false;
	within("PyTorch", memory_layer_bytes(&s, true, "none"), sixteen, 1e-12);
}

/* DeepSeek-V3 as it was trained, on GPUs of 80 GB: twice the weights of DualPipe's two stages, not
 * of the larger one, and what it makes again is not kept. */
static void deepseek(void **state)
{
	struct shape s = shape("deepseek-v3", "h800", 2048, 1, 16, 1, 64, 1, 1, 4096);
	struct plan_memory m, plain;
	double first, experts, last, both;

	shape_weights(&s, 0, &first, &experts);
	shape_weights(&s, 15, &last, &experts);
	memory_of(&s, &plain);
	s.schedule = "dualpipe";
	shape_weights(&s, 0, &both, &experts);
	within("both stages", both, first + last, 1e-12);
	s.precision = "fp8";
	s.recompute = "selective";
	s.features.deepep = s.features.narrow_activation = true;
	s.features.moment_bytes = 4;
	s.features.recompute_modules = MODULE_NORMS | MODULE_MLA_UP | MODULE_EXPERT_ACTIVATION;
	memory_of(&s, &m);
	assert_true(m.total < 1.1 * m.capacity && m.activations < 0.5 * plain.activations);
}

/* The features of a recipe, as its engine's file has them. */
static struct shape_features features_of(struct recipe *r)
{
	struct shape_features f;
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	assert_int_equal(engine_load(r->engine.kind, &e, NULL), 0);
	engine_plan_apply(&e, r);
	f = shape_features_of(r);
	assert_null(f.recompute_ids); /* it would point into the traits */
	mo_desc_done(&engine_desc, &e);
	return f;
}

static void traits_done(struct recipe *r)
{
	mo_desc_free(&engine_traits_desc, r->engine.traits);
	r->engine.traits = NULL;
}

/* Features that a recipe of this engine has by one flag, and by a type in 16 bits. */
static struct shape_features stated(const char *narrow, const char *engine, const char *key,
				    const char *value)
{
	struct kv args[] = { { (char *)key, (char *)value },
			     { (char *)narrow, (char *)"bfloat16" } };
	struct recipe r = {
		.engine = { .kind = (char *)engine, .args = args, .n_args = narrow ? 2 : 1 },
		.parallelism = { .vpp = 1 }
	};

	struct shape_features f = features_of(&r);

	traits_done(&r);
	return f;
}

/* What engines are given by flags of their own. */
static void flags(void **state)
{
	assert_int_equal(stated(NULL, "megatron-lm", "--recompute-modules",
				"[mla_up_proj, moe_act,layernorm]")
				 .recompute_modules,
			 MODULE_MLA_UP | MODULE_EXPERT_ACTIVATION | MODULE_NORMS);
	assert_int_equal(stated(NULL, "megatron-lm", "recompute_modules", "moe mlp")
				 .recompute_modules,
			 MODULE_MOE | MODULE_MLP);
	assert_int_equal(stated(NULL, "megatron-lm", "cpu_offloading_num_layers", "20")
				 .offload_layers,
			 20);
	assert_int_equal(stated(NULL, "megatron-lm", "grad-reduce-in-bf16", NULL).grad_bytes, 2);
	struct kv fine[] = { { (char *)"fine_grained_activation_offloading", NULL },
			     { (char *)"offload_modules", (char *)"[core_attn, expert_fc1]" } };
	struct recipe offload = {
		.engine = { .kind = (char *)"megatron-lm", .args = fine, .n_args = 2 }
	};

	assert_int_equal(features_of(&offload).offload_modules,
			 OFFLOAD_CORE_ATTENTION | OFFLOAD_EXPERT_UP);
	assert_int_equal(stated(NULL, "megatron-lm", "offload_modules", "core_attn")
				 .offload_modules,
			 0);
	struct recipe_env env[] = { { (char *)"A", (char *)"expandable_segments:True", NULL },
				    { (char *)"PYTORCH_HIP_ALLOC_CONF",
				      (char *)"x:1,expandable_segments:True", NULL } };

	offload.env = env;
	offload.n_env = 1;
	assert_true(!features_of(&offload).expandable &&
		    stated(NULL, "torchtitan", "x", "y").expandable);
	offload.n_env = 2;
	assert_true(features_of(&offload).expandable);
	assert_true(
		stated(NULL, "primus-megatron", "sequence_parallel", "false")
			.no_sequence_parallel &&
		!stated(NULL, "primus-megatron", "sequence_parallel", "true").no_sequence_parallel);
	assert_true(stated(NULL, "primus-megatron", "activation_func_fp8_input_store", "true")
			    .narrow_activation);
	assert_true(stated(NULL, "megatron-lm", "attention-dropout", "0.0").no_dropout &&
		    !stated(NULL, "megatron-lm", "attention-dropout", "0.1").no_dropout);
	assert_int_equal(stated(NULL, "megatron-lm", "x", "y").shard_bytes, 0);
	assert_true(stated(NULL, "megatron-lm", "x", "y").cached_weights &&
		    !stated(NULL, "megatron-lm", "fp8-param-gather", NULL).cached_weights &&
		    !stated(NULL, "torchtitan", "x", "y").cached_weights);
	assert_true(stated(NULL, "megatron-lm", "optimizer-cpu-offload", NULL).optimizer_offload ==
			    1 &&
		    stated(NULL, "megatron-lm", "optimizer_offload_fraction", "0.5")
				    .optimizer_offload == 0);
	assert_int_equal(stated(NULL, "primus-torchtitan", "x", "y").shard_bytes, 4);
	assert_true(stated(NULL, "torchtitan", "compile.enable", "true").fused_loss &&
		    !stated(NULL, "torchtitan", "x", "y").fused_loss);
	assert_int_equal(stated(NULL, "megatron-lm", "--enable-cuda-graph", NULL).graphs,
			 GRAPH_ALL);
	assert_int_equal(stated(NULL, "primus-megatron", "external_cuda_graph", "true").graphs,
			 GRAPH_ALL);
	assert_int_equal(stated(NULL, "primus-megatron", "cuda_graph_scope", "attn").graphs, 0);
	struct kv graph[] = { { (char *)"cuda_graph_impl", (char *)"transformer_engine" },
			      { (char *)"cuda_graph_modules",
				(char *)"[attn, moe_router,moe_preprocess]" } };
	struct recipe graphs = {
		.engine = { .kind = (char *)"megatron-lm", .args = graph, .n_args = 2 }
	};

	assert_int_equal(features_of(&graphs).graphs,
			 GRAPH_ATTENTION | GRAPH_ROUTER | GRAPH_PREPROCESS);
	graph[0].value = (char *)"full_iteration";
	assert_int_equal(features_of(&graphs).graphs, GRAPH_ALL);
	graph[0].value = (char *)"none";
	assert_int_equal(features_of(&graphs).graphs, 0);
	assert_true(
		stated(NULL, "megatron-lm", "use-transformer-engine-op-fuser", NULL)
			.fused_experts &&
		stated(NULL, "megatron-lm", "fp8-dot-product-attention", NULL).narrow_attention);
	assert_true(stated(NULL, "megatron-lm", "fp8-param-gather", NULL).narrow_gather &&
		    stated(NULL, "megatron-lm", "tp-comm-overlap", NULL).async_tp);
	assert_true(
		stated(NULL, "megatron-lm", "overlap-moe-expert-parallel-comm", NULL).overlap_a2a &&
		!stated(NULL, "megatron-lm", "moe-enable-deepep", NULL).deepep);
	struct shape_features f = stated("weight_dtype", "maxtext", "remat_policy", "full");

	assert_true(f.shard_bytes == 2 && f.grad_bytes == 2 && f.moment_bytes == 4);
	struct kv custom[] = { { (char *)"remat_policy", (char *)"custom" },
			       { (char *)"context", (char *)"device" },
			       { (char *)"mlpwo", (char *)"offload" } };
	struct recipe r = { .engine = { .kind = (char *)"maxtext", .args = custom, .n_args = 3 } };

	assert_int_equal(features_of(&r).remat_saved, REMAT_CONTEXT);
	assert_string_equal(shape_recompute_of(&r), "selective");
	r.engine.n_args = 0;
	features_of(&r);
	assert_string_equal(shape_recompute_of(&r), "full");
	traits_done(&r);
	traits_done(&graphs);
	traits_done(&offload);
}

/* MaxText's policies keep more and more of a layer. */
static void policies(void **state)
{
	static const char *const policies[] = { "qkv_proj_offloaded",
						"save_out_proj",
						"save_qkv_proj",
						"save_dot_except_mlp",
						"save_dot_with_context_except_mlp",
						"save_dot_except_mlpwi",
						"minimal",
						"minimal_with_context" };
	struct shape s = shape("mixtral-8x7b", "mi355x", 8, 1, 1, 1, 8, 1, 11, 4096);
	double last = 0;

	for (size_t i = 0; i < ELEMENTSOF(policies); i++) {
		s.features = stated(NULL, "maxtext", "remat_policy", policies[i]);
		assert_true(layer(&s, true) > last);
		last = layer(&s, true);
	}
	assert_true(last < memory_layer_bytes(&s, true, "none"));
	s.features = stated(NULL, "maxtext", "remat_policy", "save_out_proj");
	within("out", layer(&s, true), 2 * 2 * 4096, 1e-12);
	/* its input, queries, keys, values, attention's product, gate and up, down */
	s.features = stated("weight_dtype", "maxtext-multiprocess", "remat_policy", "minimal");
	within("minimal", layer(&s, true), 2 * (4096 + 6144 + 4096 + 2 * 2 * 14336 + 2 * 4096),
	       1e-12);
	/* The vendor says 270 to 274 of 288 GiB for this policy, weights, moments and gradients in
	 * 16 bits. */
	struct plan_memory m;

	s.sharding = "zero3";
	s.recompute = "selective";
	memory_of(&s, &m);
	within("Mixtral with MaxText", m.total - m.reserve, 272 * GIB / 1e9, 0.03);
	assert_true(m.total <= m.capacity);
}

/* FSDP of PyTorch: FP32 shards are the master weights, 16 bytes in all. Half of the layers on the
 * host keep half, but for one on its way. */
static void shards(void **state)
{
	struct shape s = shape("llama3-8b", "h200", 64, 1, 1, 1, 1, 1, 2, 8192);
	struct plan_memory m, all;
	double weights = plan_params(&model).total;

	s.sharding = "zero3";
	s.features.shard_bytes = 4;
	memory_of(&s, &m);
	within("states", m.params + m.grads + m.optimizer, 16 * weights / 64 / 1e9, 1e-3);
	s.features.eager = s.features.fused_loss = true;
	s.recompute = "selective";
	memory_of(&s, &m);
	within("without the margin, as torchtitan measures", m.total - m.reserve, 46.97 * GIB / 1e9,
	       0.05);
	s.recompute = "none";
	memory_of(&s, &all);
	s.features.offload_layers = 17;
	memory_of(&s, &m);
	double head = 4.0 * (double)model.vocab * 2 * 8192 / 1e9;

	within("half on the host", m.activations - head, (all.activations - head) / 2, 1e-6);
}

/* Llama 405B with torchtitan of 2024 on 512 H100: 32 micro-batches of 8,192 tokens through two
 * chunks per rank, whose inputs, gradients and results all have places of their own. */
static void pipeline_of_torch(void **state)
{
	struct shape s = shape("llama3.1-405b", "h100-500w", 512, 8, 8, 2, 1, 1, 1, 8192);
	struct plan_memory m, few;

	s.sharding = "zero3";
	s.recompute = "full";
	s.global = 32 * s.dp;
	s.features = (struct shape_features){
		.eager = true, .compiled = true, .shard_bytes = 4, .keeps_outputs = true
	};
	memory_of(&s, &m);
	within("interleaved", m.total, 72.7 * GIB / 1e9, 0.07);
	s.global = 16 * s.dp;
	memory_of(&s, &few);
	within("half of the micro-batches", m.comm - few.comm,
	       2 * 2 * 16 * 2 * 8192.0 / 8 * 16384 / 1e9, 1e-9);
}

/* Transformer Engine keeps weights in 8 bits twice beside those in 16; not embedding and output
 * layer. States on the host are not on the GPU. */
static void copies_and_offload(void **state)
{
	struct shape s = shape("llama3-8b", "mi355x", 8, 1, 1, 1, 1, 1, 1, 8192);
	struct plan_memory plain, m;
	struct params p = plan_params(&model);

	s.features.cached_weights = true;
	memory_of(&s, &plain); /* nothing in 16 bits */
	within("16 bits", plain.params, 2 * p.total / 1e9, 1e-4);
	s.precision = "fp8";
	memory_of(&s, &m);
	within("copies", m.comm - plain.comm, 2 * (p.total - 2 * p.embedding) / 1e9, 1e-4);
	s.features.optimizer_offload = 0.75;
	memory_of(&s, &m);
	within("a quarter stays", m.optimizer, plain.optimizer / 4, 1e-9);
}

static double total(struct shape s)
{
	struct plan_memory m;

	memory_of(&s, &m);
	return m.total;
}

/* features.recompute_layers by number: in each stage, and in the chunks of an interleaved one,
 * which lie apart. */
static void layers_by_number(void **state)
{
	struct shape t = shape("mixtral-8x22b", "mi300x", 128, 2, 4, 1, 4, 1, 1, 4096);

	t.sharding = "zero2";
	double last = total(t);

	t.recompute = "full";
	double full = total(t);

	t.features.recompute_layers = 13;
	/* 14 layers per stage: three of the first */
	t.features.recompute_ids = "0, 2 4";
	assert_int_equal(shape_recomputed(&t, 0, 14), 3);
	assert_int_equal(shape_recomputed(&t, 2, 4), 1);
	assert_true(total(t) > full && total(t) <= last);
	/* chunks of seven layers that lie apart: layer 30 is of the first stage, 13 of the
	 * second */
	t.vpp = 2;
	t.schedule = "interleaved";
	t.features.recompute_ids = "[0, 13, 30]";
	assert_int_equal(t.pp, 4);
	assert_int_equal(t.model->layers, 56);
	assert_int_equal(shape_stage_recomputed(&t, 0), 2);
	assert_int_equal(shape_stage_recomputed(&t, 1), 1);
	assert_int_equal(shape_stage_recomputed(&t, 2) + shape_stage_recomputed(&t, 3), 0);
	t.chunk_layers = (const int64_t[]){ 14, 6, 6, 6, 6, 6, 6, 6 };
	assert_int_equal(shape_stage_recomputed(&t, 0), 2);
	t.features.recompute_ids = "[38, 37]";
	assert_int_equal(shape_stage_recomputed(&t, 0), 1);
	assert_int_equal(shape_stage_recomputed(&t, 1), 1);
}

static void more_is_more(void **state)
{
	static const char *const sharding[] = { "none", "zero1", "zero2", "zero3" };
	struct shape s = shape("mixtral-8x22b", "mi300x", 128, 2, 4, 1, 4, 1, 1, 4096), t;
	double last = INFINITY;

	for (size_t i = 0; i < 3; i++) { /* zero3 keeps whole weights behind a pipeline */
		s.sharding = sharding[i];
		assert_true(total(s) < last);
		last = total(s);
	}
	t = s;
	t.micro = 2;
	assert_true(total(t) > last);
	t = s;
	t.recompute = "full";
	assert_true(total(t) < last);
	double full = total(t);

	/* per-layer recomputation lies between none and all */
	for (int64_t layers = 1; layers < 14; layers++) {
		t.features.recompute_layers = layers;
		assert_true(total(t) > full && total(t) < last);
	}
	/* two at a time: half of the inputs, twice the layer at work */
	t.features.recompute_layers = 0;
	t.features.recompute_chunk = 2;
	double one = memory_layer_bytes(&t, true, "full"),
	       whole = memory_layer_bytes(&t, true, "none");
	struct plan_memory each, pairs;

	memory_of_stage(&t, 0, &pairs);
	t.features.recompute_chunk = 0;
	memory_of_stage(&t, 0, &each);
	within("pairs", each.activations - pairs.activations,
	       (14 * one * 4 / 2 - whole) * shape_tokens(&t) / 1e9, 1e-9);
	t = s;
	t.features.deepep = true;
	assert_true(total(t) < last);
	t = s;
	t.features.small_master = true;
	assert_true(total(t) < last);
	full = total(t);
	t.features.grad_bytes = 2;
	assert_true(total(t) < full);
	full = total(t);
	t.features.moment_bytes = 4;
	assert_true(total(t) < full);
	t = s;
	t.cp = 2;
	t.dp /= 2;
	assert_true(total(t) < last);
	s = shape("llama3-8b", "h100", 8, 1, 1, 1, 1, 1, 1, 8192);
	s.sharding = "zero2";
	last = total(s);
	s.sharding = "zero3";
	assert_true(total(s) < last);
}

static void stages(void **state)
{
	struct shape s = shape("deepseek-v3", "mi355x", 256, 1, 16, 1, 8, 1, 1, 4096);
	struct plan p;
	struct plan_memory fullest;
	double most = 0;
	int64_t layers = 0;

	mo_desc_init(&plan_desc, &p);
	memory_stages_of(&s, &p);
	memory_of(&s, &fullest);
	assert_int_equal(p.n_memory_stages, 16);
	for (size_t i = 0; i < p.n_memory_stages; i++) {
		const struct plan_stage *g = &p.memory_stages[i];

		assert_int_equal(g->stage, i);
		layers += g->layers;
		most = MO_MAX(most, g->total);
		within("sum",
		       g->params + g->grads + g->optimizer + g->activations + g->comm + g->reserve,
		       g->total, 1e-9);
	}
	assert_int_equal(layers, 61);
	within("fullest", most, fullest.total, 1e-9);
	mo_desc_done(&plan_desc, &p);
}

int main(void)
{
	mo_desc_init(&recipe_model_desc, &model);
	mo_desc_init(&gpu_type_desc, &gpu);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(korthikanti),
		cmocka_unit_test(vendors_bars),
		cmocka_unit_test(vendors_conclusions),
		cmocka_unit_test(primus_layer),
		cmocka_unit_test(measured),
		cmocka_unit_test(modules),
		cmocka_unit_test(deepseek),
		cmocka_unit_test(flags),
		cmocka_unit_test(policies),
		cmocka_unit_test(shards),
		cmocka_unit_test(copies_and_offload),
		cmocka_unit_test(pipeline_of_torch),
		cmocka_unit_test(layers_by_number),
		cmocka_unit_test(more_is_more),
		cmocka_unit_test(stages),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	mo_desc_done(&recipe_model_desc, &model);
	mo_desc_done(&gpu_type_desc, &gpu);
	return r;
}
