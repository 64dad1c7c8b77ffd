/* Searches at their edges: one GPU, thousands of layers, plans that stand behind slower ones. */
#include <string.h>
#include "tests/unit/unit.h"

#include "lib/base/parse.h"
#include "lib/plan/plan.h"
#include "lib/plan/plan_desc.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/recipe_file.h"

static void plan(const char *rest, const struct plan_options *o, struct plan_doc *ret)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("recipe: 1\nname: edge\nengine: {kind: command, argv: [/bin/true]}\n%s",
			  rest);
	struct recipe_errors errors = { 0 };
	struct mo_error err = { 0 };
	struct gpu_type gpu;
	struct recipe r;

	mo_desc_init(&recipe_desc, &r);
	mo_desc_init(&gpu_type_desc, &gpu);
	mo_desc_init(&plan_doc_desc, ret);
	if (recipe_parse(text, strlen(text), NULL, 0, &r, NULL, NULL, NULL, &errors) < 0)
		fail_msg("%s", errors.items[0].text);
	assert_int_equal(gpu_type_load(r.gpu, &gpu, &err), 0);
	if (plan_make(&r, &gpu, o, ret, &err) < 0)
		fail_msg("%s", err.text);
	mo_desc_done(&gpu_type_desc, &gpu);
	mo_desc_done(&recipe_desc, &r);
}

static bool noted(const struct plan *p, const char *text)
{
	for (size_t i = 0; i < p->n_notes; i++)
		if (strstr(p->notes[i], text))
			return true;
	return false;
}

/* A faster plan behind a slower one is said, and only a plan that leaves the node stands there. */
static void test_order_is_reported(void **state)
{
	static const char *const gpus[] = { "mi300x", "mi355x, nic_gbps: 800",
					    "mi355x, nic_gbps: 3200" };
	struct plan_options o = { .top = 40 };
	bool any = false;

	for (size_t i = 0; i < ELEMENTSOF(gpus); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("model: moe-2t\ncluster: {gpus: 768, gpu: %s}\nparallelism: "
				  "auto\nbatch: {seq: 4096, global: 1536}\n",
				  gpus[i]);
		struct plan_doc s;
		bool behind = false;

		plan(text, &o, &s);
		for (size_t k = 1; k < s.n_plans; k++)
			if (s.plans[k].fits &&
			    s.plans[k].step_time_s.total < s.plans[k - 1].step_time_s.total) {
				assert_true(s.plans[k].parallelism.ep * s.plans[k].parallelism.etp >
					    8);
				behind = true;
			}
		assert_int_equal(noted(&s.plans[0], "less than a tenth slower"), behind);
		any |= behind;
		mo_desc_done(&plan_doc_desc, &s);
	}
	assert_true(any);
}

/* Micro-batches are bounded by the batch, not by the GPUs: one GPU has neighbours too, and they
 * come to an end. */
static void test_one_gpu(void **state)
{
	static const int64_t batches[] = { 1, 2, 3, 64 };
	struct plan_options o = { .top = 5 };

	for (size_t i = 0; i < ELEMENTSOF(batches); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("model: llama3-8b\ncluster: {gpus: 1, gpu: mi355x}\nparallelism: "
				  "auto\nbatch: {seq: 4096, global: %lld}\n",
				  (long long)batches[i]);
		struct plan_doc s;

		plan(text, &o, &s);
		const struct plan *p = &s.plans[0];
		bool larger = false;

		assert_true(p->parallelism.dp == 1 && batches[i] % p->batch.micro == 0);
		for (size_t k = 0; k < p->n_notes; k++) {
			int64_t micro;
			_cleanup_(mo_freep) char *number =
				mo_starts_with(p->notes[k], "micro ")
					? mo_strndup(p->notes[k] + 6, strcspn(p->notes[k] + 6, " "))
					: NULL;

			if (!number)
				continue;
			assert_true(mo_parse_i64(number, 1, batches[i], &micro) == 0 &&
				    batches[i] % micro == 0);
			larger |= micro > p->batch.micro;
		}
		assert_true(larger == (p->batch.micro < batches[i]));
		mo_desc_done(&plan_doc_desc, &s);
	}
}

/* A plan that is given is shown with its neighbours too, micro-batch and recomputation of the
 * recipe among them; figures alone have none, nor have the rows of a scaling. */
static void test_given_sizes_have_neighbours(void **state)
{
	static const char recipe[] =
		"model: moe-2t\ncluster: {gpus: 768, gpu: mi355x}\nparallelism: {pp: 24, vpp: 4, "
		"ep: 8, cp: 2, schedule: interleaved}\nbatch: {seq: 4096, micro: 1, global: "
		"1536}\nrecompute: full\n";
	static const char *const changes[] = {
		"ep 16 instead of 8", "cp 1 instead of 2",    "pp 12 instead of 24",
		"vpp 2 instead of 4", "micro 2 instead of 1", "recompute none instead of full"
	};
	struct plan_options all = { .top = 1 }, figures = { .top = 1, .figures = true };
	struct plan_doc doc;

	plan(recipe, &all, &doc);
	for (size_t i = 0; i < ELEMENTSOF(changes); i++)
		if (!noted(&doc.plans[0], changes[i]))
			fail_msg("no note on %s", changes[i]);
	mo_desc_done(&plan_doc_desc, &doc);
	plan(recipe, &figures, &doc);
	assert_false(noted(&doc.plans[0], " instead of "));
	mo_desc_done(&plan_doc_desc, &doc);
}

/* As many layers as a recipe may have: nothing walks them for each of the shardings. */
static void test_ten_thousand_layers(void **state)
{
	struct plan_options o = { .top = 3 };
	struct plan_doc doc;

	plan("model: {layers: 10000, hidden: 1024, heads: 16, kv_heads: 16, head_dim: 64, ffn: "
	     "4096, vocab: 1000, gated: true, moe: {experts: 64, topk: 8, ffn: 512, dense_layers: "
	     "1}}\n"
	     "cluster: {gpus: 64, gpu: mi355x}\nparallelism: auto\nbatch: {seq: 4096, global: "
	     "64}\n",
	     &o, &doc);
	assert_true(doc.plans[0].step_time_s.total > 0 && noted(&doc.plans[0], "a replica is"));
	mo_desc_done(&plan_doc_desc, &doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_order_is_reported),
					    cmocka_unit_test(test_one_gpu),
					    cmocka_unit_test(test_ten_thousand_layers),
					    cmocka_unit_test(test_given_sizes_have_neighbours) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
