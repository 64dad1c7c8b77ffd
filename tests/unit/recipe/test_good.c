/* Recipes that are read: defaults, every key, --set, anchors, engine words and environment layers; and the recipes, models and GPUs that we ship. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/keys.h"
#include "tests/unit/recipe/read.h"

static void must(const struct parsed *p)
{
	_cleanup_(mo_freep) char *errors = errors_text(&p->errors);

	if (p->result < 0)
		fail_msg("%s", errors);
}

static void test_defaults(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_with("");
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	const struct recipe *r = &p.recipe;

	must(&p);
	assert_string_equal(r->name, "t");
	assert_int_equal(r->gpus, 8);
	assert_int_equal(r->parallelism.tp, 1);
	assert_int_equal(r->parallelism.dp, 8);
	assert_false(r->parallelism.given);
	assert_string_equal(r->parallelism.sharding, "zero1");
	assert_string_equal(r->bind.cpu, "numa");
	assert_string_equal(r->bind.memory, "preferred");
	assert_string_equal(r->bind.verify, "strict");
	assert_int_equal(r->bind.reserve_cores, 2);
	assert_int_equal(r->checkpoint.every, MO_NONE);
	assert_int_equal(r->checkpoint.keep, 0);
	assert_int_equal(r->checkpoint.resume, -1);
	assert_string_equal(r->checkpoint.verify, "sizes");
	assert_int_equal(r->stop_signal, SIGTERM);
	assert_int_equal(r->stop_grace_us, 120000000);
	assert_string_equal(r->on_node_loss, "wait");
	assert_int_equal(r->lease_us, 30000000);
	assert_int_equal(r->grace_us, 0);
	assert_int_equal(r->max_cycles, 3);
	assert_int_equal(r->priority, 50);
	assert_int_equal(r->time_limit_us, MO_NONE);
	assert_int_equal(r->steps, MO_NONE);
	assert_int_equal(r->n_preflight, 1);
	assert_string_equal(r->preflight[0], "standard");
	assert_null(r->model);
	assert_int_equal(p.n_warnings, 0);
}

/* Without a model there is nothing to estimate by: a documented number to begin with, which the controller replaces by what it measures. */
static void test_every_auto(void **state)
{
	static const struct { const char *lines; int64_t every; bool automatic; size_t warnings; } cases[] = {
		{ "checkpoint: {dir: /c, every: auto}\n", 200, true, 1 },
		{ "checkpoint: {dir: /c, every: auto}\nsteps: 100000\n", 200, true, 1 },
		{ "checkpoint: {dir: /c, every: auto}\nsteps: 500\n", 50, true, 1 },
		{ "checkpoint: {dir: /c, every: auto}\nsteps: 5\n", 1, true, 1 },
		{ "checkpoint: {dir: /c, every: 7}\nsteps: 500\n", 7, false, 0 },
		{ "checkpoint: {dir: /c}\n", MO_NONE, false, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text = mo_printf("recipe: 1\nname: t\nengine: {kind: torch, entry: /x.py, args: {every: '{checkpoint.every}'}}\ncluster: {gpus: 8}\n%s", cases[i].lines);
		_cleanup_(parsed_done) struct parsed p = parse(cases[i].every == MO_NONE ? strstr(text, "recipe") : text, cases[i].every == MO_NONE ? "engine.args={}" : NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		assert_string_equal(said, "");
		assert_int_equal(p.recipe.checkpoint.every, cases[i].every);
		assert_int_equal(p.recipe.checkpoint.automatic, cases[i].automatic);
		assert_int_equal(p.n_warnings, cases[i].warnings);
		if (cases[i].warnings)
			assert_true(mo_starts_with(p.warnings[0], "5:30: checkpoint.every: auto begins with "));
	}
}

static void test_every_key(void **state)
{
	static const char text[] =
		"recipe: 1\nname: full-1.0_x\nengine:\n  kind: torch\n  workdir: /w\n  entry: a.py\n  python: /p\n  prepare: null\n  args: {a: 1, b: true, c: false, d: \"true\", '-e': f}\n"
		"  strict_args: false\n  args_unchecked: [z]\n  container: none\n"
		"model: {layers: 4, hidden: 64, heads: 8, kv_heads: 4, head_dim: 16, ffn: 128, vocab: 256, gated: false, attention: unfused, mtp: 1, window: 32, tied: true,\n"
		"  moe: {experts: 8, topk: 2, ffn: 32, shared_ffn: 16, dense_layers: 1}}\n"
		"cluster: {gpus: 16, gpu: mi355x, spares: 0, exclude: [n1, n2.x], nic_gbps: 400}\n"
		"parallelism: {tp: 2, pp: 2, vpp: 2, ep: 4, etp: 1, cp: 2, dp: auto, sharding: zero2, schedule: interleaved}\n"
		"batch: {seq: 128, micro: 1, global_tokens: 1024}\nprecision: fp8\nrecompute: selective\nsteps: 7\n"
		"features: {grouped_gemm: none, a2a: alltoall, sync_free: 0, overlap_a2a: false, pipeline_layout: auto, recompute_layers: [], loss_fusion: false, manual_gc: 0}\n"
		"bind: {cpu: none, memory: interleave, nic: none, smt: one, verify: off, reserve_cores: 0}\n"
		"env: {A: b, N: 12, E: \"\", F: {file: /etc/secret}, S: yes}\n"
		"checkpoint: {dir: /c, every: 10, keep: 3, verify: marker, resume: never}\nstop: {signal: USR1, grace: 1.5m}\n"
		"recovery: {on_node_loss: wait, max_cycles_without_progress: 5, grace: 10s, hang: auto, loss_spike: none}\n"
		"health: {preflight: none}\npriority: 7\ntime_limit: 7d\n";
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	const struct recipe *r = &p.recipe;

	must(&p);
	assert_int_equal(r->engine.n_args, 4);
	assert_string_equal(r->engine.args[0].key, "a");
	assert_null(r->engine.args[1].value);
	assert_string_equal(r->engine.args[2].value, "true");
	assert_int_equal(r->model->moe->shared_ffn, 16);
	assert_int_equal(r->model->head_dim, 16);
	assert_false(r->model->gated);
	assert_true(r->model->tied);
	assert_int_equal(r->n_exclude, 2);
	assert_true(r->parallelism.given);
	assert_int_equal(r->parallelism.dp, 2);
	assert_int_equal(r->global_batch, 8);
	assert_string_equal(r->bind.verify, "off");
	assert_int_equal(r->n_env, 5);
	assert_string_equal(r->env[1].value, "12");
	assert_string_equal(r->env[2].value, "");
	assert_null(r->env[3].value);
	assert_string_equal(r->env[3].file, "/etc/secret");
	assert_string_equal(r->env[4].value, "yes");
	assert_int_equal(r->checkpoint.resume, -2);
	assert_int_equal(r->checkpoint.keep, 3);
	assert_int_equal(r->stop_signal, SIGUSR1);
	assert_int_equal(r->stop_grace_us, 90000000);
	assert_int_equal(r->time_limit_us, 7LL * 86400 * 1000000);
	assert_string_equal(r->preflight[0], "none");
	assert_int_equal(r->n_features, 8);
}

static void preflight_lists(void **state)
{
	_cleanup_(parsed_done) struct parsed list = parse("recipe: 1\nname: x\nengine: {kind: command, argv: [/bin/true]}\ncluster: {gpus: 1}\nhealth: {preflight: [gpu.ras_ue, stack.same]}\n", NULL);
	_cleanup_(parsed_done) struct parsed empty = parse("recipe: 1\nname: x\nengine: {kind: command, argv: [/bin/true]}\ncluster: {gpus: 1}\nhealth: {preflight: []}\n", NULL);

	must(&list);
	must(&empty);
	assert_int_equal(list.recipe.n_preflight, 2);
	assert_string_equal(list.recipe.preflight[1], "stack.same");
	assert_int_equal(empty.recipe.n_preflight, 1);
	assert_string_equal(empty.recipe.preflight[0], "none");
}

/* JSON is YAML; null and zero ask for nothing. */
static void test_json(void **state)
{
	_cleanup_(parsed_done) struct parsed p = parse("{\"recipe\":1,\"name\":\"j\",\"engine\":{\"kind\":\"command\",\"argv\":[\"/bin/true\"],\"workdir\":null},\"cluster\":{\"gpus\":1},\"steps\":null,"
						       "\"time_limit\":0,\"checkpoint\":null}", NULL);

	must(&p);
	assert_string_equal(p.recipe.engine.argv[0], "/bin/true");
	assert_int_equal(p.recipe.steps, MO_NONE);
	assert_int_equal(p.recipe.time_limit_us, MO_NONE);
}

static void test_anchors(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_with("checkpoint: {dir: &d /c}\nenv: &e {DIR: *d, X: 1}\n");
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

	must(&p);
	assert_string_equal(p.recipe.env[0].value, "/c");
	_cleanup_(parsed_done) struct parsed q = parse("recipe: 1\nname: t\nengine: {kind: torch, entry: x, args: &a {lr: 1, wd: 2}}\ncluster: {gpus: 1}\nenv: {<<: *a, lr: 3}\n", NULL);

	must(&q);
	assert_int_equal(q.recipe.n_env, 2);
	assert_string_equal(q.recipe.env[0].value, "3");
	assert_string_equal(q.recipe.env[1].name, "wd");
}

static void test_auto(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_with("parallelism: auto\n");
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

	must(&p);
	assert_false(p.recipe.parallelism.automatic);      /* without a model: data parallelism, nothing left to plan */
	assert_int_equal(p.recipe.parallelism.dp, 8);
	_cleanup_(mo_freep) char *more = recipe_with("parallelism: auto\nmodel: mixtral-8x7b\nbatch: {seq: 4096, global: 64}\n");
	_cleanup_(parsed_done) struct parsed q = parse(more, "cluster.gpu=mi300x");

	must(&q);
	assert_true(q.recipe.parallelism.automatic);
}

static void test_sets(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_with("steps: 5\ncheckpoint: {dir: /a}\n");
	_cleanup_(parsed_done) struct parsed p =
		parse(text, "steps=9\ncheckpoint.dir=/b c: #d\nenv.X_Y=@1\nengine.args.model.name=v=1\ncluster.exclude=[a, b]\nparallelism={tp: 2}\nname=\"q\"\ncheckpoint.every=3");

	must(&p);
	assert_int_equal(p.recipe.steps, 9);
	assert_string_equal(p.recipe.checkpoint.dir, "/b c: #d");
	assert_int_equal(p.recipe.checkpoint.every, 3);
	assert_string_equal(p.recipe.env[0].value, "@1");
	assert_string_equal(p.recipe.engine.args[0].key, "model.name");
	assert_string_equal(p.recipe.engine.args[0].value, "v=1");
	assert_int_equal(p.recipe.n_exclude, 2);
	assert_int_equal(p.recipe.parallelism.tp, 2);
	assert_string_equal(p.recipe.name, "q");
}

static void test_bad_sets(void **state)
{
	static const struct { const char *set, *expected; } cases[] = {
		{ "stepps=9", "0:0 --set stepps: unknown key 'stepps' [did you mean 'steps'?]\n" },
		{ "steps=x", "0:0 --set steps: steps: expected a whole number from 1 to 1000000000, got 'x'\n" },
		{ "cluster.gpus.x=1", "0:0 --set cluster.gpus.x: 'x' cannot be set inside a single value [cluster.gpus is '8': set all of it]\n" },
		{ "cluster..x=1", "0:0 --set cluster..x: an empty part in the key\n" },
		{ "parallelism.tp=3", "0:0 --set parallelism.tp: parallelism.tp: tp 3 does not divide cluster.gpus 8" },
		{ "cluster.exclude=[a", "0:0 --set cluster.exclude: not valid YAML" },
		{ "a.b.c.d.e.f.g.h.i.j=1", "0:0 --set a.b.c.d.e.f.g.h.i.j: more than 8 parts" },
		{ "env.RANK=1", "0:0 --set env.RANK: env: RANK is set by the launcher" },
		{ "batch.nothing.x=1", "0:0 --set batch.nothing.x: unknown key 'batch.nothing'" },
	};
	_cleanup_(mo_freep) char *text = recipe_with("");

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(parsed_done) struct parsed p = parse(text, cases[i].set);
		_cleanup_(mo_freep) char *errors = errors_text(&p.errors);

		if (strncmp(errors, cases[i].expected, strlen(cases[i].expected)) != 0)
			fail_msg("--set %s\nexpected: %s\n     got: %s", cases[i].set, cases[i].expected, errors);
	}
}

/* The text with sets applied is the same recipe as the text and the sets. */
static void test_apply_sets(void **state)
{
	struct recipe_set sets[] = { { (char *)"steps", (char *)"9" }, { (char *)"env.A", (char *)"x: {y} \"z\"" }, { (char *)"batch.micro", (char *)"2" }, { (char *)"env.B", (char *)"-7" } };
	_cleanup_(mo_freep) char *text = recipe_with("env: {C: \"true\", D: 'a\tb'}\n");
	struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *applied = recipe_apply_sets(text, strlen(text), sets, ELEMENTSOF(sets), &errors);
	_cleanup_(mo_freep) char *same = recipe_apply_sets(text, strlen(text), NULL, 0, &errors);

	assert_non_null(applied);
	assert_string_equal(same, text);
	_cleanup_(parsed_done) struct parsed a = parse(text, "steps=9\nenv.A=x: {y} \"z\"\nbatch.micro=2\nenv.B=-7");
	_cleanup_(parsed_done) struct parsed b = parse(applied, NULL);

	must(&a);
	must(&b);
	_cleanup_(mo_freep) char *diff = mo_desc_diff(&recipe_desc, &a.recipe, &b.recipe);

	if (diff)
		fail_msg("differs at %s:\n%s", diff, applied);
}

static char *joined(char **words, size_t n)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n; i++) {
		mo_buf_printf(&b, "%s%s", i ? " " : "", words[i]);
		free(words[i]);
	}
	free(words);
	return mo_buf_take(&b);
}

