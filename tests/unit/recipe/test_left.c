/* What a recipe leaves to its engine's experiment: the command does not say it, rules judge it
 * where it was read, and nothing is judged where it was not. */
#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/argv.h"
#include "tests/unit/recipe/read.h"

#define HEAD \
	"recipe: 1\nname: t\nengine: {kind: primus-megatron, entry: e.yaml, workdir: /w}\n" \
	"cluster: {gpus: 16}\nsteps: 9\n"
#define SAVES "checkpoint: {dir: /c}\n"
#define SAID(tp, pp) \
	"experiment: {files: 'crc32c:1', values: {parallelism.tp: " tp ", parallelism.pp: " pp \
	", parallelism.ep: 8, parallelism.etp: 1, " \
	"parallelism.cp: 1, batch.seq: 4096, precision: bf16}, said: {parallelism.pp: 'e.yaml:7: " \
	"pipeline_model_parallel_size'}}\n"

static char *command(const struct parsed *p)
{
	char **words = NULL;
	size_t n = 0;
	struct mo_buf b = { 0 };

	engine_argv(&p->engine, &p->recipe, &words, &n);
	for (size_t i = 0; i < n; i++) {
		mo_buf_printf(&b, "%s ", words[i]);
		free(words[i]);
	}
	free(words);
	return mo_buf_take(&b);
}

static void expect(const char *text, const char *in_errors, const char *in_command,
		   const char *not_in_command)
{
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	_cleanup_(mo_freep) char *errors = errors_text(&p.errors);
	_cleanup_(mo_freep) char *words = p.errors.n ? mo_strdup("") : command(&p);

	if (!strstr(errors, in_errors) || (!*in_errors && p.errors.n))
		fail_msg("%s\nerrors: %s", text, errors);
	if (!strstr(words, in_command) || (not_in_command && strstr(words, not_in_command)))
		fail_msg("%s\ncommand: %s", text, words);
}

static void test_command(void **state)
{
	static const char *const sizes[] = { "tensor_model_parallel",
					     "pipeline_model_parallel",
					     "expert_model_parallel",
					     "expert_tensor",
					     "context_parallel",
					     "use_distributed_optimizer",
					     "seq_length",
					     "micro_batch_size",
					     "--bf16",
					     "recompute",
					     "sequence_parallel" };

	/* Nothing of it was given: nothing of it is said, whether the file was read or not. */
	for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
		expect(HEAD, "", "--train_iters 9", sizes[i]);
		expect(HEAD SAID("2", "2"), "", "--train_iters 9", sizes[i]);
		expect(HEAD "parallelism: {}\n", "", "--train_iters 9", sizes[i]);
	}
	/* What is given is said, and nothing else. */
	expect(HEAD "parallelism: {ep: 4}\n" SAID("1", "2"), "",
	       "--expert_model_parallel_size 4 --train_iters 9", "tensor_model");
	expect(HEAD "batch: {global_tokens: 65536, seq: 4096}\n" SAID("1", "1"), "",
	       "--seq_length 4096 --max_position_embeddings 4096 --global_batch_size 16", NULL);
	/* Other engines have no such file: their sizes are said. */
	expect("recipe: 1\nname: t\nengine: {kind: megatron-lm, workdir: /w}\ncluster: {gpus: 16}\n"
	       "steps: 9\n",
	       "", "--tensor-model-parallel-size 1", NULL);
}

static void test_values(void **state)
{
	_cleanup_(parsed_done) struct parsed p = parse(HEAD SAVES SAID("2", "2"), NULL);

	assert_int_equal(p.errors.n, 0);
	assert_int_equal(p.n_warnings, 0);
	assert_int_equal(p.recipe.parallelism.tp, 2);
	assert_int_equal(p.recipe.parallelism.dp, 4);
	assert_int_equal(p.recipe.seq, 4096);
	assert_string_equal(p.recipe.precision, "bf16");
	assert_string_equal(p.recipe.experiment_hash, "crc32c:1");
	assert_false(p.recipe.unread);
	assert_true(recipe_leaves(&p.recipe, "parallelism.tp"));
	assert_false(recipe_leaves(&p.recipe, "steps"));
}

/* engine.args change what the experiment says, and are in what was read of it: none contradicts the
 * other. */
static void test_args(void **state)
{
#define ARGS \
	"recipe: 1\nname: t\ncluster: {gpus: 16}\nsteps: 9\nengine:\n" \
	"  kind: primus-megatron\n  entry: e.yaml\n  workdir: /w\n  args:\n"
#define BLOCK \
	"    recompute_granularity: full\n    recompute_method: block\n" \
	"    recompute_num_layers: 3\n"
#define FULL \
	"values: {parallelism.tp: 1, parallelism.pp: 2, parallelism.ep: 8, parallelism.etp: 1, " \
	"parallelism.cp: 1, recompute: full}"
	expect(ARGS BLOCK, "", "--recompute_method block", NULL);
	expect(ARGS BLOCK "experiment: {" FULL "}\n", "", "--recompute_method block", "uniform");
	expect(ARGS "    pipeline_model_parallel_size: 2\n"
		    "experiment: {" FULL "}\n",
	       "", "--pipeline_model_parallel_size 2", NULL);
	/* What the recipe says itself they may not say otherwise. */
	expect(ARGS BLOCK "recompute: full\n"
			  "experiment: {" FULL "}\n",
	       "recompute_method block contradicts recompute full", "", NULL);
	expect(ARGS BLOCK "recompute: none\n",
	       "recompute_granularity full contradicts recompute none", "", NULL);
}

