/* lib/plan/anchor.h: which measured runs count, and what they change. */
#include "tests/unit/unit.h"

#include <math.h>

#include "lib/plan/anchor.h"
#include "lib/plan/constants.h"
#include "lib/plan/plan_desc.h"

static void plan_of(struct plan_doc *doc)
{
	mo_desc_init(&plan_doc_desc, doc);
	doc->hardware.gpu = mo_strdup("mi300x");
	struct plan *p = MO_ADD(doc, plans, &plan_desc);
	p->step_time_s = (struct plan_time){ .total = 4, .compute = 3, .a2a = 1 };
	p->memory_gb = (struct plan_memory){ .total = 100,
					     .params = 40,
					     .grads = 20,
					     .optimizer = 20,
					     .activations = 15,
					     .reserve = 5,
					     .capacity = 206.14 };
	p->fits = true;
	p->parallelism = (struct plan_parallelism){ 1, 1, 1, 1, 1, 1, 8, NULL };
	p->batch = (struct plan_batch){ 1, 64, 4096 };
	p->tokens_per_s_per_gpu = 1000;
	p->tflops_per_gpu = 400;
	p->mfu = 0.3;
}

static void near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * fmax(1, fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

static struct recipe recipe_of(struct recipe_model *m, const char *kind, const char *precision)
{
	return (struct recipe){ .model = m,
				.precision = (char *)precision,
				.engine.kind = (char *)kind };
}

static void add(struct plan_anchor *a, const struct recipe *r, const struct plan_doc *doc,
		double ratio, double memory_ratio)
{
	plan_anchor_add(a, r, doc, 4 * ratio,
			memory_ratio == MO_NONE_F ? MO_NONE_F : 100 * memory_ratio);
}

/* Factor on the step of a fresh plan, once it has been given the runs. */
static double factor(const struct plan_anchor *a, const struct recipe *r, struct plan *ret)
{
	struct plan_doc doc;

	plan_of(&doc);
	doc.plans[0].error_pct = 10;
	bool known = plan_anchor_apply(a, r, "mi300x", &doc);
	struct plan p = doc.plans[0];

	assert_int_equal(p.n_notes, known ? 1 : 0);
	near(p.step_time_s.compute / p.step_time_s.total, 0.75);
	near(p.mfu * p.step_time_s.total, 0.3 * 4);
	near(p.tokens_per_s_per_gpu * p.step_time_s.total, 4000);
	if (ret)
		*ret = p;
	mo_desc_done(&plan_doc_desc, &doc);
	return p.step_time_s.total / 4;
}

/* One run of the same configuration: believed by the share of what runs that are alike have in
 * common. Weights, gradients and optimizer are not estimates. */
static void one_run(void **state)
{
	const struct plan_constants *k = &plan_constants;
	struct recipe_model model = { .name = (char *)"m" };
	const struct recipe mine = recipe_of(&model, "megatron-lm", "bf16"),
			    fp8 = recipe_of(&model, "megatron-lm", "fp8");
	double common = k->spread_dense * k->spread_dense + k->spread_config * k->spread_config,
	       own = common + k->spread_row * k->spread_row;
	struct plan_anchor a = { 0 };
	struct plan_doc doc;
	struct plan p;

	plan_of(&doc);
	add(&a, &mine, &doc, 2, 1.5);
	add(&a, &fp8, &doc, 100, 100);
	near(factor(&a, &mine, &p), pow(2, common / own));
	near(p.error_pct, 10 * sqrt(1 - common * common / own / own));
	assert_true(p.memory_gb.total > 148 && p.memory_gb.total < 150 && p.fits);
	near(p.memory_gb.params + p.memory_gb.grads + p.memory_gb.optimizer, 80);
	near(p.memory_gb.activations + p.memory_gb.reserve, p.memory_gb.total - 80);
	double once = factor(&a, &mine, NULL);

	add(&a, &mine, &doc, 2, NAN);
	/* two are believed more */
	assert_true(factor(&a, &mine, NULL) > once && factor(&a, &mine, NULL) < 2);
	for (int i = 0; i < 100; i++)
		add(&a, &mine, &doc, 2, MO_NONE_F);
	assert_true(factor(&a, &mine, &p) > 1.97 && p.error_pct < 4);
	plan_anchor_done(&a);
	mo_desc_done(&plan_doc_desc, &doc);
}

/* The closer a run is in configuration, model and software, the more it counts, and the closest
 * decide between runs that disagree. */
static void closer_runs_count_more(void **state)
{
	struct recipe_model model = { .name = (char *)"m" }, other = { .name = (char *)"o" };
	const struct recipe mine = recipe_of(&model, "megatron-lm", "bf16"),
			    ported = recipe_of(&model, "torchtitan", "bf16"),
			    sibling = recipe_of(&other, "megatron-lm", "bf16");
	const struct recipe foreign = recipe_of(&other, "torchtitan", "bf16");
	const struct recipe *const order[] = { &mine, &ported, &sibling, &foreign };
	struct plan_anchor a;
	struct plan_doc doc;
	double last = 2;

	plan_of(&doc);
	for (size_t i = 0; i < ELEMENTSOF(order); i++) {
		a = (struct plan_anchor){ 0 };
		add(&a, order[i], &doc, 2, MO_NONE_F);
		assert_true(factor(&a, &mine, NULL) < last);
		last = factor(&a, &mine, NULL);
		plan_anchor_done(&a);
	}
	near(last, 1);
	last = 2;
	for (int64_t tp = 1; tp <= 4; tp *= 2) {
		a = (struct plan_anchor){ 0 };
		doc.plans[0].parallelism.tp = tp;
		doc.plans[0].parallelism.dp = 8 / tp;
		add(&a, &mine, &doc, 2, MO_NONE_F);
		assert_true(factor(&a, &mine, NULL) < last);
		last = factor(&a, &mine, NULL);
		plan_anchor_done(&a);
	}
	assert_true(last > 1.05); /* of the stack itself something remains */
	a = (struct plan_anchor){ 0 };
	add(&a, &mine, &doc, 0.5, MO_NONE_F); /* tp 4 */
	doc.plans[0].parallelism.tp = 1;
	doc.plans[0].parallelism.dp = 8;
	add(&a, &mine, &doc, 2, MO_NONE_F);
	assert_true(factor(&a, &mine, NULL) > 1.5);
	plan_anchor_done(&a);
	mo_desc_done(&plan_doc_desc, &doc);
}

/* Stages move with the whole; a run that is far off its plan ran something else; plans that no
 * longer fit go behind those that do. */
static void what_follows_from_a_run(void **state)
{
	struct recipe_model model = { .name = (char *)"m" };
	const struct recipe mine = recipe_of(&model, "megatron-lm", "bf16");
	static const double off[] = { 4.1, 0.24, 1e300, 1e-300 };
	struct plan_anchor a = { 0 };
	struct plan_doc doc;

	plan_of(&doc);
	for (size_t i = 0; i < ELEMENTSOF(off); i++)
		add(&a, &mine, &doc, off[i], off[i]);
	assert_int_equal(a.n_far, ELEMENTSOF(off));
	assert_false(plan_anchor_apply(&a, &mine, "mi300x", &doc));
	struct plan_stage *stage = MO_ADD(&doc.plans[0], memory_stages, &plan_stage_desc);
	*stage = (struct plan_stage){ .total = 100,
				      .params = 40,
				      .grads = 20,
				      .optimizer = 20,
				      .activations = 15,
				      .reserve = 5 };
	doc.plans[0].memory_gb.capacity = 120;
	add(&a, &mine, &doc, 1, 1.5);
	MO_ADD(&doc, plans, &plan_desc);
	doc.plans[1].fits = true;
	doc.plans[1].parallelism.tp = 2;
	doc.plans[1].memory_gb = (struct plan_memory){ .total = 50, .params = 50, .capacity = 120 };
	assert_true(plan_anchor_apply(&a, &mine, "mi300x", &doc));
	assert_true(doc.plans[0].fits && doc.plans[0].parallelism.tp == 2);
	assert_true(!doc.plans[1].fits && doc.plans[1].memory_gb.total > 140);
	near(doc.plans[1].memory_stages[0].total, doc.plans[1].memory_gb.total);
	near(doc.plans[1].memory_stages[0].activations, doc.plans[1].memory_gb.activations);
	plan_anchor_done(&a);
	mo_desc_done(&plan_doc_desc, &doc);
}

static void strangers_change_nothing(void **state)
{
	struct recipe_model model = { .name = (char *)"m" };
	const struct recipe mine = { .model = &model, .precision = (char *)"bf16" };
	struct plan_anchor a = { 0 };
	struct plan_doc doc, before;
	plan_of(&doc);
	plan_of(&before);
	assert_false(plan_anchor_apply(&a, &mine, "mi300x", &doc));
	plan_anchor_add(&a, &mine, &doc, 9, 9);
	plan_anchor_add(&a, &mine, &doc, 0, -1);
	assert_false(plan_anchor_apply(&a, &mine, "mi355x", &doc));
	assert_true(mo_desc_equal(&plan_doc_desc, &doc, &before));
	mo_desc_done(&plan_doc_desc, &doc);
	mo_desc_done(&plan_doc_desc, &before);
	plan_anchor_done(&a);
}

/* Models that the catalogue does not name are told apart by all their sizes. */
static void inline_models_are_stacks_of_their_own(void **state)
{
	struct recipe_moe moe = { .experts = 64, .topk = 6, .ffn = 1408, .every = 1 }, wider = moe;
	struct recipe_model mine = { .layers = 27,
				     .hidden = 2048,
				     .heads = 16,
				     .vocab = 102400,
				     .moe = &moe },
			    others[5];
	const struct recipe r = { .model = &mine,
				  .precision = (char *)"bf16",
				  .engine.kind = (char *)"megatron-lm" };
	struct plan_doc doc;
	double factors[ELEMENTSOF(others)];

	plan_of(&doc);
	wider.ffn = 1536;
	for (size_t i = 0; i < ELEMENTSOF(others); i++)
		others[i] = mine;
	others[1].layers = 28;
	others[2].moe = &wider;
	others[3].kv_heads = 4;
	others[4].moe = NULL;
	for (size_t i = 0; i < ELEMENTSOF(others); i++) {
		struct recipe run = r;
		struct plan_anchor a = { 0 };
		struct plan p;

		run.model = &others[i];
		add(&a, &run, &doc, 1.5, MO_NONE_F);
		factors[i] = factor(&a, &r, &p);
		plan_anchor_done(&a);
	}
	for (size_t i = 1; i < ELEMENTSOF(others); i++)
		if (factors[i] >= factors[0] - 0.1)
			fail_msg("model %zu counts as the same: %g, its own run %g", i, factors[i],
				 factors[0]);
	mo_desc_done(&plan_doc_desc, &doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_run), cmocka_unit_test(closer_runs_count_more),
		cmocka_unit_test(what_follows_from_a_run),
		cmocka_unit_test(strangers_change_nothing),
		cmocka_unit_test(inline_models_are_stacks_of_their_own)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