static char *argv_of(const struct parsed *p)
{
	char **words = NULL;
	size_t n = 0;

	engine_argv(&p->engine, &p->recipe, &words, &n);
	return joined(words, n);
}

static void test_argv(void **state)
{
	_cleanup_(parsed_done) struct parsed torch =
		parse("recipe: 1\nname: t\nengine: {kind: torch, entry: a.py, python: /py, args: {steps: '{steps}', x: true, '-v': 'a{b}'}}\ncluster: {gpus: 1}\nsteps: 3\n", NULL);
	_cleanup_(parsed_done) struct parsed list = parse("recipe: 1\nname: t\nengine: {kind: torch, entry: a.py, args: [--n=1, pos, '{name}']}\ncluster: {gpus: 1}\n", NULL);
	_cleanup_(parsed_done) struct parsed command = parse("recipe: 1\nname: t\nengine: {kind: command, argv: [sh, -c, 'echo {steps} {dp}']}\ncluster: {gpus: 1}\nsteps: 4\n", NULL);
	_cleanup_(mo_freep) char *a = argv_of(&torch), *b = argv_of(&list), *c = argv_of(&command);

	must(&torch);
	must(&list);
	must(&command);
	assert_string_equal(a, "/py a.py --steps 3 --x -v a{b}");
	assert_string_equal(b, "/usr/bin/python3 a.py --n=1 pos t");
	assert_string_equal(c, "sh -c echo 4 {dp}");
}

