/* Every key of a recipe changes something: what the nodes are sent (commands, environment, binding,
 * orders), the plan, or what the core decides while the job lives (story.h). Driven by the table of
 * keys: a new one without a row fails here. */
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "tests/unit/unit.h"

#include <stdio.h>

#include "lib/recipe/keys.h"
#include "lib/wire/encode.h"
#include "tests/fuzz/whole.h"
#include "tests/unit/cli/story.h"

/* STORY and behind it: what the core decides counts */
enum base { MEGATRON, COMMAND, MLA, AUTO, SCRIPT, STORY, SKIPS };
static const char *const recipes[] = {
	[MEGATRON] = "recipe: 1\nname: a\nengine: {kind: megatron-lm, entry: a.py, workdir: /w}\n"
		     "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 8, head_dim: 64, ffn: "
		     "2048, vocab: 1000, "
		     "moe: {experts: 8, topk: 2, ffn: 256}}\n"
		     "cluster: {gpus: 8, gpu: mi355x}\nparallelism: {tp: 1, pp: 2, ep: 2, "
		     "schedule: 1f1b}\n"
		     "batch: {seq: 4096, micro: 1, global: 64}\nprecision: bf16\nsteps: 10\n"
		     "checkpoint: {dir: /c, every: 5}\n",
	[COMMAND] = "recipe: 1\nname: a\nengine: {kind: command, argv: [x]}\ncluster: {gpus: 8}\n",
	[SCRIPT] = "recipe: 1\nname: a\nengine: {kind: torch, entry: a.py, workdir: /w}\ncluster: "
		   "{gpus: 8}\ncheckpoint: {dir: /c}\n",
	[MLA] = "recipe: 1\nname: a\nengine: {kind: megatron-lm, entry: a.py, workdir: /w}\n"
		"model: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocab: 1000, "
		"mla: {q_lora: 64, kv_lora: 512, qk_nope: 128, qk_rope: 64, v: 128}}\n"
		"cluster: {gpus: 8, gpu: mi355x}\nbatch: {seq: 128, global: 64}\nsteps: 10\n",
	[AUTO] = "recipe: 1\nname: a\nengine: {kind: primus-megatron, entry: a.yaml, workdir: /w}\n"
		 "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 8, head_dim: 64, ffn: 2048, "
		 "vocab: 1000, "
		 "moe: {experts: 8, topk: 2, ffn: 256}}\n"
		 "cluster: {gpus: 8, gpu: mi355x}\nparallelism: {pp: 2, ep: 2}\n"
		 "batch: {seq: 4096, micro: 1, global: 64}\nprecision: bf16\nsteps: 10\n",
	[STORY] = ("recipe: 1\nname: a\nengine: {kind: torch, entry: a.py, args: {every: "
		   "'{checkpoint.every}'}}\n"
		   "cluster: {gpus: 8}\nsteps: 1000\ncheckpoint: {dir: /c, every: 5}\n"),
	[SKIPS] = "recipe: 1\nname: a\nengine: {kind: megatron-lm, entry: a.py, workdir: /w}\n"
		  "cluster: {gpus: 8}\nsteps: 1000\ncheckpoint: {dir: /c, every: 5}\n"
		  "recovery: {loss_spike: {action: rollback}}\n",
};

/* The value itself is in what the core was given: of a STORY only what it decides counts. */
struct row {
	const char *path, *value;
	enum base base;
	bool reported;            /* what it does is an error or a warning */
	struct recipe_set beside; /* what it does, it does to this */
};
#define IMAGE \
	{ \
		(char *)"engine.container.image", (char *)"dir:/i", NULL \
	}
