/* What engines are given of a recipe, and what is said where they cannot be given it. */
#include "tests/unit/recipe/read.h"

#include <signal.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/model/skip.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/engine_words.h"

static void test_argv(void **state)
{
	_cleanup_(parsed_done) struct parsed torch =
		parse("recipe: 1\nname: t\nengine: {kind: torch, entry: a.py, python: /py, args: "
		      "{steps: '{steps}', x: true, '-v': 'a{b}'}}\ncluster: {gpus: 1}\nsteps: 3\n",
		      NULL);
	_cleanup_(parsed_done) struct parsed list =
		parse("recipe: 1\nname: t\nengine: {kind: torch, entry: a.py, args: [--n=1, pos, "
		      "'{name}']}\ncluster: {gpus: 1}\n",
		      NULL);
	_cleanup_(parsed_done) struct parsed command =
		parse("recipe: 1\nname: t\nengine: {kind: command, argv: [sh, -c, 'echo {steps} "
		      "{dp}']}\ncluster: {gpus: 1}\nsteps: 4\n",
		      NULL);
	_cleanup_(mo_freep) char *a = argv_of(&torch), *b = argv_of(&list), *c = argv_of(&command);

	must(&torch);
	must(&list);
	must(&command);
	assert_string_equal(a, "/py a.py --steps 3 --x -v a{b}");
	assert_string_equal(b, "/usr/bin/python3 a.py --n=1 pos t");
	assert_string_equal(c, "sh -c echo 4 {dp}");
}

static char *prepare_of(const struct parsed *p)
{
	char **words = NULL;
	size_t n = 0;

	engine_prepare(&p->engine, &p->recipe, &words, &n);
	return joined(words, n);
}

/* The shipped hooks get the command that the ranks get, and their text passes both expansions
 * untouched. */
static void test_prepare_words(void **state)
{
	static const char head[] =
		"recipe: 1\nname: t\nengine: {kind: primus-megatron, workdir: /w, entry: e.yaml, "
		"python: /py%s}\ncluster: {gpus: 1}\nsteps: 3\n";
	_cleanup_(mo_freep) char *text = mo_printf(head, ""),
				 *own_text =
					 mo_printf(head, ", prepare: [./p, '{argv}', 'x{argv}']");
	_cleanup_(parsed_done) struct parsed shipped = parse(text, NULL),
					     own = parse(own_text, NULL);
	_cleanup_(mo_buf_done) struct mo_buf script = { 0 };
	_cleanup_(mo_freep) char *path = mo_data_file("engines/primus-hooks.sh");

	must(&shipped);
	must(&own);
	assert_int_equal(mo_read_file(path, 1 << 20, &script), 0);
	_cleanup_(mo_freep) char *argv = argv_of(&shipped), *words = prepare_of(&shipped),
				 *own_words = prepare_of(&own),
				 *expected = mo_printf("/bin/bash -c %s primus-hooks.sh %s",
						       script.data, argv),
				 *own_expected = mo_printf("./p %s x{argv}", argv);
	static const char *const of_node[] = {
		"{job}",         "{rank}",       "{workdir}",          "{attempt}",
		"{nnodes}",      "{node_rank}",  "{local_rank}",       "{master_addr}",
		"{master_port}", "{world_size}", "{local_world_size}", "{local_gpus}"
	};

	assert_string_equal(words, expected);
	assert_string_equal(own_words, own_expected);
	for (size_t i = 0; i < ELEMENTSOF(of_node); i++)
		assert_null(strstr(script.data, of_node[i]));
}

/* keep is moectl's: torchtitan would keep the newest ten, whatever they are. */
static void test_engines_remove_nothing(void **state)
{
	static const char *const kinds[] = { "torchtitan", "primus-torchtitan" };

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: %s%s}\ncluster: {gpus: "
				  "1}\nsteps: 4\ncheckpoint: {dir: /c, every: 2}\n",
				  kinds[i], i ? ", entry: e" : "");
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *words = argv_of(&p);

		assert_int_equal(p.errors.n, 0);
		assert_non_null(strstr(words, "--checkpoint.keep_latest_k 0"));
	}
}

