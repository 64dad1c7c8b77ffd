/* The planner: parameter counts and FLOPs against published figures, bubbles against published
 * examples, memory and the search for what must hold. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/unit.h"

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/plan.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/reliability.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/model_file.h"
#include "lib/recipe/recipe_file.h"

/* Totals and active parameters (embeddings included): computed from the published configurations;
 * they agree with the totals their authors state. */
static const struct {
	const char *name;
	double total, active;
} known[] = {
	{ "deepseek-v2-lite", 15706484224, 2661150208 },
	{ "deepseek-v2", 235741434880, 21375800320 },
	{ "deepseek-v3", 671026404352, 37552282624 },
	{ "kimi-k2", 1026408209408, 32861477888 },
	{ "mixtral-8x7b", 46702792704, 12879925248 },
	{ "mixtral-8x22b", 140620634112, 39152031744 },
	{ "llama3-8b", 8030261248, 8030261248 },
	{ "llama3-70b", 70553706496, 70553706496 },
	{ "qwen3-30b-a3b", 30532110336, 3353020416 },
	{ "qwen3-235b-a22b", 235093610496, 22190739456 },
	{ "llama4-scout", 107769861120, 17172894720 },
	{ "moe-1t", 1035566850048, 57119612928 },
	{ "moe-2t", 2050429034496, 93534560256 },
	{ "llama4-maverick", 400711848960, 17184691200 },
	{ "gpt-oss-120b", 117116400960, 6037796160 },
};

static void close_to(double value, double expected, double fraction)
{
	if (fabs(value - expected) > fraction * fabs(expected))
		fail_msg("%g is not within %g %% of %g", value, fraction * 100, expected);
}

static void test_parameters(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(known); i++) {
		struct recipe_model m;
		struct mo_error err = { 0 };

		mo_desc_init(&recipe_model_desc, &m);
		if (model_load(known[i].name, &m, &err) < 0)
			fail_msg("%s: %s", known[i].name, err.text);
		close_to(plan_params(&m).total, known[i].total, 1e-4);
		close_to(plan_params(&m).active, known[i].active, 1e-4);
		mo_desc_done(&recipe_model_desc, &m);
	}
}

/* Every model of the catalogue says how many parameters its authors publish; what we count is
 * within 1 % of it. */
static void test_published(void **state)
{
	char **names = NULL;
	size_t n = 0;

	mo_data_names("models", &names, &n);
	assert_true(n >= 24);
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *file = mo_printf("models/%s.yaml", names[i]),
					 *path = mo_data_file(file);
		_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
		struct recipe_model m;
		struct mo_error err = { 0 };
		double published;

		mo_desc_init(&recipe_model_desc, &m);
		if (model_load(names[i], &m, &err) < 0)
			fail_msg("%s: %s", names[i], err.text);
		assert_int_equal(mo_read_file(path, 1 << 20, &text), 0);
		const char *line = strstr(text.data, "\npublished_b: ");

		if (!line)
			fail_msg("%s: no published_b", names[i]);
		const char *begin = line ? line + strlen("\npublished_b: ") : "";
		_cleanup_(mo_freep) char *number = mo_strndup(begin, strcspn(begin, " \n"));

		assert_int_equal(mo_parse_double(number, &published), 0);
		if (fabs(plan_params(&m).total / 1e9 - published) > 0.01 * published)
			fail_msg("%s: %g B counted, %g B published", names[i],
				 plan_params(&m).total / 1e9, published);
		mo_desc_done(&recipe_model_desc, &m);
		free(names[i]);
	}
	free(names);
}

static void test_flops(void **state)
{
	/* Llama-3-8B at 8192: 6 (8.03e9 - 0.525e9) + 6 * 32 layers * 4096 * 32 heads * 256 =
	 * 45.03e9 + 6.44e9 */
	struct recipe_model m;
	struct mo_error err = { 0 };

	mo_desc_init(&recipe_model_desc, &m);
	assert_int_equal(model_load("llama3-8b", &m, &err), 0);
	close_to(plan_flops_per_token(&m, 8192), 51.47e9, 2e-3);
	m.window = 1024;
	close_to(plan_flops_per_token(&m, 8192), 45.03e9 + 6.44e9 * (1024 - 64) / 4096, 2e-3);
	mo_desc_done(&recipe_model_desc, &m);
}