static const struct row rows[] = {
	{ "recipe", "2", COMMAND, .reported = true },
	{ "name", "other", COMMAND },
	{ "engine", "{kind: command, argv: [y]}", COMMAND },
	{ "engine.kind", "torch", MEGATRON },
	{ "engine.workdir", "/other", MEGATRON },
	{ "engine.entry", "b.py", MEGATRON },
	{ "engine.python", "/opt/python", MEGATRON },
	{ "engine.prepare", "make data", MEGATRON },
	{ "engine.argv", "[y, z]", COMMAND },
	{ "engine.args", "{lr: 0.1}", MEGATRON },
	{ "engine.strict_args", "true", COMMAND, .reported = true },
	{ "engine.args_unchecked", "[mine]", MEGATRON, .reported = true,
	  .beside = { (char *)"engine.args", (char *)"{mine: 1}", NULL } },
	{ "engine.container", "dir:/i", MEGATRON },
	{ "engine.container.image", "dir:/j", MEGATRON },
	{ "engine.container.mounts", "[/data:ro]", MEGATRON, .beside = IMAGE },
	{ "engine.container.pull", "never", MEGATRON, .beside = IMAGE },
	{ "engine.container.auth", "{file: /h/c}", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.auth.file", "/h/c", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.home", "true", MEGATRON, .beside = IMAGE },
	{ "engine.container.writable", "tmpfs", MEGATRON, .beside = IMAGE },
	{ "engine.container.shm", "host", MEGATRON, .beside = IMAGE },
	{ "engine.container.env_drop", "[A_*]", MEGATRON, .beside = IMAGE },
	{ "engine.container.user", "root", MEGATRON, .beside = IMAGE },
	{ "engine.container.devices", "all", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.gpus", "2", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.runtime", "docker", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.pull", "always", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.auth", "{file: /c}", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.privileged", "true", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.cap_add", "[SYS_ADMIN]", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.security_opt", "[a]", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.network", "bridge", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.pid", "private", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.ipc", "private", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.group_add", "[g]", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.ulimits", "[u]", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.shm_size", "1g", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.hostname", "h", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.env_file", "/f", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.ports", "[80]", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.entrypoint", "/e", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.command", "x", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.workdir", "/w", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.volumes", "[/a]", MEGATRON, .reported = true, .beside = IMAGE },
	{ "engine.container.env", "{A: b}", MEGATRON, .reported = true, .beside = IMAGE },
	{ "model", "llama3-8b", MEGATRON, .reported = true },
	{ "model.layers", "16", MEGATRON },
	{ "model.hidden", "1024", MEGATRON },
	{ "model.heads", "16", MEGATRON },
	{ "model.kv_heads", "4", MEGATRON },
	{ "model.head_dim", "128", MEGATRON },
	{ "model.ffn", "4096", MEGATRON },
	{ "model.vocab", "2000", MEGATRON },
	{ "model.gated", "false", MEGATRON },
	{ "model.attention", "unfused", MEGATRON },
	{ "model.mtp", "1", MEGATRON },
	{ "model.window", "128", MEGATRON },
	{ "model.tied", "true", MEGATRON },
	{ "model.qk_norm", "true", MEGATRON },
	{ "model.bias", "true", MEGATRON },
	{ "model.moe", "{experts: 16, topk: 2, ffn: 256}", MEGATRON },
	{ "model.moe.experts", "16", MEGATRON },
	{ "model.moe.topk", "4", MEGATRON },
	{ "model.moe.ffn", "512", MEGATRON },
	{ "model.moe.shared_ffn", "256", MEGATRON },
	{ "model.moe.dense_layers", "2", MEGATRON },
	{ "model.moe.every", "2", MEGATRON },
	{ "model.moe.groups", "4", MEGATRON, .reported = true },
	{ "model.moe.topk_groups", "2", MEGATRON, .reported = true },
	{ "model.mla", "{kv_lora: 256, qk_nope: 128, qk_rope: 64, v: 128}", MLA },
	{ "model.mla.q_lora", "128", MLA },
	{ "model.mla.kv_lora", "256", MLA },
	{ "model.mla.qk_nope", "64", MLA },
	{ "model.mla.qk_rope", "32", MLA },
	{ "model.mla.v", "64", MLA },
	{ "cluster", "{gpus: 4}", COMMAND },
	{ "cluster.gpus", "16", MEGATRON },
	{ "cluster.gpu", "mi300x", MEGATRON },
	{ "cluster.spares", "1", STORY },
	{ "cluster.nodes", "[n0]", STORY },
	{ "cluster.exclude", "[n0]", STORY },
	{ "cluster.nic_gbps", "100", MEGATRON },
	{ "parallelism", "{tp: 2, pp: 2}", MEGATRON },
	{ "parallelism.tp", "2", MEGATRON },
	{ "parallelism.pp", "4", MEGATRON },
	{ "parallelism.vpp", "2", MEGATRON },
	{ "parallelism.ep", "4", MEGATRON },
	{ "parallelism.etp", "2", MEGATRON },
	{ "parallelism.cp", "2", MEGATRON },
	{ "parallelism.dp", "2", MEGATRON, .reported = true },
	{ "parallelism.sharding", "none", MEGATRON },
	{ "parallelism.schedule", "zb1p", MEGATRON, .reported = true },
	{ "batch", "{seq: 2048, micro: 1, global: 64}", MEGATRON },
	{ "batch.seq", "2048", MEGATRON },
	{ "batch.micro", "2", MEGATRON },
	{ "batch.global", "128", MEGATRON },
	{ "batch.global_tokens", "524288", MEGATRON, .reported = true },
	{ "precision", "fp16", MEGATRON },
	{ "recompute", "full", MEGATRON },
	{ "steps", "20", MEGATRON },
	{ "features", "{grouped_gemm: native}", AUTO },
	{ "features.grouped_gemm", "native", AUTO },
	{ "features.a2a", "deepep", AUTO },
	{ "features.sync_free", "1", AUTO },
	{ "features.overlap_a2a", "true", AUTO, .reported = true },
	{ "features.pipeline_layout", "Et*3|t*5,L", AUTO },
	{ "features.recompute_layers", "[0]", AUTO, .reported = true },
	{ "features.loss_fusion", "true", AUTO },
	{ "features.manual_gc", "1", AUTO },
	{ "bind", "{cpu: none}", COMMAND },
	{ "bind.cpu", "none", COMMAND },
	{ "bind.memory", "bind", COMMAND },
	{ "bind.nic", "none", COMMAND },
	{ "bind.smt", "one", COMMAND },
	{ "bind.verify", "off", COMMAND },
	{ "bind.reserve_cores", "4", COMMAND },
	{ "env", "{A: b}", COMMAND },
	{ "checkpoint", "{dir: /d}", MEGATRON },
	{ "checkpoint.dir", "/d", MEGATRON },
	{ "checkpoint.every", "7", MEGATRON },
	{ "checkpoint.keep", "3", STORY },
	{ "checkpoint.verify", "crc", STORY },
	{ "checkpoint.resume", "5", STORY },
	{ "checkpoint.layout", "'{iteration}.pt'", SCRIPT, .reported = true },
	{ "checkpoint.resume_args", "[--resume]", SCRIPT },
	{ "metrics", "{lines: [{kind: sample, pattern: '(?<iteration>1)'}]}", COMMAND },
	{ "metrics.lines", "[{kind: sample, pattern: '(?<iteration>1)'}]", COMMAND },
	{ "stop", "{signal: USR1}", COMMAND },
	{ "stop.signal", "USR1", COMMAND },
	{ "stop.grace", "60s", COMMAND },
	{ "recovery", "{on_node_loss: spare, lease: 12s}", STORY },
	{ "recovery.on_node_loss", "spare", STORY,
	  .beside = { (char *)"recovery.lease", (char *)"12s", NULL } },
	{ "recovery.lease", "12s", STORY,
	  .beside = { (char *)"recovery.on_node_loss", (char *)"spare", NULL } },
	{ "recovery.grace", "9s", STORY },
	{ "recovery.max_cycles_without_progress", "5", STORY },
	{ "recovery.backoff", "3s", STORY },
	{ "recovery.policy", "{suspect: stop}", STORY },
	{ "recovery.hang", "off", STORY },
	{ "recovery.straggler", "drain", STORY,
	  .beside = { (char *)"stop.grace", (char *)"5s", NULL } },
	{ "recovery.loss_spike", "none", STORY },
	{ "recovery.loss_spike.action", "rollback", STORY },
	{ "recovery.loss_spike.factor", "2", STORY },
	{ "recovery.loss_spike.max", "0", STORY },
	{ "recovery.loss_spike.skip", "3", SKIPS },
	{ "health", "{preflight: none}", STORY },
	{ "experiment", "{values: {parallelism.tp: 3, parallelism.etp: 1, parallelism.cp: 1}}",
	  AUTO, .reported = true },
	{ "health.preflight", "[stack.same]", STORY },
	{ "labels", "{team: vision}", STORY },
	{ "priority", "60", STORY },
	{ "time_limit", "30s", STORY },
};

