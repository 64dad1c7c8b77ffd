/* Recipes that are read: defaults, every key, --set, anchors and environment layers. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "lib/recipe/argv.h"
#include "lib/recipe/env_file.h"
#include "tests/unit/recipe/read.h"
#include "lib/recipe/env_layers.h"

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
	assert_string_equal(r->straggler, "report");
	assert_int_equal(r->lease_us, 120000000);
	assert_int_equal(r->grace_us, 0);
	assert_int_equal(r->max_cycles, 3);
	assert_int_equal(r->backoff_us, 300 * 1000000LL);
	assert_int_equal(r->n_policy, 0);
	assert_int_equal(r->priority, 50);
	assert_int_equal(r->time_limit_us, MO_NONE);
	assert_int_equal(r->steps, MO_NONE);
	assert_int_equal(r->n_preflight, 1);
	assert_string_equal(r->preflight[0], "standard");
	assert_null(r->model);
	assert_int_equal(p.n_warnings, 0);
}

/* Without a model there is nothing to estimate by: a documented number to begin with, which the
 * controller replaces by what it measures. */
static void test_every_auto(void **state)
{
	static const struct {
		const char *lines;
		int64_t every;
		bool automatic;
		size_t warnings;
	} cases[] = {
		{ "checkpoint: {dir: /c, every: auto}\n", 200, true, 1 },
		{ "checkpoint: {dir: /c, every: auto}\nsteps: 100000\n", 200, true, 1 },
		{ "checkpoint: {dir: /c, every: auto}\nsteps: 500\n", 50, true, 1 },
		{ "checkpoint: {dir: /c, every: auto}\nsteps: 5\n", 1, true, 1 },
		{ "checkpoint: {dir: /c, every: 7}\nsteps: 500\n", 7, false, 0 },
		{ "checkpoint: {dir: /c}\n", MO_NONE, false, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: torch, entry: /x.py, args: "
				  "{every: '{checkpoint.every}'}}\ncluster: {gpus: 8}\n%s",
				  cases[i].lines);
		_cleanup_(parsed_done) struct parsed p =
			parse(cases[i].every == MO_NONE ? strstr(text, "recipe") : text,
			      cases[i].every == MO_NONE ? "engine.args={}" : NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		assert_string_equal(said, "");
		assert_int_equal(p.recipe.checkpoint.every, cases[i].every);
		assert_int_equal(p.recipe.checkpoint.automatic, cases[i].automatic);
		assert_int_equal(p.n_warnings, cases[i].warnings);
		if (cases[i].warnings)
			assert_true(mo_starts_with(p.warnings[0],
						   "5:30: checkpoint.every: auto begins with "));
	}
}

static void test_every_key(void **state)
{
	static const char text[] =
		"recipe: 1\nname: full-1.0_x\nengine:\n  kind: torch\n  workdir: /w\n  entry: "
		"a.py\n  python: /p\n  prepare: null\n  args: {a: 1, b: true, c: false, d: "
		"\"true\", '-e': f}\n"
		"  strict_args: false\n  args_unchecked: [z]\n  container: none\n"
		"model: {layers: 4, hidden: 64, heads: 8, kv_heads: 4, head_dim: 16, ffn: 128, "
		"vocab: 256, gated: false, attention: unfused, mtp: 1, window: 32, tied: true,\n"
		"  moe: {experts: 8, topk: 2, ffn: 32, shared_ffn: 16, dense_layers: 1}}\n"
		"cluster: {gpus: 16, gpu: mi355x, spares: 0, exclude: [n1, n2.x\n], nic_gbps: "
		"400\n}\n"
		"parallelism: {tp: 2, pp: 2, vpp: 2, ep: 4, etp: 1, cp: 2, dp: auto, sharding: "
		"zero2, schedule: interleaved}\n"
		"batch: {seq: 128, micro: 1, global_tokens: 1024}\nprecision: fp8\nrecompute: "
		"selective\nsteps: 7\n"
		"features: {grouped_gemm: none, a2a: alltoall, sync_free: 0, overlap_a2a: false, "
		"pipeline_layout: auto, recompute_layers: [], loss_fusion: false, manual_gc: 0}\n"
		"bind: {cpu: none, memory: interleave, nic: none, smt: one, verify: off, "
		"reserve_cores: 0}\n"
		"env: {A: b, N: 12, E: \"\", F: {file: /etc/secret}, S: yes}\n"
		"checkpoint: {dir: /c, every: 10, keep: 3, verify: marker, resume: never}\nstop: "
		"{signal: USR1, grace: 1.5m}\n"
		"recovery: {on_node_loss: wait, max_cycles_without_progress: 5, grace: 10s, hang: "
		"auto, loss_spike: none, backoff: 20s, policy: {storage: stop, hang: elsewhere}}\n"
		"health: {preflight: none}\npriority: 7\ntime_limit: 7d\n"
		"labels: {team: vision, study: 7}\n";
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	const struct recipe *r = &p.recipe;

	must(&p);
	assert_int_equal(r->backoff_us, 20 * 1000000LL);
	assert_int_equal(r->n_policy, 2);
	assert_string_equal(r->loss_action, "none");
	assert_string_equal(r->policy[1].key, "hang");
	assert_string_equal(r->policy[1].value, "elsewhere");
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
	assert_int_equal(r->n_labels, 2);
	assert_string_equal(r->labels[0].key, "team");
	assert_string_equal(r->labels[0].value, "vision");
	assert_string_equal(r->labels[1].value, "7");
	assert_string_equal(r->preflight[0], "none");
	assert_int_equal(r->n_features, 7); /* auto is none */
}

static void preflight_lists(void **state)
{
	_cleanup_(parsed_done) struct parsed list =
		parse("recipe: 1\nname: x\nengine: {kind: command, argv: [/bin/true]}\ncluster: "
		      "{gpus: 1}\nhealth: {preflight: [gpu.ras_ue, stack.same]}\n",
		      NULL);
	_cleanup_(parsed_done) struct parsed empty =
		parse("recipe: 1\nname: x\nengine: {kind: command, argv: [/bin/true]}\ncluster: "
		      "{gpus: 1}\nhealth: {preflight: []}\n",
		      NULL);

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
	_cleanup_(parsed_done) struct parsed p =
		parse("{\"recipe\":1,\"name\":\"j\",\"engine\":{\"kind\":\"command\",\"argv\":[\"/"
		      "bin/true\"],\"workdir\":null},\"cluster\":{\"gpus\":1},\"steps\":null,"
		      "\"time_limit\":0,\"checkpoint\":null}",
		      NULL);

	must(&p);
	assert_string_equal(p.recipe.engine.argv[0], "/bin/true");
	assert_int_equal(p.recipe.steps, MO_NONE);
	assert_int_equal(p.recipe.time_limit_us, MO_NONE);
}

static void test_anchors(void **state)
{
	_cleanup_(mo_freep) char *text =
		recipe_with("checkpoint: {dir: &d /c}\nenv: &e {DIR: *d, X: 1}\n");
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

	must(&p);
	assert_string_equal(p.recipe.env[0].value, "/c");
	_cleanup_(parsed_done) struct parsed q =
		parse("recipe: 1\nname: t\nengine: {kind: torch, entry: x, args: &a {lr: 1, wd: "
		      "2}}\ncluster: {gpus: 1}\nenv: {<<: *a, lr: 3}\n",
		      NULL);

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
	/* without a model: data parallelism, nothing left to plan */
	assert_false(p.recipe.parallelism.automatic);
	assert_int_equal(p.recipe.parallelism.dp, 8);
	_cleanup_(mo_freep) char *more = recipe_with(
		"parallelism: auto\nmodel: mixtral-8x7b\nbatch: {seq: 4096, global: 64}\n");
	_cleanup_(parsed_done) struct parsed q = parse(more, "cluster.gpu=mi300x");

	must(&q);
	assert_true(q.recipe.parallelism.automatic);
}

static void test_sets(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_with("steps: 5\ncheckpoint: {dir: /a}\n");
	_cleanup_(parsed_done) struct parsed p =
		parse(text, "steps=9\ncheckpoint.dir=/b c: "
			    "#d\nenv.X_Y=@1\nengine.args.model.name=v=1\ncluster.exclude=[a, "
			    "b]\nparallelism={tp: 2}\nname=\"q\"\ncheckpoint.every=3");

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
	static const struct {
		const char *set, *expected;
	} cases[] = {
		{ "stepps=9",
		  "0:0 --set stepps=9: unknown key 'stepps' [did you mean 'steps'?]\n" },
		{ "steps=x", "0:0 --set steps=x: steps: expected a whole number from 1 to "
			     "1000000000, got 'x'\n" },
		{ "cluster.gpus.x=1", "0:0 --set cluster.gpus.x=1: 'x' cannot be set inside a "
				      "single value [cluster.gpus is '8': set all of it]\n" },
		{ "cluster..x=1", "0:0 --set cluster..x=1: an empty part in the key\n" },
		{ "parallelism.tp=3", "0:0 --set parallelism.tp=3: parallelism.tp: tp 3 does not "
				      "divide cluster.gpus 8" },
		{ "cluster.exclude=[a", "0:0 --set cluster.exclude=[a: not valid YAML" },
		{ "a.b.c.d.e.f.g.h.i.j=1", "0:0 --set a.b.c.d.e.f.g.h.i.j=1: more than 8 parts" },
		{ "env.RANK=1", "0:0 --set env.RANK: env: RANK is set by the launcher" },
		{ "batch.nothing.x=1", "0:0 --set batch.nothing.x=1: unknown key 'batch.nothing'" },
	};
	_cleanup_(mo_freep) char *text = recipe_with("");

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(parsed_done) struct parsed p = parse(text, cases[i].set);
		_cleanup_(mo_freep) char *errors = errors_text(&p.errors);

		if (strncmp(errors, cases[i].expected, strlen(cases[i].expected)) != 0)
			fail_msg("--set %s\nexpected: %s\n     got: %s", cases[i].set,
				 cases[i].expected, errors);
	}
}