/* keep is moectl's: torchtitan would keep the newest ten, whatever they are. */
static void test_engines_remove_nothing(void **state)
{
	static const char *const kinds[] = { "torchtitan", "primus-torchtitan" };

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		_cleanup_(mo_freep) char *text = mo_printf("recipe: 1\nname: t\nengine: {kind: %s%s}\ncluster: {gpus: 1}\nsteps: 4\ncheckpoint: {dir: /c, every: 2}\n", kinds[i], i ? ", entry: e" : "");
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *words = argv_of(&p);

		assert_int_equal(p.errors.n, 0);
		assert_non_null(strstr(words, "--checkpoint.keep_latest_k 0"));
	}
}

static void test_megatron_argv(void **state)
{
	_cleanup_(parsed_done) struct parsed p =
		parse("recipe: 1\nname: t\nengine: {kind: megatron-lm, args: {lr: 1e-4, bf16: true, tensor-model-parallel-size: 2}}\nmodel: deepseek-v2-lite\ncluster: {gpus: 16}\n"
		      "parallelism: {tp: 2, pp: 3, vpp: 3, ep: 2}\nsteps: 10\nbatch: {seq: 4096, micro: 1, global: 8}\nprecision: fp8\nrecompute: full\ncheckpoint: {dir: /c, every: 5}\n",
		      "cluster.gpus=24");
	_cleanup_(mo_freep) char *a = argv_of(&p);
	static const char *const wanted[] = {
		"/usr/bin/python3 pretrain_gpt.py --log-interval 1 ", " --tensor-model-parallel-size 2 --sequence-parallel ", " --pipeline-model-parallel-size 3 ",
		" --num-virtual-stages-per-pipeline-rank 3 ", " --expert-model-parallel-size 2 ", " --seq-length 4096 --max-position-embeddings 4096 ",
		" --bf16 --fp8-format hybrid ", " --recompute-granularity full --recompute-method uniform ", " --train-iters 10 --save /c --save-interval 5 ",
		" --moe-layer-freq ([0]*1+[1]*26) ", " --multi-latent-attention --kv-lora-rank 512 ", " --swiglu --untie-embeddings-and-output-weights ", " --lr 1e-4 ",
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

/* TERM belongs to torch, which ends the data loader's workers by it; a recipe may say otherwise, and the engine is told. */
static void test_stop_signal(void **state)
{
	static const char text[] = "recipe: 1\nname: t\nengine: {kind: megatron-lm}\ncluster: {gpus: 1}\nsteps: 10\n";
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL), q = parse(text, "stop.signal=TERM");
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
	_cleanup_(mo_freep) char *text = recipe_with("precision: bf16\nbatch: {micro: 2}\nrecovery: {lease: 40s}\n");
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

	must(&p);
	assert_int_equal(p.n_warnings, 2);
	assert_non_null(strstr(p.warnings[0], "recovery.lease"));
	assert_non_null(strstr(p.warnings[1], "engine torch is not told about batch.micro, precision"));
}

/* No recomputation is told to engines whose own default, or whose experiment, recomputes. */
static void test_no_recomputation(void **state)
{
	static const struct { const char *engine, *words; } rows[] = {
		{ "primus-megatron, workdir: /x, entry: x.yaml", " --recompute_granularity None" }, { "maxtext, workdir: /x", " remat_policy=none" }, { "maxtext-multiprocess, workdir: /x", " remat_policy=none" },
		{ "primus-torchtitan, workdir: /x, entry: x.yaml", " --activation_checkpoint.mode none" }, { "megatron-lm", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text = mo_printf("recipe: 1\nname: t\nengine: {kind: %s}\ncluster: {gpus: 8, gpu: mi300x}\nrecompute: none\nsteps: 100\n", rows[i].engine);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

		must(&p);
		_cleanup_(mo_freep) char *argv = argv_of(&p);

		if (rows[i].words ? !strstr(argv, rows[i].words) : strstr(argv, "recompute") != NULL)
			fail_msg("row %zu: %s", i, argv);
	}
}

/* Groups of node-limited routing reach the engines that have flags for them; of others it is said. */
static void test_routing_groups(void **state)
{
	static const struct { const char *engine, *model, *words; bool warned; } rows[] = {
		{ "megatron-lm", "deepseek-v3-no-mtp", " --moe-router-num-groups 8 --moe-router-group-topk 4 ", false },
		{ "primus-megatron, workdir: /x, entry: x.yaml", "deepseek-v3", " --moe_router_num_groups 8 --moe_router_group_topk 4", false },
		{ "megatron-lm", "mixtral-8x7b", NULL, false },
		{ "torchtitan, workdir: /x, args: {module: m, config: c}", "deepseek-v3-no-mtp", NULL, false },
		{ "torchtitan, workdir: /x, args: {module: m, config: c}", "{layers: 8, hidden: 1024, heads: 8, vocab: 1000, moe: {experts: 64, topk: 8, ffn: 512, groups: 8, topk_groups: 4}}", NULL, true },
		{ "torch, entry: x", "deepseek-v3", NULL, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text = mo_printf("recipe: 1\nname: t\nengine: {kind: %s}\ncluster: {gpus: 8, gpu: mi300x}\nmodel: %s\nparallelism: {ep: 8, sharding: %s}\nbatch: {seq: 4096, global: 512}\nsteps: 100\n",
							   rows[i].engine, rows[i].model, mo_starts_with(rows[i].engine, "torchtitan") ? "zero3" : "zero1");
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		bool warned = false;

		must(&p);
		_cleanup_(mo_freep) char *argv = argv_of(&p);

		for (size_t w = 0; w < p.n_warnings; w++)
			warned |= strstr(p.warnings[w], "model.moe.groups: engine torchtitan is not told: plans count experts in 4 of 8 groups") != NULL;
		if (warned != rows[i].warned || (rows[i].words ? !strstr(argv, rows[i].words) : strstr(argv, "group") != NULL && !strstr(rows[i].model, "mixtral")))
			fail_msg("row %zu: %s%s", i, argv, warned ? ", warned" : "");
		if (mo_streq(rows[i].model, "mixtral-8x7b"))
			assert_null(strstr(argv, "moe-router-num-groups"));
	}
}

/* A script that is told none of the sizes would run without what the planner chose. */
static void test_warns_of_auto(void **state)
{
	static const char rest[] = "model: mixtral-8x7b\nparallelism: auto\nbatch: {seq: 4096, global: 512}\nsteps: 100\n";
	_cleanup_(mo_freep) char *silent = mo_printf("recipe: 1\nname: t\nengine: {kind: torch, entry: x}\ncluster: {gpus: 8, gpu: mi300x}\n%s", rest);
	_cleanup_(mo_freep) char *told = mo_printf("recipe: 1\nname: t\nengine: {kind: torch, entry: x, args: {ep: '{parallelism.ep}', seq: '{batch.seq}', global: '{batch.global}'}}\ncluster: {gpus: 8, gpu: mi300x}\n%s", rest);
	_cleanup_(parsed_done) struct parsed p = parse(silent, NULL), q = parse(told, NULL);

	must(&p);
	must(&q);
	assert_int_equal(p.n_warnings, 1);
	assert_non_null(strstr(p.warnings[0], "6:14: engine torch is not told about parallelism: auto, batch.seq, batch.global: "));
	assert_non_null(strstr(p.warnings[0], "e.g. as {parallelism.tp}"));
	assert_int_equal(q.n_warnings, 0);
}

static const struct env_item *item(const struct env_item *items, size_t n, const char *name, int layer)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(items[i].name, name) && items[i].layer == layer)
			return &items[i];
	return NULL;
}

static const struct env_item *profile_item(const struct env_profile *profiles, size_t n, const char *profile, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(profiles[i].name, profile))
			return item(profiles[i].items, profiles[i].n_items, name, profiles[i].layer);
	return NULL;
}

