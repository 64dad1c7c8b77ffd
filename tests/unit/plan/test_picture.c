/* The schedule that a plan's picture shows: its pieces take what the layers of each chunk take, and
 * it lasts as long as the plan's step without gradients and optimizer, for every schedule; the
 * stages' parameters are the model's. */
#include <math.h>
#include <string.h>
#include "lib/plan/plan_desc.h"
#include "tests/unit/unit.h"

#include "lib/plan/schedule.h"
#include "lib/plan/schedule_plan.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/recipe_file.h"

struct shown {
	struct plan_doc doc;
	struct sched s;
};

static void shown_done(struct shown *p)
{
	sched_done(&p->s);
	mo_desc_done(&plan_doc_desc, &p->doc);
}

static void show(const char *rest, struct shown *ret)
{
	_cleanup_(mo_freep) char *text = mo_printf("recipe: 1\nname: shown\n%s", rest);
	const struct plan_options none = { 0 };
	struct recipe_errors errors = { 0 };
	struct mo_error err = { 0 };
	struct gpu_type gpu;
	struct recipe r;

	mo_desc_init(&recipe_desc, &r);
	mo_desc_init(&gpu_type_desc, &gpu);
	mo_desc_init(&plan_doc_desc, &ret->doc);
	ret->s = (struct sched){ 0 };
	if (recipe_parse(text, strlen(text), NULL, 0, &r, NULL, NULL, NULL, &errors) < 0)
		fail_msg("%s", errors.items[0].text);
	assert_int_equal(gpu_type_load(r.gpu, &gpu, &err), 0);
	if (plan_make(&r, &gpu, &none, &ret->doc, &err) < 0)
		fail_msg("%s", err.text);
	const struct plan *p = &ret->doc.plans[0];

	if (plan_schedule(&r, &gpu, p, NULL, p->batch.global / (p->parallelism.dp * p->batch.micro),
			  &ret->s, &err) < 0)
		fail_msg("%s", err.text);
	mo_desc_done(&gpu_type_desc, &gpu);
	mo_desc_done(&recipe_desc, &r);
}

static double forward_of(const struct sched *s, int64_t rank, int32_t chunk)
{
	for (size_t i = 0; i < s->ranks[rank].n; i++)
		if (s->ranks[rank].nodes[i].op == SCHED_F && s->ranks[rank].nodes[i].chunk == chunk)
			return s->ranks[rank].nodes[i].end - s->ranks[rank].nodes[i].start;
	fail_msg("no forward of chunk %d", chunk);
	return 0;
}

#define OWN "engine: {kind: command, argv: [/bin/true]}\n"
#define MODEL \
	"{layers: 24, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, ffn: 14336, vocab: " \
	"1000, gated: true}"

static void test_chunks_take_what_their_layers_take(void **state)
{
	struct shown p;

	show("engine: {kind: megatron-lm, entry: a.py, workdir: /w}\nsteps: 10\nmodel: " MODEL
	     "\ncluster: {gpus: 2, gpu: mi355x}\nparallelism: {pp: 2, vpp: 2}\nbatch: {seq: 4096, "
	     "micro: 1, global: 8}\nfeatures: {pipeline_layout: 'Et*3|t*9|t*6|t*6,L'}\n",
	     &p);
	double three = forward_of(&p.s, 0, 0), nine = forward_of(&p.s, 1, 0),
	       six = forward_of(&p.s, 0, 1);

	assert_true(fabs(nine / three - 3) < 0.1 && fabs(six / three - 2) < 0.1);
	shown_done(&p);
}

/* The output layer of a large vocabulary is on the chunk that ends the pipeline, wherever that
 * lies. */
static void test_output_layer_is_in_the_last_chunk(void **state)
{
	static const struct {
		const char *parallelism;
		int64_t rank;
	} rows[] = { { "{pp: 2, vpp: 2}", 1 }, { "{pp: 2, schedule: zbv}", 0 } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf(OWN "model: {layers: 24, hidden: 4096, heads: 32, kv_heads: 8, "
				      "head_dim: 128, ffn: 14336, vocab: 200000, gated: "
				      "true}\ncluster: {gpus: 2, gpu: mi355x}\n"
				      "parallelism: %s\nbatch: {seq: 4096, micro: 1, global: 8}\n",
				  rows[i].parallelism);
		struct shown p;

		show(text, &p);
		double last = forward_of(&p.s, rows[i].rank, 1),
		       other = forward_of(&p.s, 1 - rows[i].rank, 1),
		       first = forward_of(&p.s, rows[i].rank, 0);

		assert_true(last > 1.3 * other && last > 1.3 * first);
		shown_done(&p);
	}
}

static void test_lasts_as_long_as_the_plan(void **state)
{
	static const char *const schedules[] = { "1f1b", "interleaved", "zb1p", "zbv", "dualpipe" };

	for (size_t i = 0; i < ELEMENTSOF(schedules); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf(OWN "model: " MODEL
				      "\ncluster: {gpus: 4, gpu: mi355x}\nparallelism: {pp: 4, "
				      "schedule: %s%s}\nbatch: {seq: 4096, micro: 1, global: 32}\n",
				  schedules[i],
				  strcmp(schedules[i], "interleaved") ? "" : ", vpp: 3");
		struct shown p;

		show(text, &p);
		const struct plan_time *t = &p.doc.plans[0].step_time_s;
		double planned = t->total - t->dp - t->optimizer;

		double parameters = 0;

		for (size_t k = 0; k < p.doc.plans[0].n_memory_stages; k++)
			parameters += (double)p.doc.plans[0].memory_stages[k].parameters;
		/* but for the last norm */
		assert_true(fabs(parameters / (double)p.doc.model.total_params - 1) < 1e-4);
		if (fabs(p.s.step / planned - 1) > 0.05)
			fail_msg("%s: drawn %g s, planned %g s", schedules[i], p.s.step, planned);
		shown_done(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks_take_what_their_layers_take),
		cmocka_unit_test(test_output_layer_is_in_the_last_chunk),
		cmocka_unit_test(test_lasts_as_long_as_the_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