static void test_bubble(void **state)
{
	assert_true(plan_bubble("1f1b", 1, 1, 16) == 0);
	/* AMD's example: 48.39, 23.81, 13.51 % */
	close_to(plan_bubble("1f1b", 16, 1, 16), 0.4839, 1e-3);
	close_to(plan_bubble("interleaved", 16, 3, 16), 0.2381, 1e-3);
	close_to(plan_bubble("interleaved", 16, 6, 16), 0.1351, 1e-3);
	close_to(plan_bubble("zb1p", 8, 1, 8), 7.0 / 31, 1e-6);
	close_to(plan_bubble("zbv", 8, 2, 16), 7.0 / 103, 1e-6);
	/* too few weight gradients to fill the end */
	close_to(plan_bubble("zbv", 8, 2, 8), 7.0 / 31, 1e-6);
	assert_true(plan_bubble("v-half", 8, 2, 8) < plan_bubble("v-min", 8, 2, 8));
	assert_true(plan_bubble("v-min", 8, 2, 8) < plan_bubble("1f1b", 8, 1, 8));
}

static void test_daly(void **state)
{
	/* small losses: Young's sqrt(2 C M) - C; saves longer than failures allow: M */
	close_to(plan_daly_s(10, 86400), sqrt(2 * 10 * 86400.0) - 10, 0.01);
	close_to(plan_daly_s(1000, 400), 400, 1e-9);
}

static const char head[] =
	"recipe: 1\nname: x\nengine: {kind: megatron-lm, workdir: /x}\nsteps: 10\n";

static void parse(const char *rest, struct recipe *r)
{
	_cleanup_(mo_freep) char *text = mo_printf("%s%s", head, rest);
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };

	mo_desc_init(&recipe_desc, r);
	if (recipe_parse(text, __builtin_strlen(text), NULL, 0, r, NULL, NULL, NULL, &errors) < 0)
		fail_msg("%lld:%lld: %s", (long long)errors.items[0].line,
			 (long long)errors.items[0].column, errors.items[0].text);
}

static int plan(const char *rest, const struct plan_options *o, struct plan_doc *doc,
		struct mo_error *err)
{
	struct plan_options none = { 0 };
	struct gpu_type gpu;
	struct recipe r;

	parse(rest, &r);
	mo_desc_init(&gpu_type_desc, &gpu);
	mo_desc_init(&plan_doc_desc, doc);
	assert_int_equal(gpu_type_load(r.gpu, &gpu, err), 0);
	int k = plan_make(&r, &gpu, o ? o : &none, doc, err);

	mo_desc_done(&gpu_type_desc, &gpu);
	mo_desc_done(&recipe_desc, &r);
	return k;
}

static void sums_up(const struct plan *p)
{
	const struct plan_memory *m = &p->memory_gb;
	const struct plan_time *t = &p->step_time_s;

	close_to(m->total,
		 m->params + m->grads + m->optimizer + m->activations + m->comm + m->reserve, 1e-9);
	close_to(t->total,
		 t->compute + t->a2a + t->pp + t->dp + t->cp + t->tp + t->optimizer + t->launch,
		 1e-9);
	assert_int_equal(p->fits, m->total <= m->capacity);
	assert_true(p->mfu > 0 && p->mfu < 1);
	assert_true(p->error_pct > 0 && p->error_pct < 100);
	assert_true(p->n_notes > 0);
}

static void test_explicit(void **state)
{
	struct plan_doc doc;
	struct mo_error err = { 0 };

	assert_int_equal(plan("model: deepseek-v2-lite\ncluster: {gpus: 8, gpu: "
			      "mi355x}\nparallelism: {ep: 8}\nbatch: {seq: 4096, micro: 12, "
			      "global: 768}\n",
			      NULL, &doc, &err),
			 0);
	assert_int_equal(doc.n_plans, 1);
	const struct plan *p = &doc.plans[0];

	sums_up(p);
	assert_int_equal(doc.model.total_params, 15706484224);
	assert_int_equal(p->parallelism.dp, 8);
	/* States of one rank: dense weights whole, experts an eighth; optimizer of the dense part
	 * an eighth, of the experts whole (edp 1). */
	double experts = 26.0 * 64 * 3 * 2048 * 1408, dense = 15706484224.0 - experts;

	close_to(p->memory_gb.params, 2 * (dense + experts / 8) / 1e9, 1e-6);
	close_to(p->memory_gb.grads, 4 * (dense + experts / 8) / 1e9, 1e-6);
	close_to(p->memory_gb.optimizer, 12 * (dense / 8 + experts / 8) / 1e9, 1e-6);
	close_to(p->memory_gb.capacity, 309.2, 1e-3);
	mo_desc_done(&plan_doc_desc, &doc);
}