/* The text with sets applied is the same recipe as the text and the sets. */
static void test_apply_sets(void **state)
{
	struct recipe_set sets[] = { { (char *)"steps", (char *)"9" },
				     { (char *)"env.A", (char *)"x: {y} \"z\"" },
				     { (char *)"batch.micro", (char *)"2" },
				     { (char *)"env.B", (char *)"-7" } };
	_cleanup_(mo_freep) char *text = recipe_with("env: {C: \"true\", D: 'a\tb'}\n");
	struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *applied =
		recipe_apply_sets(text, strlen(text), sets, ELEMENTSOF(sets), &errors);
	_cleanup_(mo_freep) char *same = recipe_apply_sets(text, strlen(text), NULL, 0, &errors);

	assert_non_null(applied);
	assert_string_equal(same, text);
	_cleanup_(parsed_done) struct parsed a =
		parse(text, "steps=9\nenv.A=x: {y} \"z\"\nbatch.micro=2\nenv.B=-7");
	_cleanup_(parsed_done) struct parsed b = parse(applied, NULL);

	must(&a);
	must(&b);
	_cleanup_(mo_freep) char *diff = mo_desc_diff(&recipe_desc, &a.recipe, &b.recipe);

	if (diff)
		fail_msg("differs at %s:\n%s", diff, applied);
}

