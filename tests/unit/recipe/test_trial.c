/* Sizes that a planner chose against a recipe's own checks: what is refused and why, and that the
 * answer is the one that a person gets who writes them, also when answers are shared by class. */
#include <errno.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/trial.h"
#include "tests/unit/recipe/read.h"

#define MODEL \
	"model: mixtral-8x7b\ncluster: {gpus: 64, gpu: mi300x}\nparallelism: auto\nbatch: {seq: " \
	"4096, global: 512}\nsteps: 100\n"
#define MEGATRON(args, more) \
	"recipe: 1\nname: t\nengine: {kind: megatron-lm, workdir: /x, args: {mock-data: true" args \
	"}}\n" MODEL more
#define PRIMUS(args, more) \
	"recipe: 1\nname: t\nengine: {kind: primus-megatron, workdir: /x, entry: x.yaml, args: " \
	"{mock_data: true" args "}}\n" MODEL more

static const char *const recipes[] = {
	MEGATRON("", ""),
	MEGATRON(", tensor-model-parallel-size: 8", ""),
	MEGATRON(", micro-batch-size: 2, num-virtual-stages-per-pipeline-rank: 4", ""),
	MEGATRON("", "features: {overlap_a2a: true, a2a: deepep}\n"),
	PRIMUS(", use_distributed_optimizer: false", ""),
	PRIMUS("", "features: {overlap_a2a: true, a2a: deepep, sync_free: 1}\n"),
	"recipe: 1\nname: t\nengine: {kind: torchtitan, workdir: /x, args: {module: llama3, "
	"config: llama3_8b, training.num_tokens_per_microbatch_per_dp_rank: 8192}}\n" MODEL,
	"recipe: 1\nname: t\nengine: {kind: torch, workdir: /x, entry: train.py}\n" MODEL,
};

static struct recipe_trial *trial_of(const char *text, struct parsed *p)
{
	*p = parse(text, NULL);
	if (p->result < 0) {
		_cleanup_(mo_freep) char *errors = errors_text(&p->errors);

		fail_msg("%s%s", text, errors);
	}
	return recipe_trial_new(text, strlen(text), NULL, 0, &p->recipe);
}

static const struct recipe_sizes plain = { 1, 1, 1, 8, 1, 1, 2, "zero1", "1f1b", NULL };

static void test_why(void **state)
{
	struct recipe_sizes tp8 = plain, vpp4 = plain, alone = plain, pipeline = plain,
			    full = plain, wide = plain;
	const char *why;

	tp8.tp = 8;
	vpp4.pp = 2;
	vpp4.vpp = 4;
	alone.ep = 1;
	pipeline.pp = 2;
	full.recompute = "full";
	wide.etp = 2;
	const struct {
		const char *recipe;
		const struct recipe_sizes *sizes;
		const char *why;
	} rows[] = {
		{ recipes[0], &plain, NULL },
		{ recipes[0], &tp8, NULL },
		{ recipes[1], &plain,
		  "engine.args: tensor-model-parallel-size 8 contradicts parallelism.tp 1" },
		{ recipes[1], &tp8, NULL },
		{ recipes[2], &plain,
		  "engine.args: num-virtual-stages-per-pipeline-rank 4 contradicts parallelism.vpp "
		  "1" },
		{ recipes[2], &vpp4, NULL },
		{ recipes[3], &plain, NULL },
		{ recipes[3], &alone, "without expert parallelism" },
		{ recipes[3], &pipeline, "only the interleaved schedule" },
		{ recipes[3], &full, "recompute full" },
		{ recipes[4], &plain,
		  "engine.args: use_distributed_optimizer false contradicts parallelism.sharding "
		  "zero1" },
		{ recipes[6], &vpp4, "parallelism.vpp: engine torchtitan has no setting for 4" },
		{ recipes[6], &wide, "parallelism.etp: engine torchtitan has no setting for 2" },
		{ recipes[7], &vpp4, NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(parsed_done) struct parsed p = { 0 };
		struct recipe_trial *t = trial_of(rows[i].recipe, &p);

		why = recipe_trial_refuses(t, rows[i].sizes);
		if (!why != !rows[i].why || (why && !strstr(why, rows[i].why)))
			fail_msg("row %zu: %s, expected %s", i, why ? why : "passes",
				 rows[i].why ? rows[i].why : "passes");
		recipe_trial_free(t);
	}
}

static uint64_t seed = 7;

static size_t any(size_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(seed >> 33) % n;
}

/* Sizes that divide this model, its batch and 64 GPUs, as a planner gives them. */
static struct recipe_sizes some(void)
{
	static const int64_t twos[] = { 1, 2, 4, 8 };
	static const char *const levels[] = { "none", "selective", "full" }, *const shardings[] = {
		"zero1", "zero1", "zero3"
	};
	struct recipe_sizes s = { .sharding = shardings[any(3)], .recompute = levels[any(3)] };

	s.tp = twos[any(4)];
	s.pp = twos[any(3)];
	s.vpp = s.pp > 1 ? twos[any(4)] : 1;
	s.cp = twos[any(2)];
	int64_t stage = 64 / s.pp;

	s.ep = twos[any(4)];
	s.etp = s.ep < 8 && stage / s.ep >= 2 ? twos[any(2)] : 1;
	s.micro = twos[any(3)];
	s.schedule = s.vpp > 1 ? "interleaved" : "1f1b";
	return s;
}

/* A person who writes the sizes gets the same verdict, whether they were the first of their class
 * that was asked for or not. */
static void test_as_written(void **state)
{
	int verdicts[2] = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(recipes); i++) {
		_cleanup_(parsed_done) struct parsed p = { 0 };
		struct recipe_trial *t = trial_of(recipes[i], &p);

		for (int n = 0; n < 60; n++) {
			struct recipe_sizes s = some();

			/* left out, it is the experiment's */
			if (strstr(recipes[i], "primus-"))
				s.sharding = "zero1";
			bool sharding = i < 7 && (mo_streq(s.sharding, "zero1") || i == 6);
			_cleanup_(mo_freep) char *sets =
				mo_printf("parallelism={tp: %d, pp: %d, vpp: %d, ep: %d, etp: %d, "
					  "cp: %d, schedule: %s%s%s}\nbatch.micro=%d\nrecompute=%s",
					  (int)s.tp, (int)s.pp, (int)s.vpp, (int)s.ep, (int)s.etp,
					  (int)s.cp, s.schedule, sharding ? ", sharding: " : "",
					  sharding ? s.sharding : "", (int)s.micro, s.recompute);

			/* what a recipe without has */
			if (!sharding)
				s.sharding = "zero1";
			_cleanup_(parsed_done) struct parsed written = parse(recipes[i], sets);
			_cleanup_(mo_freep) char *errors = errors_text(&written.errors);
			const char *why = recipe_trial_refuses(t, &s);

			if (!why != (written.result >= 0))
				fail_msg("recipe %zu, %s: %s; written: %s", i, sets,
					 why ? why : "passes", errors);
			verdicts[!why]++;
		}
		recipe_trial_free(t);
	}
	assert_true(verdicts[0] > 50 && verdicts[1] > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_why),
					    cmocka_unit_test(test_as_written) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