static void test_does_not_fit(void **state)
{
	struct plan_doc doc;
	struct mo_error err = { 0 };

	assert_int_equal(plan("model: deepseek-v3\ncluster: {gpus: 8, gpu: mi300x}\nparallelism: "
			      "{ep: 8}\nbatch: {seq: 4096, micro: 1, global: 64}\n",
			      NULL, &doc, &err),
			 0);
	assert_false(doc.plans[0].fits);
	sums_up(&doc.plans[0]);
	mo_desc_done(&plan_doc_desc, &doc);
}

static void test_recompute_and_sharding_save_memory(void **state)
{
	static const char *const variants[] = { "recompute: none\nparallelism: {sharding: none}\n",
						"recompute: none\n", "recompute: full\n" };
	double last = INFINITY;

	for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("model: llama3-8b\ncluster: {gpus: 8, gpu: h200}\nbatch: {seq: "
				  "8192, micro: 1, global: 8}\n%s",
				  variants[i]);
		struct plan_doc doc;
		struct mo_error err = { 0 };

		assert_int_equal(plan(text, NULL, &doc, &err), 0);
		assert_true(doc.plans[0].memory_gb.total < last);
		last = doc.plans[0].memory_gb.total;
		mo_desc_done(&plan_doc_desc, &doc);
	}
}

static void test_search(void **state)
{
	struct plan_options o = { .top = 3 };
	struct plan_doc doc;
	struct mo_error err = { 0 };

	assert_int_equal(plan("model: mixtral-8x7b\ncluster: {gpus: 64, gpu: mi300x}\nparallelism: "
			      "auto\nbatch: {seq: 4096, global: 512}\n",
			      &o, &doc, &err),
			 0);
	assert_int_equal(doc.n_plans, 3);
	for (size_t i = 0; i < doc.n_plans; i++) {
		const struct plan_parallelism *p = &doc.plans[i].parallelism;

		sums_up(&doc.plans[i]);
		assert_true(doc.plans[i].fits);
		assert_int_equal(p->tp * p->pp * p->cp * p->dp, 64);
		assert_int_equal(512 % (p->dp * doc.plans[i].batch.micro), 0);
		assert_int_equal(8 % p->ep, 0);
		assert_true(i == 0 ||
			    doc.plans[i - 1].step_time_s.total <= doc.plans[i].step_time_s.total);
	}
	mo_desc_done(&plan_doc_desc, &doc);
}

/* A schedule that the engine's own flags name is the one that is planned, as if the recipe had
 * it. */
static void test_schedule_by_flags(void **state)
{
	static const char *const engines[][2] = {
		{ "{kind: primus-megatron, workdir: /x, entry: x, args: {patch_primus_pipeline: "
		  "true, pp_algorithm: zbv-formatted}}",
		  "zbv" },
		{ "{kind: primus-megatron, workdir: /x, entry: x, args: {patch_primus_pipeline: "
		  "false, pp_algorithm: zbv-formatted}}",
		  "interleaved" },
		{ "{kind: primus-megatron, workdir: /x, entry: x}", "interleaved" },
		{ "{kind: torch, entry: x, args: [--parallelism.pipeline_parallel_schedule, "
		  "ZBVZeroBubble]}",
		  "zbv" },
	};

	for (size_t i = 0; i < ELEMENTSOF(engines); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: x\nengine: %s\nsteps: 10\nmodel: "
				  "mixtral-8x7b\ncluster: {gpus: 32, gpu: mi300x}\nparallelism: "
				  "{tp: 1, pp: 4, vpp: 2, ep: 8, etp: 1, cp: 1}\n"
				  "batch: {seq: 4096, micro: 1, global: 128}\n",
				  engines[i][0]);
		_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
		const struct plan_options o = { .figures = true };
		struct recipe r;
		struct gpu_type gpu;
		struct plan_doc doc;

		mo_desc_init(&recipe_desc, &r);
		mo_desc_init(&gpu_type_desc, &gpu);
		mo_desc_init(&plan_doc_desc, &doc);
		if (recipe_parse(text, strlen(text), NULL, 0, &r, NULL, NULL, NULL, &errors) < 0)
			fail_msg("row %zu: %s", i, errors.items[0].text);
		assert_int_equal(gpu_type_load(r.gpu, &gpu, NULL), 0);
		assert_int_equal(plan_make(&r, &gpu, &o, &doc, NULL), 0);
		assert_string_equal(doc.plans[0].schedule, engines[i][1]);
		mo_desc_done(&plan_doc_desc, &doc);
		mo_desc_done(&gpu_type_desc, &gpu);
		mo_desc_done(&recipe_desc, &r);
	}
}