static const struct env_item *item(const struct env_item *items, size_t n, const char *name,
				   int layer)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(items[i].name, name) && items[i].layer == layer)
			return &items[i];
	return NULL;
}

static const struct env_item *profile_item(const struct env_profile *profiles, size_t n,
					   const char *profile, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(profiles[i].name, profile))
			return item(profiles[i].items, profiles[i].n_items, name,
				    profiles[i].layer);
	return NULL;
}

/* Programs write whole numbers as floats. */
static void test_whole_floats(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_with(
		"batch: {seq: 4.096e3, micro: 1.0, global: 8.}\nsteps: 1e3\nfeatures: {manual_gc: "
		"0.0}\n"
		"checkpoint: {dir: /c, every: 100.0, resume: 0.0}\nstop: {signal: 10.0}\n");
	_cleanup_(parsed_done) struct parsed p =
		parse(text, "cluster.gpus=8.0\ncluster.nic_gbps=100.0");

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
	_cleanup_(parsed_done) struct parsed p =
		parse("recipe: 1\nname: t\nengine: {kind: megatron-lm}\ncluster: {gpus: 1}\nsteps: "
		      "1\nenv: {HSA_KERNARG_POOL_SIZE: 65536, T: {file: /t}}\n",
		      NULL);
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
		assert_true(i == 0 || profiles[i].layer > profiles[i - 1].layer ||
			    profiles[i].order >= profiles[i - 1].order);
		for (size_t k = 0; k < profiles[i].n_items; k++) {
			const struct env_item *e = &profiles[i].items[k];
			assert_non_null(e->reason);
			assert_true(mo_starts_with(e->source, "env/"));
			assert_int_equal(e->layer, profiles[i].layer);
		}
	}
	assert_string_equal(profile_item(profiles, n_profiles, "base", "HSA_KERNARG_POOL_SIZE")
				    ->value,
			    "12582912");
	assert_string_equal(profile_item(profiles, n_profiles, "base", "PYTHONUNBUFFERED")->value,
			    "1");
	assert_string_equal(profile_item(profiles, n_profiles, "base", "LANG")->value, "C.UTF-8");
	assert_string_equal(profile_item(profiles, n_profiles, "amd", "HSA_NO_SCRATCH_RECLAIM")
				    ->value,
			    "1");
	assert_non_null(
		strstr(profile_item(profiles, n_profiles, "amd", "HSA_NO_SCRATCH_RECLAIM")->reason,
		       "(others: "));
	assert_null(profile_item(profiles, n_profiles, "fsdp", "CUDA_DEVICE_MAX_CONNECTIONS"));
	mo_vec_clear(&env_profile_desc, (void **)&profiles, &n_profiles);
}

/* A recipe that everybody may use gives each user a directory of his own. */
static void test_directory_of_the_user(void **state)
{
	static const char *const bad[] = { NULL, "", "../ada", "a/b", ".", "DOM\\ada" };
	_cleanup_(mo_freep) char *text = recipe_with(
					 "checkpoint: {dir: \"/c/{user}/x-{user}\", every: 1}\n"),
				 *plain = recipe_with("checkpoint: {dir: /c, every: 1}\n");
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
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(preflight_lists),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_every_auto),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_anchors),
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_bad_sets),
		cmocka_unit_test(test_apply_sets),
		cmocka_unit_test(test_whole_floats),
		cmocka_unit_test(test_env_layers),
		cmocka_unit_test(test_directory_of_the_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