/* A value of the file that cannot be is an error at the file's line, and a number of GPUs that none
 * of the file's sizes goes with one at that number; without the file there is none that may be
 * false. */
static void test_judged(void **state)
{
	_cleanup_(parsed_done) struct parsed unread =
		parse(HEAD SAVES "batch: {global: 6, micro: 1}\n", NULL);

	expect(HEAD SAID("1", "3"),
	       "4:17 cluster.gpus: 16: the experiment's pp 3 x ep 8 needs a multiple of 24 "
	       "[use cluster.gpus 24, or parallelism.pp 2]",
	       "", NULL);
	expect(HEAD SAID("3", "4"),
	       "4:17 cluster.gpus: 16: the experiment's tp 3 x pp 4 and pp 4 x ep 8 need a "
	       "multiple of 96 [use cluster.gpus 96]",
	       "", NULL);
	expect(HEAD SAID("1", "4"),
	       "the experiment's pp 4 x ep 8 needs a multiple of 32 "
	       "[use cluster.gpus 32, or parallelism.ep 4]",
	       "", NULL);
	/* A size of the recipe's own may be what is wrong. */
	expect(HEAD "parallelism: {ep: 8}\n" SAID("1", "3"),
	       "e.yaml:7: pipeline_model_parallel_size: parallelism.pp: pp 3 does not divide "
	       "cluster.gpus 16",
	       "", NULL);
	expect(HEAD SAID("2", "x"), "e.yaml:7: pipeline_model_parallel_size: parallelism.pp:", "",
	       NULL);
	expect(HEAD "batch: {global: 6}\n" SAID("1", "2"),
	       "batch.global: 6 is no multiple of micro 1 x dp 8 = 8", "", NULL);
	assert_int_equal(unread.errors.n, 0);
	assert_int_equal(unread.n_warnings, 1);
	assert_non_null(strstr(unread.warnings[0], "tp, pp, vpp, ep, etp, cp, sharding are left to "
						   "the experiment, which was not read "
						   "here"));
	assert_true(unread.recipe.unread);
	assert_int_equal(unread.recipe.parallelism.dp, MO_NONE);
	expect(HEAD "experiment: {result: {read: [{a: 1}], keys: [[k, [1, 0, 1]]]}}\n",
	       "experiment.result: expected {read: [file], keys: [..]}", "", NULL);
	expect(HEAD "experiment: {result: {read: [x], keys: [[k, [1, 1, 1]]]}}\n",
	       "experiment.result.keys: expected", "", NULL);
	expect(HEAD "experiment: 5\n", "experiment: expected {files, values, said, result}", "",
	       NULL);
	expect(HEAD "experiment: {values: {a.b: 1}}\n",
	       "experiment.values: 'a.b' is no value of a recipe", "", NULL);
	expect(HEAD "experiment: {values: {batch.seq: [1]}}\n",
	       "experiment.values: 'batch.seq' is no value", "", NULL);
}

/* Rows that read the engine's own keys: where the file was read it decides, where it was not
 * what may have to be off is switched off. */
static void test_own_keys(void **state)
{
	static const char stage[] = "--turbo_sync_free_moe_stage 0",
			  off[] = HEAD "features: {a2a: alltoall}\n";
#define OWN(n) \
	"experiment: {files: 'crc32c:1', args: {turbo_sync_free_moe_stage: '" n \
	"', use_turbo_grouped_gemm: 'true'}}\n"

	expect(off, "", stage, NULL);
	expect(HEAD "features: {a2a: alltoall}\n" OWN("2"), "", stage, NULL);
	expect(HEAD "features: {a2a: alltoall}\n" OWN("1"), "", "--use_turbo_deepep false", stage);
	expect(HEAD "features: {a2a: alltoall}\n"
		    "experiment: {files: 'crc32c:1'}\n",
	       "", "--use_turbo_deepep false", stage);
	expect(HEAD "features: {a2a: alltoall, sync_free: 1}\n" OWN("2"), "",
	       "--turbo_sync_free_moe_stage 1", stage);
	expect(HEAD "features: {a2a: auto}\n" OWN("2"), "", "--train_iters 9", "deepep");
	expect(HEAD "model: qwen3-30b-a3b\nexperiment: {files: 'crc32c:1', args: {mtp_num_layers: "
		    "'1'}}\n",
	       "", "--mtp_num_layers None", NULL);
	expect(HEAD "model: qwen3-30b-a3b\nexperiment: {files: 'crc32c:1', args: {mtp_num_layers: "
		    "'0'}}\n",
	       "", "--train_iters 9", "mtp_num_layers");
	expect(HEAD "experiment: {args: [1]}\n", "experiment.args: expected at most", "", NULL);
	expect(HEAD "experiment: {args: {a: [1]}}\n", "experiment.args: expected one value", "",
	       NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_command),
					    cmocka_unit_test(test_values),
					    cmocka_unit_test(test_args),
					    cmocka_unit_test(test_judged),
					    cmocka_unit_test(test_own_keys) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