static void test_search_finds_nothing(void **state)
{
	struct plan_doc doc;
	struct mo_error err = { 0 };

	assert_int_equal(plan("model: mixtral-8x7b\ncluster: {gpus: 37, gpu: mi300x}\nparallelism: "
			      "auto\nbatch: {seq: 4096, global: 5}\n",
			      NULL, &doc, &err),
			 -22);
	assert_non_null(strstr(err.text,
			       "cluster.gpus 37 divides the model's 32 layers and 32 heads and "
			       "batch.global 5: use cluster.gpus 5, or batch.global 37"));
	mo_error_done(&err);
	mo_desc_done(&plan_doc_desc, &doc);
}

/* What is named instead is possible. */
static void test_instead_of_nothing(void **state)
{
	static const struct {
		int gpus, batch, micro;
	} rows[] = { { 127, 512, 1 },   { 12, 100, 1 }, { 24, 1000, 4 },
		     { 1000, 4096, 2 }, { 61, 60, 1 },  { 131071, 16384, 1 } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		static const char format[] =
			"model: mixtral-8x7b\ncluster: {gpus: %d, gpu: mi300x}\nparallelism: "
			"auto\nbatch: {seq: 4096, micro: %d, global: %d}\n";
		_cleanup_(mo_freep) char *text =
			mo_printf(format, rows[i].gpus, rows[i].micro, rows[i].batch);
		struct plan_doc doc;
		struct mo_error err = { 0 };

		if (plan(text, NULL, &doc, &err) == 0) {
			mo_desc_done(&plan_doc_desc, &doc);
			continue;
		}
		mo_desc_done(&plan_doc_desc, &doc);
		char *at = strstr(err.text, "use cluster.gpus ");
		int said[4], n = sscanf(at, "use cluster.gpus %d or %d, or batch.global %d or %d",
					&said[0], &said[1], &said[2], &said[3]);

		n = n == 1 ? sscanf(at, "use cluster.gpus %d, or batch.global %d or %d", &said[0],
				    &said[2], &said[3])
			   : n;
		assert_true(n >= 2);
		_cleanup_(mo_freep) char *gpus = mo_printf(format, said[0], rows[i].micro,
							   rows[i].batch),
					 *batch = mo_printf(format, rows[i].gpus, rows[i].micro,
							    said[2]);

		for (int k = 0; k < 2; k++) {
			if (plan(k ? batch : gpus, NULL, &doc, NULL) != 0)
				fail_msg("row %zu: %s is not possible", i, k ? batch : gpus);
			mo_desc_done(&plan_doc_desc, &doc);
		}
		mo_error_done(&err);
	}
}

static void test_apply(void **state)
{
	struct plan_options o = { 0 };
	struct gpu_type gpu;
	struct plan_doc doc;
	struct recipe r;
	struct mo_error err = { 0 };

	parse("model: mixtral-8x7b\ncluster: {gpus: 16, gpu: mi300x}\nparallelism: auto\nbatch: "
	      "{seq: 4096, global: 256}\ncheckpoint: {dir: /c, every: auto}\n",
	      &r);
	mo_desc_init(&gpu_type_desc, &gpu);
	mo_desc_init(&plan_doc_desc, &doc);
	assert_int_equal(gpu_type_load("mi300x", &gpu, &err), 0);
	assert_int_equal(plan_make(&r, &gpu, &o, &doc, &err), 0);
	plan_apply(&doc, &r);
	assert_int_equal(r.parallelism.tp * r.parallelism.pp * r.parallelism.cp * r.parallelism.dp,
			 16);
	assert_int_equal(r.parallelism.ep, doc.plans[0].parallelism.ep);
	assert_true(r.micro >= 1 && r.checkpoint.every >= 1);
	mo_desc_done(&plan_doc_desc, &doc);
	mo_desc_done(&gpu_type_desc, &gpu);
	mo_desc_done(&recipe_desc, &r);
}