/* Programs write whole numbers as floats. */
static void test_whole_floats(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_with("batch: {seq: 4.096e3, micro: 1.0, global: 8.}\nsteps: 1e3\nfeatures: {manual_gc: 0.0}\n"
						     "checkpoint: {dir: /c, every: 100.0, resume: 0.0}\nstop: {signal: 10.0}\n");
	_cleanup_(parsed_done) struct parsed p = parse(text, "cluster.gpus=8.0\ncluster.nic_gbps=100.0");

	if (p.errors.n)
		fail_msg("%s", p.errors.items[0].text);
	assert_int_equal(p.recipe.gpus, 8);
	assert_int_equal(p.recipe.nic_gbps, 100);
	assert_int_equal(p.recipe.seq, 4096);
	assert_int_equal(p.recipe.global_batch, 8);
	assert_int_equal(p.recipe.steps, 1000);
	assert_int_equal(p.recipe.checkpoint.every, 100);
	assert_int_equal(p.recipe.checkpoint.resume, 0);
	assert_int_equal(p.recipe.stop_signal, 10);
}

static void test_env_layers(void **state)
{
	_cleanup_(parsed_done) struct parsed p = parse("recipe: 1\nname: t\nengine: {kind: megatron-lm}\ncluster: {gpus: 1}\nsteps: 1\nenv: {HSA_KERNARG_POOL_SIZE: 65536, T: {file: /t}}\n", NULL);
	struct env_profile *profiles = NULL;
	struct env_item *items = NULL;
	struct mo_error err = { 0 };
	size_t n = 0, n_profiles = 0;

	must(&p);
	env_layers(&p.recipe, &p.engine, &items, &n);
	for (size_t i = 0; i < n; i++) {
		assert_non_null(items[i].reason);
		assert_non_null(items[i].source);
		assert_true(items[i].value || items[i].file);
	}
	assert_string_equal(item(items, n, "HSA_KERNARG_POOL_SIZE", ENV_RECIPE)->value, "65536");
	assert_string_equal(item(items, n, "CUDA_DEVICE_MAX_CONNECTIONS", ENV_ENGINE)->value, "1");
	assert_string_equal(item(items, n, "T", ENV_RECIPE)->file, "/t");
	mo_vec_clear(&env_item_desc, (void **)&items, &n);
	if (env_profiles(&p.recipe, &profiles, &n_profiles, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < n_profiles; i++) {
		assert_true(profiles[i].n_items > 0);
		assert_true(i == 0 || profiles[i].layer > profiles[i - 1].layer || profiles[i].order >= profiles[i - 1].order);
		for (size_t k = 0; k < profiles[i].n_items; k++) {
			const struct env_item *e = &profiles[i].items[k];
			assert_non_null(e->reason);
			assert_true(mo_starts_with(e->source, "env/"));
			assert_int_equal(e->layer, profiles[i].layer);
		}
	}
	assert_string_equal(profile_item(profiles, n_profiles, "base", "HSA_KERNARG_POOL_SIZE")->value, "12582912");
	assert_string_equal(profile_item(profiles, n_profiles, "base", "PYTHONUNBUFFERED")->value, "1");
	assert_string_equal(profile_item(profiles, n_profiles, "base", "LANG")->value, "C.UTF-8");
	assert_string_equal(profile_item(profiles, n_profiles, "amd", "HSA_NO_SCRATCH_RECLAIM")->value, "1");
	assert_non_null(strstr(profile_item(profiles, n_profiles, "amd", "HSA_NO_SCRATCH_RECLAIM")->reason, "(others: "));
	assert_null(profile_item(profiles, n_profiles, "fsdp", "CUDA_DEVICE_MAX_CONNECTIONS"));
	mo_vec_clear(&env_profile_desc, (void **)&profiles, &n_profiles);
}

/* Every file that we ship is read by the code that will read it. */
static void each(const char *dir, void (*fn)(const char *name))
{
	_cleanup_(mo_freep) char *path = mo_data_file(dir);
	DIR *d;
	struct dirent *e;
	int seen = 0;

	assert_non_null(path);
	d = opendir(path);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len > 5 && mo_streq(e->d_name + len - 5, ".yaml")) {
			_cleanup_(mo_freep) char *name = mo_strndup(e->d_name, len - 5);

			fn(name);
			seen++;
		}
	}
	closedir(d);
	assert_true(seen > 0);
}