static void test_megatron_argv(void **state)
{
	_cleanup_(parsed_done) struct parsed p = parse("recipe: 1\nname: t\nengine: {kind: "
						       "megatron-lm, args: {lr: 1e-4, bf16: true, "
						       "tensor-model-parallel-size: 2}}\nmodel: "
						       "deepseek-v2-lite\ncluster: {gpus: 16}\n"
						       "parallelism: {tp: 2, pp: 3, vpp: 3, ep: "
						       "2}\nsteps: 10\nbatch: {seq: 4096, micro: "
						       "1, global: 8}\nprecision: fp8\nrecompute: "
						       "full\ncheckpoint: {dir: /c, every: 5}\n",
						       "cluster.gpus=24");
	_cleanup_(mo_freep) char *a = argv_of(&p);
	static const char *const wanted[] = {
		"/usr/bin/python3 pretrain_gpt.py --log-interval 1 ",
		" --tensor-model-parallel-size 2 --sequence-parallel ",
		" --pipeline-model-parallel-size 3 ",
		" --num-virtual-stages-per-pipeline-rank 3 ",
		" --expert-model-parallel-size 2 ",
		" --seq-length 4096 --max-position-embeddings 4096 ",
		" --bf16 --fp8-format hybrid ",
		" --recompute-granularity full --recompute-method uniform ",
		" --train-iters 10 --save /c --save-interval 5 ",
		" --moe-layer-freq ([0]*1+[1]*26) ",
		" --multi-latent-attention --kv-lora-rank 512 ",
		" --swiglu --untie-embeddings-and-output-weights ",
		" --lr 1e-4 ",
	};

	must(&p);
	for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
		if (!strstr(a, wanted[i]))
			fail_msg("no '%s' in\n%s", wanted[i], a);
	assert_null(strstr(a, "--load"));
	assert_null(strstr(a, "--q-lora-rank"));
	assert_null(strstr(a, "--num-query-groups"));
	char **words = NULL;
	size_t n = 0;

	engine_resume_argv(&p.engine, &p.recipe, 40, &words, &n);
	_cleanup_(mo_freep) char *resume = joined(words, n);

	assert_string_equal(resume, "--load /c --ckpt-step 40 --exit-on-missing-checkpoint");
	words = NULL;
	n = 0;
	engine_resume_argv(&p.engine, &p.recipe, -1, &words, &n);
	assert_int_equal(n, 0);
}

/* TERM belongs to torch, which ends the data loader's workers by it; a recipe may say otherwise,
 * and the engine is given them. */
static void test_stop_signal(void **state)
{
	static const char text[] =
		"recipe: 1\nname: t\nengine: {kind: megatron-lm}\ncluster: {gpus: 1}\nsteps: 10\n";
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL),
					     q = parse(text, "stop.signal=TERM");
	_cleanup_(mo_freep) char *a = argv_of(&p), *b = argv_of(&q);

	must(&p);
	must(&q);
	assert_int_equal(p.recipe.stop_signal, SIGUSR2);
	assert_non_null(strstr(a, " --exit-signal SIGUSR2 "));
	assert_int_equal(q.recipe.stop_signal, SIGTERM);
	assert_non_null(strstr(b, " --exit-signal SIGTERM "));
}

static void test_warnings(void **state)
{
	_cleanup_(mo_freep) char *text =
		recipe_with("precision: bf16\nbatch: {micro: 2}\nrecovery: {lease: 40s}\n");
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

	must(&p);
	assert_int_equal(p.n_warnings, 2);
	assert_non_null(strstr(p.warnings[0], "recovery.lease"));
	assert_non_null(
		strstr(p.warnings[1], "engine torch is not told about batch.micro, precision"));
}

/* No recomputation is given to engines whose own default, or whose experiment, recomputes. */
static void test_no_recomputation(void **state)
{
	static const struct {
		const char *engine, *words;
	} rows[] = {
		{ "primus-megatron, workdir: /x, entry: x.yaml", " --recompute_granularity None" },
		{ "maxtext, workdir: /x", " remat_policy=none" },
		{ "maxtext-multiprocess, workdir: /x", " remat_policy=none" },
		{ "primus-torchtitan, workdir: /x, entry: x.yaml",
		  " --activation_checkpoint.mode none" },
		{ "megatron-lm", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: %s}\ncluster: {gpus: 8, gpu: "
				  "mi300x}\nrecompute: none\nsteps: 100\n",
				  rows[i].engine);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

		must(&p);
		_cleanup_(mo_freep) char *argv = argv_of(&p);

		if (rows[i].words ? !strstr(argv, rows[i].words)
				  : strstr(argv, "recompute") != NULL)
			fail_msg("row %zu: %s", i, argv);
	}
}

/* Groups of node-limited routing reach the engines that have flags for them; of others it is
 * said. */