static void test_scaling_and_reliability(void **state)
{
	static const int64_t sizes[] = { 8, 16, 24, 64 };
	struct plan_options o = { .scale = sizes, .n_scale = ELEMENTSOF(sizes) };
	struct plan_doc doc;
	struct mo_error err = { 0 };

	assert_int_equal(plan("model: mixtral-8x7b\ncluster: {gpus: 8, gpu: mi300x}\nparallelism: "
			      "{ep: 8}\nbatch: {seq: 4096, micro: 1, global: 256}\n",
			      &o, &doc, &err),
			 0);
	assert_int_equal(doc.n_scaling, 4);
	assert_true(doc.scaling[0].efficiency == 1);
	assert_true(doc.scaling[1].efficiency <= 1 &&
		    doc.scaling[1].step_time_s < doc.scaling[0].step_time_s);
	/* 256 sequences do not divide by 24 */
	assert_true(doc.scaling[2].efficiency == MO_NONE_F);
	assert_non_null(doc.scaling[2].note);
	assert_true(doc.reliability.ettr > 0.9 && doc.reliability.ettr < 1);
	close_to(doc.reliability.failures_per_day, 6.5e-3, 1e-9);
	mo_desc_done(&plan_doc_desc, &doc);
}

/* What a recipe's own rules cannot see: sizes given from outside, and schedules that need a number
 * of micro-batches. The field, the rule and what would do. */
static void test_impossible(void **state)
{
	static const struct {
		const char *text;
		int64_t gpus;
		const char *said;
	} cases[] = {
		{ "parallelism: {pp: 4, ep: 2}\nbatch: {seq: 4096, micro: 1, global: 768}\n", 10,
		  "cluster.gpus: 10 do not divide by tp x pp x cp = 4: use 8 or 12" },
		{ "parallelism: {pp: 2, ep: 4}\nbatch: {seq: 4096, micro: 1, global: 768}\n", 4,
		  "parallelism.ep: the 2 GPUs of a stage do not divide by ep x etp = 4: use "
		  "another ep, or cluster.gpus 8" },
		{ "parallelism: {ep: 8}\nbatch: {seq: 4096, micro: 4, global: 768}\n", 40,
		  "batch.global: 768 does not divide by batch.micro 4 x dp 40: use 640 or 800" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("model: mixtral-8x7b\n%s%s", "cluster: {gpus: 8, gpu: mi355x}\n",
				  cases[i].text);
		const struct plan_options o = { .gpus = cases[i].gpus };
		struct plan_doc doc;
		struct mo_error err = { 0 };

		if (plan(text, &o, &doc, &err) != -EINVAL || !strstr(err.text, cases[i].said))
			fail_msg("%s: %s", cases[i].text, err.text ? err.text : "planned");
		mo_error_done(&err);
	}
}

/* An engine that takes only the sequences of a micro-batch does one per step; a pipeline says
 * nothing of how many. */
static void test_without_global_batch(void **state)
{
	struct plan_options o = { 0 };
	struct plan_doc doc;
	struct mo_error err = { 0 };

	assert_int_equal(plan("model: mixtral-8x7b\ncluster: {gpus: 16, gpu: mi355x}\nparallelism: "
			      "{ep: 8, tp: 2}\nbatch: {seq: 4096, micro: 3}\n",
			      &o, &doc, &err),
			 0);
	assert_int_equal(doc.plans[0].batch.global, 24);
	mo_desc_done(&plan_doc_desc, &doc);
	assert_int_equal(plan("model: mixtral-8x7b\ncluster: {gpus: 16, gpu: mi355x}\nparallelism: "
			      "{ep: 8, pp: 2}\nbatch: {seq: 4096, micro: 3}\n",
			      &o, &doc, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "no batch.global"));
	mo_error_done(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_flops),
		cmocka_unit_test(test_bubble),
		cmocka_unit_test(test_daly),
		cmocka_unit_test(test_explicit),
		cmocka_unit_test(test_impossible),
		cmocka_unit_test(test_without_global_batch),
		cmocka_unit_test(test_does_not_fit),
		cmocka_unit_test(test_recompute_and_sharding_save_memory),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_search_finds_nothing),
		cmocka_unit_test(test_schedule_by_flags),
		cmocka_unit_test(test_instead_of_nothing),
		cmocka_unit_test(test_apply),
		cmocka_unit_test(test_scaling_and_reliability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