static void shipped_recipe(const char *name)
{
	_cleanup_(mo_freep) char *file = mo_printf("recipes/%s.yaml", name), *path = mo_data_file(file);
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(path, 1 << 20, &text), 0);
	_cleanup_(parsed_done) struct parsed p = parse_n(text.data, text.len, NULL);

	must(&p);
	if (p.n_warnings)
		fail_msg("%s: %s", name, p.warnings[0]);
}

static void shipped_engine(const char *name)
{
	struct mo_error err = { 0 };
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	if (engine_load(name, &e, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(e.kind, name);
	assert_true(e.n_rules > 0 && e.has_layout);
	mo_desc_done(&engine_desc, &e);
}

static void shipped_gpu(const char *name)
{
	struct mo_error err = { 0 };
	struct gpu_type g;

	mo_desc_init(&gpu_type_desc, &g);
	if (gpu_type_load(name, &g, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(g.name, name);
	mo_desc_done(&gpu_type_desc, &g);
}

static void shipped_model(const char *name)
{
	struct mo_error err = { 0 };
	struct recipe_model m;

	mo_desc_init(&recipe_model_desc, &m);
	if (model_load(name, &m, &err) < 0)
		fail_msg("%s", err.text);
	mo_desc_done(&recipe_model_desc, &m);
}

static void test_shipped(void **state)
{
	each("recipes", shipped_recipe);
	each("engines", shipped_engine);
	each("gpus", shipped_gpu);
	each("models", shipped_model);
}

/* docs/recipe.md names every key. */
static void test_documented(void **state)
{
	struct recipe_errors errors = { 0 };
	struct reader r = recipe_reader(NULL, &errors);
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(MO_SOURCE_DIR "/docs/recipe.md", 1 << 20, &text), 0);
	assert_true(r.n_keys > 80);
	for (size_t i = 0; i < r.n_keys; i++) {
		const char *last = strrchr(r.keys[i].path, '.');

		if (!strstr(text.data, last ? last + 1 : r.keys[i].path))
			fail_msg("docs/recipe.md does not name %s", r.keys[i].path);
	}
}

static void test_tiny_moe(void **state)
{
	_cleanup_(mo_freep) char *path = mo_data_file("recipes/tiny-moe.yaml"), *argv = NULL;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(path, 1 << 20, &text), 0);
	_cleanup_(parsed_done) struct parsed p = parse_n(text.data, text.len, NULL);

	must(&p);
	argv = argv_of(&p);
	assert_non_null(strstr(argv, "/engines/tiny_moe/train.py --steps 120 --save-every 20 "));
	assert_int_equal(p.recipe.engine.entry[0], '/');
	assert_true(p.engine.layout.announced_is_complete);
}

/* A recipe that everybody may use gives each user a directory of his own. */
static void test_directory_of_the_user(void **state)
{
	static const char *const bad[] = { NULL, "", "../ada", "a/b", ".", "DOM\\ada" };
	_cleanup_(mo_freep) char *text = recipe_with("checkpoint: {dir: \"/c/{user}/x-{user}\", every: 1}\n"), *plain = recipe_with("checkpoint: {dir: /c, every: 1}\n");
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL), q = parse(plain, NULL);

	must(&p);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };

		assert_int_equal(recipe_for_user(&p.recipe, bad[i], &err), -EINVAL);
		assert_non_null(err.hint);
		assert_string_equal(p.recipe.checkpoint.dir, "/c/{user}/x-{user}");
		assert_int_equal(recipe_for_user(&q.recipe, bad[i], &err), 0);
	}
	assert_int_equal(recipe_for_user(&p.recipe, "ada", NULL), 1);
	assert_string_equal(p.recipe.checkpoint.dir, "/c/ada/x-ada");
	assert_string_equal(q.recipe.checkpoint.dir, "/c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(preflight_lists), cmocka_unit_test(test_every_key), cmocka_unit_test(test_every_auto), cmocka_unit_test(test_json), cmocka_unit_test(test_anchors), cmocka_unit_test(test_auto), cmocka_unit_test(test_stop_signal),
		cmocka_unit_test(test_sets), cmocka_unit_test(test_bad_sets), cmocka_unit_test(test_apply_sets), cmocka_unit_test(test_argv), cmocka_unit_test(test_engines_remove_nothing), cmocka_unit_test(test_megatron_argv),
		cmocka_unit_test(test_warnings), cmocka_unit_test(test_warns_of_auto), cmocka_unit_test(test_routing_groups), cmocka_unit_test(test_no_recomputation), cmocka_unit_test(test_whole_floats), cmocka_unit_test(test_env_layers), cmocka_unit_test(test_shipped), cmocka_unit_test(test_tiny_moe), cmocka_unit_test(test_documented), cmocka_unit_test(test_directory_of_the_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
