/* lib/plan/anchor.h: which measured runs count, and what they change. */
#include "tests/unit/unit.h"

#include <math.h>

#include "lib/plan/anchor.h"
#include "lib/plan/constants.h"

static void plan_of(struct plan_doc *doc)
{
	mo_desc_init(&plan_doc_desc, doc);
	doc->hardware.gpu = mo_strdup("mi300x");
	struct plan *p = MO_ADD(doc, plans, &plan_desc);
	p->step_time_s = (struct plan_time){ .total = 4, .compute = 3, .a2a = 1 };
	p->memory_gb = (struct plan_memory){ .total = 100, .params = 40, .grads = 20, .optimizer = 20, .activations = 15, .reserve = 5, .capacity = 206.14 };
	p->fits = true;
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
	return (struct recipe){ .model = m, .precision = (char *)precision, .engine.kind = (char *)kind };
}

/* One run of a stack and one plan are worth the same for a dense model: stacks are as far from the plan as runs from each other. */
static void a_run_of_the_stack_counts_first(void **state)
{
	struct recipe_model model = { .name = (char *)"m" }, other = { .name = (char *)"o" };
	const struct recipe mine = recipe_of(&model, "megatron-lm", "bf16"), ported = recipe_of(&model, "torchtitan", "bf16"), foreign = recipe_of(&other, "megatron-lm", "bf16");
	const struct recipe fp8 = recipe_of(&model, "megatron-lm", "fp8");
	double n = 1, part = n * 0.01 / (n * 0.01 + 0.01);
	struct plan_anchor a = { 0 };
	struct plan_doc doc;

	plan_of(&doc);
	plan_anchor_add(&a, &foreign, &doc, 12, MO_NONE_F);
	plan_anchor_add(&a, &ported, &doc, 20, MO_NONE_F);
	plan_anchor_add(&a, &fp8, &doc, 400, MO_NONE_F);
	plan_anchor_add(&a, &mine, &doc, 8, 150);
	assert_true(plan_anchor_apply(&a, &mine, "mi300x", &doc));
	near(doc.plans[0].step_time_s.total, 4 * pow(2, part));
	near(doc.plans[0].step_time_s.compute, 3 * pow(2, part));
	near(doc.plans[0].mfu, 0.3 / pow(2, part));
	near(doc.plans[0].tokens_per_s_per_gpu, 1000 / pow(2, part));
	near(doc.plans[0].error_pct, plan_constants.error_anchored_pct);
	near(doc.plans[0].memory_gb.total, 150);
	near(doc.plans[0].memory_gb.params + doc.plans[0].memory_gb.grads + doc.plans[0].memory_gb.optimizer, 80);
	near(doc.plans[0].memory_gb.activations + doc.plans[0].memory_gb.reserve, 70);
	assert_int_equal(doc.plans[0].n_notes, 1);
	mo_desc_done(&plan_doc_desc, &doc);
	plan_of(&doc);
	plan_anchor_add(&a, &mine, &doc, 8, NAN);
	plan_anchor_add(&a, &mine, &doc, 8, NAN);
	assert_true(plan_anchor_apply(&a, &mine, "mi300x", &doc));
	near(doc.plans[0].step_time_s.total, 4 * pow(2, 0.75));        /* more runs are believed more */
	mo_desc_done(&plan_doc_desc, &doc);
	plan_anchor_done(&a);
}

static void others_count_when_there_is_none(void **state)
{
	struct recipe_moe moe = { .experts = 8 };
	struct recipe_model model = { .name = (char *)"m", .moe = &moe }, other = { .name = (char *)"o", .moe = &moe };
	const struct recipe mine = recipe_of(&model, "megatron-lm", "bf16"), foreign = recipe_of(&other, "megatron-lm", "bf16");
	struct plan_anchor a = { 0 };
	struct plan_doc doc;

	plan_of(&doc);
	plan_anchor_add(&a, &foreign, &doc, 16, 300);
	assert_true(plan_anchor_apply(&a, &mine, "mi300x", &doc));
	near(doc.plans[0].step_time_s.total, 8);         /* half of the way, in logarithms */
	assert_false(doc.plans[0].fits);
	mo_desc_done(&plan_doc_desc, &doc);
	plan_of(&doc);
	plan_anchor_add(&a, &mine, &doc, 16, MO_NONE_F);
	assert_true(plan_anchor_apply(&a, &mine, "mi300x", &doc));
	assert_true(doc.plans[0].step_time_s.total > 13 && doc.plans[0].step_time_s.total < 16);
	mo_desc_done(&plan_doc_desc, &doc);
	plan_anchor_done(&a);
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_run_of_the_stack_counts_first), cmocka_unit_test(others_count_when_there_is_none), cmocka_unit_test(strangers_change_nothing) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
