/* Memory against runs: published schedules, own runs with PyTorch's FSDP and Megatron-LM, and where
 * runs of growing micro-batches ran out. Own runs: NVIDIA H200, 2026-11-21. */
#include "lib/plan/features.h"
#include "tests/unit/unit.h"

#include <math.h>

#include "lib/plan/memory.h"
#include "lib/plan/shape.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/model_file.h"

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

static void within(const char *what, double value, double expected, double fraction)
{
	if (!(fabs(value - expected) <= fraction * fabs(expected)))
		fail_msg("%s: %g is not within %g %% of %g", what, value, fraction * 100, expected);
}

/* Published by Primus for Qwen3 235B on 32 MI355X, PP4 EP8, in shares of 288 GiB: seven schedules,
 * and interleaved with two chunks, which ran out. Its micro-batch is not stated: one sequence. */
static void schedules_measured(void **state)
{
	static const struct {
		const char *schedule;
		int64_t vpp;
		double share;
	} rows[] = {
		{ "1f1b", 1, 0.9083 },        { "zb1p", 1, 0.9450 },   { "zbv", 2, 0.9874 },
		{ "v-half", 2, 0.8953 },      { "v-min", 2, 0.7927 },  { "interleaved", 3, 0.9970 },
		{ "interleaved", 4, 0.9682 }, { "interleaved", 2, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct shape s =
			shape("qwen3-235b-a22b", "mi355x", 32, 1, 4, rows[i].vpp, 8, 1, 1, 4096);
		struct plan_memory m;

		s.schedule = rows[i].schedule;
		memory_of(&s, &m);
		if (rows[i].share > 0)
			within(rows[i].schedule, m.total, rows[i].share * m.capacity, 0.02);
		assert_int_equal(m.total <= m.capacity, rows[i].share > 0);
	}
}

/* GB in use on the device: Llama shapes with FSDP of PyTorch 2.11 (torchtitan's policies, FP32
 * shards) on 4 H200, the step of one micro-batch or four. */
static void own_fsdp(void **state)
{
	static const struct {
		int64_t layers, hidden, heads, ffn, vocab, seq, micro;
		const char *recompute;
		bool compiled, loss;
		int64_t steps;
		double gb;
	} rows[] = {
		{ 32, 4096, 32, 14336, 128256, 8192, 1, "selective", false, false, 1, 69.5 },
		{ 32, 4096, 32, 14336, 128256, 8192, 1, "full", false, false, 1, 63.1 },
		{ 32, 4096, 32, 14336, 128256, 8192, 1, "none", false, false, 1, 104.6 },
		{ 32, 4096, 32, 14336, 128256, 8192, 2, "selective", false, false, 1, 107.2 },
		{ 32, 4096, 32, 14336, 128256, 8192, 2, "full", false, false, 1, 77.4 },
		{ 32, 4096, 32, 14336, 128256, 2048, 1, "none", false, false, 1, 60.4 },
		{ 32, 4096, 32, 14336, 128256, 8192, 1, "none", true, false, 1, 101.3 },
		{ 32, 4096, 32, 14336, 128256, 8192, 1, "selective", true, false, 1, 74.8 },
		{ 32, 4096, 32, 14336, 128256, 8192, 1, "selective", true, true, 1, 63.4 },
		{ 32, 4096, 32, 14336, 128256, 8192, 1, "full", true, true, 1, 51.3 },
		{ 32, 4096, 32, 14336, 128256, 8192, 2, "selective", true, true, 1, 78.8 },
		{ 32, 4096, 32, 14336, 128256, 8192, 1, "none", true, true, 1, 89.8 },
		{ 16, 2048, 32, 8192, 128256, 4096, 4, "none", false, false, 1, 62.7 },
		{ 16, 2048, 32, 8192, 128256, 4096, 4, "selective", false, false, 1, 47.1 },
		{ 16, 2048, 32, 8192, 128256, 4096, 4, "full", false, false, 1, 39.2 },
		{ 16, 2048, 32, 8192, 128256, 4096, 4, "none", true, true, 1, 41.7 },
		{ 16, 2048, 32, 8192, 128256, 32768, 1, "full", false, false, 1, 71.1 },
		{ 16, 2048, 32, 8192, 32000, 4096, 8, "none", false, false, 1, 75.7 },
		{ 28, 3072, 24, 8192, 128256, 4096, 2, "none", false, false, 1, 62.4 },
		{ 28, 3072, 24, 8192, 128256, 4096, 2, "none", false, false, 4, 63.3 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct shape s = shape(NULL, "h200", 4, 1, 1, 1, 1, 1, rows[i].micro, rows[i].seq);
		struct plan_memory m;

		model.layers = rows[i].layers;
		model.hidden = rows[i].hidden;
		model.heads = rows[i].heads;
		model.kv_heads = 8;
		model.ffn = rows[i].ffn;
		model.vocab = rows[i].vocab;
		model.gated = true;
		s.global = 4 * rows[i].micro * rows[i].steps;
		s.sharding = "zero3";
		s.recompute = rows[i].recompute;
		s.features = (struct shape_features){ .eager = true,
						      .shard_bytes = 4,
						      .compiled = rows[i].compiled,
						      .fused_loss = rows[i].loss };
		memory_of(&s, &m);
		_cleanup_(mo_freep) char *what =
			mo_printf("%d x %d of %d tokens, %s", (int)rows[i].layers,
				  (int)rows[i].hidden, (int)(rows[i].micro * rows[i].seq),
				  rows[i].recompute);

		within(what, m.total, rows[i].gb, 0.08);
	}
}

/* The same with Megatron-LM on 2 H200: its own unfused attention without dropout, FP32 gradients, a
 * plain all-to-all. */
static void own_megatron(void **state)
{
	static const struct {
		int64_t layers, hidden, heads, ffn, vocab, micro, experts, topk;
		const char *recompute;
		int64_t modules, tp, pp, vpp;
		const char *sharding;
		double gb;
	} rows[] = {
		{ 24, 2048, 16, 8192, 32000, 4, 0, 0, "none", 0, 1, 1, 1, "zero1", 57.7 },
		{ 24, 2048, 16, 8192, 32000, 4, 0, 0, "selective", 0, 1, 1, 1, "zero1", 45.4 },
		{ 24, 2048, 16, 8192, 32000, 4, 0, 0, "full", 0, 1, 1, 1, "zero1", 30.7 },
		{ 24, 2048, 16, 8192, 32000, 4, 0, 0, "selective", 0, 2, 1, 1, "zero1", 30.3 },
		{ 24, 2048, 16, 8192, 32000, 4, 0, 0, "selective", 0, 1, 2, 1, "zero1", 38.9 },
		{ 24, 2048, 16, 8192, 32000, 4, 0, 0, "selective", 0, 1, 2, 2, "zero1", 44.1 },
		{ 24, 2048, 16, 8192, 32000, 4, 0, 0, "selective", 0, 1, 1, 1, "none", 56.0 },
		{ 24, 2048, 16, 8192, 32000, 8, 0, 0, "selective", 0, 1, 1, 1, "zero1", 66.2 },
		{ 24, 2048, 16, 8192, 128000, 4, 0, 0, "selective", 0, 1, 1, 1, "zero1", 53.5 },
		{ 12, 1536, 12, 1536, 32000, 4, 16, 4, "none", 0, 1, 1, 1, "zero1", 33.2 },
		{ 12, 1536, 12, 1536, 32000, 4, 16, 4, "selective", 0, 1, 1, 1, "zero1", 28.2 },
		{ 12, 1536, 12, 1536, 32000, 4, 16, 4, "full", 0, 1, 1, 1, "zero1", 23.4 },
		{ 12, 1536, 12, 1536, 32000, 4, 16, 4, "selective", 33, 1, 1, 1, "zero1", 26.9 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct shape s = shape(NULL, "h200", 2, rows[i].tp, rows[i].pp, rows[i].vpp,
				       rows[i].experts ? 2 : 1, 1, rows[i].micro, 2048);
		struct recipe_moe moe = { .experts = rows[i].experts,
					  .topk = rows[i].topk,
					  .ffn = rows[i].ffn,
					  .every = 1 };
		struct plan_memory m;

		model.layers = rows[i].layers;
		model.hidden = rows[i].hidden;
		model.heads = rows[i].heads;
		model.ffn = rows[i].ffn;
		model.vocab = rows[i].vocab;
		model.gated = true;
		model.attention = mo_strdup("unfused");
		model.moe = rows[i].experts ? &moe : NULL;
		s.global = 16;
		s.sharding = rows[i].sharding;
		s.recompute = rows[i].recompute;
		s.features = (struct shape_features){ .no_dropout = true,
						      .recompute_modules = rows[i].modules };
		memory_of(&s, &m);
		_cleanup_(mo_freep) char *what = mo_printf("row %zu, %s", i, rows[i].recompute);

		model.moe = NULL;
		within(what, m.total, rows[i].gb, 0.10);
	}
}

/* One H200, PyTorch's FSDP without compilation, sequences of 2,048 tokens, the micro-batch grown
 * until it ran out; 0: not grown so far. What ran out does not fit, and little of what ran is
 * planned not to fit. */
static void own_edges(void **state)
{
	static const struct {
		int64_t layers, hidden, heads, vocab;
		const char *recompute;
		int64_t ran, out;
	} rows[] = {
		{ 16, 2048, 32, 128256, "none", 18, 19 },
		{ 16, 2048, 32, 128256, "selective", 28, 29 },
		{ 16, 2048, 32, 128256, "full", 32, 0 },
		{ 16, 2048, 32, 32000, "none", 29, 30 },
		{ 16, 2048, 32, 32000, "selective", 56, 59 },
		{ 16, 2048, 32, 32000, "full", 110, 0 },
		{ 28, 3072, 24, 128256, "none", 9, 10 },
		{ 28, 3072, 24, 128256, "selective", 15, 0 },
		{ 28, 3072, 24, 128256, "full", 22, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		int64_t most = 0;

		for (int64_t micro = 1; most == micro - 1; micro++) {
			struct shape s = shape(NULL, "h200", 1, 1, 1, 1, 1, 1, micro, 2048);
			struct plan_memory m;

			model.layers = rows[i].layers;
			model.hidden = rows[i].hidden;
			model.heads = rows[i].heads;
			model.kv_heads = 8;
			model.ffn = 8192;
			model.vocab = rows[i].vocab;
			model.gated = true;
			s.global = micro;
			s.sharding = "zero3";
			s.recompute = rows[i].recompute;
			s.features = (struct shape_features){ .eager = true, .shard_bytes = 4 };
			memory_of(&s, &m);
			most += m.total <= m.capacity;
		}
		if ((rows[i].out && most >= rows[i].out) ||
		    (double)most < 0.85 * (double)rows[i].ran)
			fail_msg("row %zu, %s: %d planned to fit, %d ran, %d ran out", i,
				 rows[i].recompute, (int)most, (int)rows[i].ran, (int)rows[i].out);
	}
}

int main(void)
{
	mo_desc_init(&recipe_model_desc, &model);
	mo_desc_init(&gpu_type_desc, &gpu);
	const struct CMUnitTest tests[] = { cmocka_unit_test(schedules_measured),
					    cmocka_unit_test(own_fsdp),
					    cmocka_unit_test(own_megatron),
					    cmocka_unit_test(own_edges) };
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	mo_desc_done(&recipe_model_desc, &model);
	mo_desc_done(&gpu_type_desc, &gpu);
	return r;
}