static struct mo_buf sent; /* launch orders of the recipe in hand */

static int launch_seen(const char *node, const struct nodeinfo *info, const struct launch *launch,
		       struct dryrun_rank **ranks, size_t *n_ranks, struct mo_error *err)
{
	wire_encode(&launch_desc, launch, &sent);
	return preview_ranks(node, info, launch, ranks, n_ranks, err);
}

/* What the nodes would be sent and the plan. */
static void before_it_runs(struct submit *spec, struct mo_buf *b)
{
	const struct dryrun_walk walk = {
		.ranks = launch_seen, .node = add_node, .arg = b, .to = MO_NONE
	};
	struct state empty;

	mo_desc_init(&state_desc, &empty);
	mo_buf_reset(&sent);
	plan_of(&spec->recipe, b);
	spec_of(spec);
	wire_dryrun_head(spec->recipe.name, NULL, spec->engine.resume, spec->engine.n_resume, b);
	dryrun_walk(&empty, spec, &walk, NULL);
	mo_buf_str(b, sent.data);
	mo_desc_done(&state_desc, &empty);
}

static void while_it_lives(struct submit *spec, struct mo_buf *b)
{
	_cleanup_(mo_freep) char *story = NULL;

	spec_of(spec);
	story = story_of(spec);
	mo_buf_str(b, story);
}