static void test_routing_groups(void **state)
{
	static const struct {
		const char *engine, *model, *words;
		bool warned;
	} rows[] = {
		{ "megatron-lm", "deepseek-v3-no-mtp",
		  " --moe-router-num-groups 8 --moe-router-group-topk 4 ", false },
		{ "primus-megatron, workdir: /x, entry: x.yaml", "deepseek-v3",
		  " --moe_router_num_groups 8 --moe_router_group_topk 4", false },
		{ "megatron-lm", "mixtral-8x7b", NULL, false },
		{ "torchtitan, workdir: /x, args: {module: m, config: c}", "deepseek-v3-no-mtp",
		  NULL, false },
		{ "torchtitan, workdir: /x, args: {module: m, config: c}",
		  "{layers: 8, hidden: 1024, heads: 8, vocab: 1000, moe: {experts: 64, topk: 8, "
		  "ffn: 512, groups: 8, topk_groups: 4}}",
		  NULL, true },
		{ "torch, entry: x", "deepseek-v3", NULL, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: %s}\ncluster: {gpus: 8, gpu: "
				  "mi300x}\nmodel: %s\nparallelism: {ep: 8, sharding: %s}\nbatch: "
				  "{seq: 4096, global: 512}\nsteps: 100\n",
				  rows[i].engine, rows[i].model,
				  mo_starts_with(rows[i].engine, "torchtitan") ? "zero3" : "zero1");
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		bool warned = false;

		must(&p);
		_cleanup_(mo_freep) char *argv = argv_of(&p);

		for (size_t w = 0; w < p.n_warnings; w++)
			warned |= strstr(p.warnings[w],
					 "model.moe.groups: engine torchtitan is not told: plans "
					 "count experts in 4 of 8 groups") != NULL;
		if (warned != rows[i].warned ||
		    (rows[i].words
			     ? !strstr(argv, rows[i].words)
			     : strstr(argv, "group") != NULL && !strstr(rows[i].model, "mixtral")))
			fail_msg("row %zu: %s%s", i, argv, warned ? ", warned" : "");
		if (mo_streq(rows[i].model, "mixtral-8x7b"))
			assert_null(strstr(argv, "moe-router-num-groups"));
	}
}

/* A script that is given none of the sizes would run without what the planner chose. */
static void test_warns_of_auto(void **state)
{
	static const char rest[] = "model: mixtral-8x7b\nparallelism: auto\nbatch: {seq: 4096, "
				   "global: 512}\nsteps: 100\n";
	_cleanup_(mo_freep) char *silent =
		mo_printf("recipe: 1\nname: t\nengine: {kind: torch, entry: x}\ncluster: {gpus: 8, "
			  "gpu: mi300x}\n%s",
			  rest);
	_cleanup_(mo_freep) char *stated =
		mo_printf("recipe: 1\nname: t\nengine: {kind: torch, entry: x, args: {ep: "
			  "'{parallelism.ep}', seq: '{batch.seq}', global: "
			  "'{batch.global}'}}\ncluster: {gpus: 8, gpu: mi300x}\n%s",
			  rest);
	_cleanup_(parsed_done) struct parsed p = parse(silent, NULL), q = parse(stated, NULL);

	must(&p);
	must(&q);
	assert_int_equal(p.n_warnings, 1);
	assert_non_null(strstr(p.warnings[0], "6:14: engine torch is not told about parallelism: "
					      "auto, batch.seq, batch.global: "));
	assert_non_null(strstr(p.warnings[0], "e.g. as {parallelism.tp}"));
	assert_int_equal(q.n_warnings, 0);
}

/* Engines that can leave data out, each by its own words. */
static void test_skip(void **state)
{
	static const struct skip windows[] = { { 0, 1, 7, 8 }, { 0, 2, 20, 20 } };
	static const struct {
		const char *engine, *words;
	} cases[] = {
		{ "kind: megatron-lm", "--iterations-to-skip 7 8 20" },
		{ "kind: primus-megatron, entry: e.yaml", "--iterations_to_skip [7,8,20]" },
		{ "kind: primus-megatron-sft, entry: e.yaml", "--iterations_to_skip [7,8,20]" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {%s}\ncluster: {gpus: 2}\nsteps: 7\n"
				  "recovery: {loss_spike: {action: rollback, skip: 2}}\n",
				  cases[i].engine);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		char **words = NULL;
		size_t n = 0;

		must(&p);
		assert_int_equal(p.recipe.skips, 2);
		skip_words(&p.engine, windows, 0, &words, &n);
		assert_int_equal(n, 0);
		skip_words(&p.engine, windows, ELEMENTSOF(windows), &words, &n);
		_cleanup_(mo_freep) char *all = joined(words, n);
		assert_string_equal(all, cases[i].words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_argv),
		cmocka_unit_test(test_prepare_words),
		cmocka_unit_test(test_engines_remove_nothing),
		cmocka_unit_test(test_megatron_argv),
		cmocka_unit_test(test_stop_signal),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_no_recomputation),
		cmocka_unit_test(test_routing_groups),
		cmocka_unit_test(test_warns_of_auto),
		cmocka_unit_test(test_skip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
