/* Parameters and FLOPs: stages add up to the model, what each part of a model adds, and figures
 * that others report. Published totals of the catalogue: test_plan.c. */
#include "tests/unit/unit.h"

#include <math.h>

#include "lib/plan/params.h"
#include "lib/plan/shape.h"
#include "lib/recipe/model_file.h"

static void within(const char *what, double value, double expected, double fraction)
{
	if (!(fabs(value - expected) <= fraction * fabs(expected)))
		fail_msg("%s: %.10g is not within %g %% of %.10g", what, value, fraction * 100,
			 expected);
}

static void load(const char *name, struct recipe_model *m)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	mo_desc_init(&recipe_model_desc, m);
	if (model_load(name, m, &err) < 0)
		fail_msg("%s", err.text);
}

/* FLOPs per token as Megatron-Bridge reports them: TFLOP/s per GPU over tokens/s per GPU of a row
 * of its performance summary. */
static void reported_flops(void **state)
{
	static const struct {
		const char *model;
		int64_t seq;
		double tflops, tokens;
	} rows[] = {
		{ "llama3-8b", 8192, 1544, 29994 },     { "llama3-70b", 8192, 736, 1639 },
		{ "llama3.1-405b", 8192, 1976, 783 },   { "qwen3-30b-a3b", 4096, 936, 40706 },
		{ "qwen3-235b-a22b", 4096, 878, 5936 }, { "deepseek-v3", 4096, 920, 3541 },
		{ "llama3-70b", 4096, 1877, 4312 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct recipe_model m;

		load(rows[i].model, &m);
		within(rows[i].model, plan_flops_per_token(&m, rows[i].seq),
		       rows[i].tflops * 1e12 / rows[i].tokens, 0.01);
		mo_desc_done(&recipe_model_desc, &m);
	}
}

/* Every weight is on exactly one stage, shared by tp ranks; experts by ep x etp. */
static void stages_add_up(void **state)
{
	static const struct {
		const char *model;
		int64_t tp, pp, ep;
	} rows[] = {
		{ "llama3-70b", 4, 8, 1 },       { "mixtral-8x22b", 2, 7, 8 },
		{ "deepseek-v2-lite", 1, 5, 8 }, { "deepseek-v3", 1, 16, 64 },
		{ "qwen3-235b-a22b", 4, 3, 16 }, { "llama4-maverick", 1, 6, 8 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct recipe_model m;
		double dense, experts, sum = 0;

		load(rows[i].model, &m);
		struct shape s = { .model = &m,
				   .schedule = "1f1b",
				   .tp = rows[i].tp,
				   .pp = rows[i].pp,
				   .vpp = 1,
				   .ep = rows[i].ep,
				   .etp = 1,
				   .cp = 1,
				   .dp = 1 };
		struct params p = plan_params(&m);

		for (int64_t stage = 0; stage < s.pp; stage++) {
			shape_weights(&s, stage, &dense, &experts);
			assert_true(dense > 0 && experts >= 0);
			sum += dense * (double)s.tp + experts * (double)s.ep;
		}
		within(rows[i].model, sum, p.total + p.mtp, 1e-5); /* but for the last norm */
		mo_desc_done(&recipe_model_desc, &m);
	}
}

/* h 8, 2 heads of 4, 1 KV head, f 16, V 32, 3 layers: by hand. */
static void by_hand(void **state)
{
	struct recipe_moe moe = {
		.experts = 4, .topk = 2, .ffn = 8, .shared_ffn = 4, .dense_layers = 1, .every = 1
	};
	struct recipe_mla mla = { .q_lora = 6, .kv_lora = 5, .qk_nope = 3, .qk_rope = 2, .v = 4 };
	struct recipe_model m;

	mo_desc_init(&recipe_model_desc, &m);
	m.layers = 3;
	m.hidden = 8;
	m.heads = 2;
	m.kv_heads = 1;
	m.head_dim = 4;
	m.ffn = 16;
	m.vocab = 32;
	m.gated = true;
	const double attention = 2 * 8 * 2 * 4 + 2 * 8 * 1 * 4 + 2 * 8, ffn = 3 * 8 * 16,
		     ends = 2 * 32 * 8 + 8;

	assert_true(plan_params(&m).total == 3 * (attention + ffn) + ends);
	m.tied = true;
	assert_true(plan_params(&m).total == 3 * (attention + ffn) + ends - 32 * 8);
	m.tied = false;
	m.gated = false;
	assert_true(plan_params(&m).total == 3 * (attention + ffn * 2 / 3) + ends);
	m.gated = true;
	m.moe = &moe;
	const double expert = 3 * 8 * 8, shared = 3 * 8 * 4, router = 8 * 4;

	assert_true(plan_params(&m).total ==
		    3 * attention + ffn + 2 * (4 * expert + shared + router) + ends);
	assert_true(plan_params(&m).active ==
		    3 * attention + ffn + 2 * (2 * expert + shared + router) + ends);
	/* 6 per active weight without the embedding look-up, and the causal half of scores and
	 * values */
	double flops = 6 * (plan_params(&m).active - 32 * 8) + 6 * 3 * 10.0 * 2 * (4 + 4);

	assert_true(plan_flops_per_token(&m, 20) == flops);
	m.mtp = 1;
	assert_true(plan_params(&m).mtp == attention + 2 * 8 * 8 + 4 * expert + shared + router);
	assert_true(plan_flops_per_token(&m, 20) ==
		    flops + 6 * (attention + 2 * 8 * 8 + 2 * expert + shared + router + 32 * 8) +
			    6 * 10.0 * 2 * 8);
	m.mtp = 0;
	m.moe = NULL;
	m.mla = &mla;
	assert_true(plan_params(&m).attention ==
		    8 * 6 + 6 * 2 * 5 + 6 + 8 * (5 + 2) + 5 * 2 * (3 + 4) + 5 + 2 * 4 * 8 + 2 * 8);
	m.mla = NULL;
	mo_desc_done(&recipe_model_desc, &m);
}

/* Experts in every n-th layer behind the dense ones: counted layer by layer. */
static void layers_with_experts(void **state)
{
	struct recipe_moe moe = { 0 };
	const struct recipe_model m = { .moe = &moe, .layers = 30 }, dense = { .layers = 30 };

	for (moe.every = 0; moe.every <= 5; moe.every++)
		for (moe.dense_layers = 0; moe.dense_layers <= 31; moe.dense_layers++)
			for (int64_t first = 0; first <= 30; first++) {
				int64_t walked = 0;

				for (int64_t last = first; last <= 30; last++) {
					assert_int_equal(plan_moe_layers(&m, first, last), walked);
					walked += last >= moe.dense_layers &&
						  last % MO_MAX(moe.every, 1) == 0;
				}
			}
	assert_int_equal(plan_moe_layers(&dense, 0, 30), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(layers_with_experts),
					    cmocka_unit_test(reported_flops),
					    cmocka_unit_test(stages_add_up),
					    cmocka_unit_test(by_hand) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