/* Everything that comes of the recipe, as one text (caller frees). ret_ok: it was taken. */
static char *outcome(enum base base, const struct recipe_set *set, size_t n_sets, bool *ret_ok)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct mo_buf b = { 0 };
	struct submit spec;

	mo_desc_init(&submit_desc, &spec);
	mo_buf_str(&b, "");
	*ret_ok = recipe_parse(recipes[base], strlen(recipes[base]), set, n_sets, &spec.recipe,
			       &spec.engine, &spec.warnings, &spec.n_warnings, &errors) == 0;
	for (size_t i = 0; i < errors.n; i++)
		mo_buf_printf(&b, "%s\n", errors.items[i].text);
	for (size_t i = 0; base < STORY && i < spec.n_warnings; i++)
		mo_buf_printf(&b, "%s\n", spec.warnings[i]);
	if (*ret_ok)
		(base >= STORY ? while_it_lives : before_it_runs)(&spec, &b);
	mo_desc_done(&submit_desc, &spec);
	return mo_buf_take(&b);
}

/* The same; of a recipe as it is once for all. */
static char *outcome_before(enum base base, const struct recipe_set *set, size_t n_sets,
			    bool *ret_ok)
{
	static char *known[ELEMENTSOF(recipes)];

	if (n_sets)
		return outcome(base, set, n_sets, ret_ok);
	*ret_ok = true;
	if (!known[base])
		known[base] = outcome(base, NULL, 0, ret_ok);
	return mo_strdup(known[base]);
}

static const struct row *row_of(const char *path)
{
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (mo_streq(rows[i].path, path))
			return &rows[i];
	return NULL;
}

static const char *what_is_wrong(const struct row *row)
{
	const struct recipe_set sets[] = { row->beside,
					   { (char *)row->path, (char *)row->value, NULL } };
	const struct recipe_set *own = row->beside.key ? sets : &sets[1];
	size_t n_beside = row->beside.key ? 1 : 0;
	bool before_ok, ok;
	_cleanup_(mo_freep) char *before = outcome_before(row->base, own, n_beside, &before_ok);
	_cleanup_(mo_freep) char *after = outcome(row->base, own, n_beside + 1, &ok);

	assert_true(before_ok);
	if (!ok && !row->reported) {
		printf("%s\n", after);
		return "is refused";
	}
	return mo_streq(before, after) ? "changes nothing" : NULL;
}

static void each_changes_something(void **state)
{
	const struct reader r = recipe_reader(NULL, NULL);
	size_t n_wrong = 0;

	for (size_t i = 0; i < r.n_keys; i++) {
		const struct row *row = row_of(r.keys[i].path);
		const char *wrong = row ? what_is_wrong(row) : "has no row here";

		if (wrong)
			printf("%s=%s: %s\n", r.keys[i].path, row && row->value ? row->value : "",
			       wrong);
		n_wrong += wrong != NULL;
	}
	assert_int_equal(n_wrong, 0);
	mo_buf_done(&sent);
}

static void each_row_is_of_a_key(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (!recipe_path_known(rows[i].path))
			fail_msg("%s: no such key", rows[i].path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_is_of_a_key),
		cmocka_unit_test(each_changes_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
