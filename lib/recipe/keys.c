/* Every key of a recipe in one table: path, type, bounds, default, place in struct recipe.
 * docs/recipe.md explains them in the same order. */
#include "lib/recipe/keys.h"

#include <signal.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/model/skip.h"
#include "lib/recipe/container_read.h"
#include "lib/recipe/features.h"
#include "lib/recipe/key_readers.h"
#include "lib/recipe/labels_read.h"
#include "lib/recipe/left_read.h"
#include "lib/recipe/model_file.h"
#include "lib/recipe/recovery_read.h"

const char *const engine_kinds[8] = { "primus-megatron", "megatron-lm", "torchtitan", "maxtext",
				      "deepspeed",       "torch",       "command",    NULL };

static const char *const words_auto[] = { "auto", NULL };
static const int64_t values_none[] = { MO_NONE };
static const char *const words_sharding[] = { "none", "zero1", "zero2", "zero3", NULL };
static const char *const words_schedule[] = { "1f1b",   "interleaved", "zb1p",     "zbv",
					      "v-half", "v-min",       "dualpipe", NULL };
static const char *const words_precision[] = { "bf16", "fp16", "fp8", "mxfp8", "nvfp4", NULL };
static const char *const words_recompute[] = { "none", "selective", "full", NULL };
static const char *const words_attention[] = { "flash", "unfused", NULL };
static const char *const words_pull[] = { "missing", "never", NULL };
static const char *const words_user[] = { "self", "root", NULL };
static const char *const words_writable[] = { "disk", "tmpfs", "no", NULL };
static const char *const words_cpu[] = { "numa", "none", NULL };
static const char *const words_memory[] = { "preferred", "bind", "interleave", "none", NULL };
static const char *const words_nic[] = { "nearest", "none", NULL };
static const char *const words_smt[] = { "auto", "one", "all", NULL };
static const char *const words_verify_bind[] = { "strict", "warn", "off", NULL };
static const char *const words_every[] = { "auto", "none", "0", "false", NULL };
static const int64_t values_every[] = { 0, MO_NONE, MO_NONE, MO_NONE };
static const char *const words_all[] = { "all", NULL };
static const int64_t values_all[] = { 0 };
static const char *const words_level[] = { "marker", "sizes", "crc", NULL };
static const char *const words_resume[] = { "auto", "never", NULL };
static const int64_t values_resume[] = { -1, -2 };
const char *const signal_words[] = { "TERM",    "INT",     "HUP",    "QUIT",   "USR1",
				     "USR2",    "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT",
				     "SIGUSR1", "SIGUSR2", NULL };
const int64_t signal_values[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
				  SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
static const char *const words_loss_action[] = { "none", "report", "rollback", NULL };
static const char *const words_hang[] = { "auto", "report", "off", NULL };
static const char *const words_straggler[] = { "report", "drain", NULL };
static const char *const words_node_loss[] = { "wait", "spare", "shrink", NULL };

static void read_model(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];
	struct mo_error err = { 0 };

	mo_desc_free(&recipe_model_desc, recipe->model);
	recipe->model = NULL;
	if (v->kind == YAML_MAP)
		recipe->model = model_read(v, r->errors);
	else if (v->kind == YAML_LIST || !mo_name_valid(v->text))
		errors_at(r->errors, v, NULL,
			  "model: expected a name of the catalogue (config/models) or a mapping");
	else {
		recipe->model = mo_desc_new(&recipe_model_desc);
		if (model_load(v->text, recipe->model, &err) < 0)
			errors_at(r->errors, v, err.hint, "model: %s", mo_error_text(&err, -1));
	}
	mo_error_done(&err);
}

#define F(p, t, f, ...) \
	{ \
		.path = (p), .type = (t), .base = BASE_RECIPE, \
		.offset = offsetof(struct recipe, f), ##__VA_ARGS__ \
	}
#define M(p, t, f, ...) \
	{ \
		.path = "model." p, .type = (t), .base = BASE_MODEL, \
		.offset = offsetof(struct recipe_model, f), ##__VA_ARGS__ \
	}
#define E(f, ...) \
	{ \
		.path = "model.moe." #f, .type = KEY_INT, .base = BASE_MOE, \
		.offset = offsetof(struct recipe_moe, f), ##__VA_ARGS__ \
	}
#define A(f, ...) \
	{ \
		.path = "model.mla." #f, .type = KEY_INT, .base = BASE_MLA, \
		.offset = offsetof(struct recipe_mla, f), ##__VA_ARGS__ \
	}
#define MAP(p, ...) \
	{ \
		.path = (p), .type = KEY_MAP, ##__VA_ARGS__ \
	}
#define CUSTOM(p, fn, ...) \
	{ \
		.path = (p), .type = KEY_CUSTOM, .read = (fn), ##__VA_ARGS__ \
	}
#define REFUSED(p, text) \
	{ \
		.path = (p), .type = KEY_REFUSED, .instead = (text) \
	}
#define C(p, t, f, ...) \
	{ \
		.path = "engine.container." p, .type = (t), .base = BASE_CONTAINER, \
		.offset = offsetof(struct recipe_container, f), ##__VA_ARGS__ \
	}
/* word: also asks for nothing */
#define NOT_HERE(p, word, text) \
	{ \
		.path = "engine.container." p, .type = KEY_REFUSED, .nothing = (word), \
		.instead = (text) \
	}
#define RANGE(a, b) .min = (a), .max = (b)
#define DEF(x) .has_def = true, .def = (x)
#define WORDS(w) .words = (w)
#define SHAPE(s) .shape = (s)

static const struct key recipe_keys[] = {
	CUSTOM("recipe", key_read_format, .required = true),
	F("name", KEY_NAME, name, .required = true),
	MAP("engine", .required = true),
	F("engine.kind", KEY_NAME, engine.kind, .required = true),
	F("engine.workdir", KEY_PATH, engine.workdir),
	F("engine.entry", KEY_TEXT, engine.entry),
	F("engine.python", KEY_TEXT, engine.python),
	CUSTOM("engine.prepare", key_read_prepare, SHAPE("string|array")),
	F("engine.argv", KEY_LIST, engine.argv,
	  .count_offset = offsetof(struct recipe, engine.n_argv)),
	CUSTOM("engine.args", key_read_args, SHAPE("object|array")),
	F("engine.strict_args", KEY_BOOL, engine.strict_args),
	F("engine.args_unchecked", KEY_LIST, engine.args_unchecked,
	  .count_offset = offsetof(struct recipe, engine.n_args_unchecked)),
	CUSTOM("engine.container", key_read_container, SHAPE("string|boolean|object")),
	CUSTOM("engine.container.image", key_read_image, SHAPE("string"), .required = true),
	CUSTOM("engine.container.mounts", key_read_mounts, SHAPE("array")),
	CUSTOM("engine.container.runtime", key_read_runtime, SHAPE("string")),
	C("pull", KEY_ENUM, pull, WORDS(words_pull)),
	MAP("engine.container.auth"),
	C("auth.file", KEY_PATH, auth_file),
	C("home", KEY_BOOL, home, DEF(0)),
	C("user", KEY_ENUM, user, WORDS(words_user), DEF(CONTAINER_SELF)),
	C("writable", KEY_ENUM, writable, WORDS(words_writable), DEF(WRITABLE_DISK)),
	CUSTOM("engine.container.shm", key_read_shm, SHAPE("string|integer")),
	C("env_drop", KEY_LIST, env_drop,
	  .count_offset = offsetof(struct recipe_container, n_env_drop)),
	NOT_HERE("devices", "job", CONTAINER_DEVICES),
	NOT_HERE("gpus", "all", CONTAINER_DEVICES),
	NOT_HERE("privileged", NULL, CONTAINER_NO_RIGHTS),
	NOT_HERE("cap_add", NULL, CONTAINER_NO_RIGHTS),
	NOT_HERE("security_opt", NULL, CONTAINER_NO_RIGHTS),
	NOT_HERE("group_add", NULL, CONTAINER_GROUPS),
	NOT_HERE("ulimits", NULL, CONTAINER_LIMITS),
	NOT_HERE("shm_size", NULL, CONTAINER_SHM),
	NOT_HERE("network", "host", CONTAINER_OF_THE_NODE),
	NOT_HERE("pid", "host", CONTAINER_OF_THE_NODE),
	NOT_HERE("ipc", "host", CONTAINER_OF_THE_NODE),
	NOT_HERE("ports", NULL, CONTAINER_OF_THE_NODE),
	NOT_HERE("hostname", NULL, CONTAINER_OF_THE_NODE),
	NOT_HERE("entrypoint", NULL, CONTAINER_PROGRAM),
	NOT_HERE("command", NULL, CONTAINER_PROGRAM),
	NOT_HERE("workdir", NULL, CONTAINER_PROGRAM),
	NOT_HERE("volumes", NULL, CONTAINER_VOLUMES),
	NOT_HERE("env", NULL, CONTAINER_ENV),
	NOT_HERE("env_file", NULL, CONTAINER_ENV),
	CUSTOM("model", read_model, SHAPE("string|object")),
	M("layers", KEY_INT, layers, RANGE(1, 10000), .required = true),
	M("hidden", KEY_INT, hidden, RANGE(1, 1 << 20), .required = true),
	M("heads", KEY_INT, heads, RANGE(1, 1 << 16), .required = true),
	M("kv_heads", KEY_INT, kv_heads, RANGE(1, 1 << 16)),
	M("head_dim", KEY_INT, head_dim, RANGE(1, 1 << 16)),
	M("ffn", KEY_INT, ffn, RANGE(1, 1 << 22)),
	M("vocab", KEY_INT, vocab, RANGE(1, 1 << 24), .required = true),
	M("gated", KEY_BOOL, gated, DEF(1)),
	M("attention", KEY_WORD, attention, WORDS(words_attention), .text_def = "flash"),
	M("mtp", KEY_INT, mtp, RANGE(0, 16), DEF(0)),
	M("window", KEY_INT, window, RANGE(0, 1 << 30), DEF(0)),
	M("tied", KEY_BOOL, tied),
	M("qk_norm", KEY_BOOL, qk_norm),
	M("bias", KEY_BOOL, bias),
	CUSTOM("model.moe", key_read_moe, SHAPE("object")),
	E(experts, RANGE(1, 1 << 16), .required = true),
	E(topk, RANGE(1, 1 << 16), .required = true),
	E(ffn, RANGE(1, 1 << 22), .required = true),
	E(shared_ffn, RANGE(0, 1 << 22), DEF(0)),
	E(dense_layers, RANGE(0, 10000), DEF(0)),
	E(every, RANGE(1, 10000), DEF(1)),
	E(groups, RANGE(0, 1 << 16), DEF(0)),
	E(topk_groups, RANGE(0, 1 << 16), DEF(0)),
	CUSTOM("model.mla", key_read_mla, SHAPE("object")),
	A(q_lora, RANGE(0, 1 << 20), DEF(0)),
	A(kv_lora, RANGE(1, 1 << 20), .required = true),
	A(qk_nope, RANGE(1, 1 << 16), .required = true),
	A(qk_rope, RANGE(1, 1 << 16), .required = true),
	A(v, RANGE(1, 1 << 16), .required = true),
	MAP("cluster", .required = true),
	F("cluster.gpus", KEY_INT, gpus, RANGE(1, MO_RANKS_MAX), .required = true),
	F("cluster.gpu", KEY_NAME, gpu),
	F("cluster.spares", KEY_INT, spares, RANGE(0, MO_NODES_MAX), DEF(0)),
	F("cluster.nodes", KEY_LIST, nodes, .count_offset = offsetof(struct recipe, n_nodes)),
	F("cluster.exclude", KEY_LIST, exclude, .count_offset = offsetof(struct recipe, n_exclude)),
	F("cluster.nic_gbps", KEY_INT, nic_gbps, RANGE(1, 100000)),
	CUSTOM("parallelism", key_read_parallelism, SHAPE("auto|object")),
	F("parallelism.tp", KEY_INT, parallelism.tp, RANGE(1, MO_RANKS_MAX), DEF(1)),
	F("parallelism.pp", KEY_INT, parallelism.pp, RANGE(1, MO_RANKS_MAX), DEF(1)),
	F("parallelism.vpp", KEY_INT, parallelism.vpp, RANGE(1, 10000), DEF(1)),
	F("parallelism.ep", KEY_INT, parallelism.ep, RANGE(1, MO_RANKS_MAX), DEF(1)),
	F("parallelism.etp", KEY_INT, parallelism.etp, RANGE(1, MO_RANKS_MAX), DEF(1)),
	F("parallelism.cp", KEY_INT, parallelism.cp, RANGE(1, MO_RANKS_MAX), DEF(1)),
	F("parallelism.dp", KEY_INT, parallelism.dp, RANGE(1, MO_RANKS_MAX), DEF(MO_NONE),
	  WORDS(words_auto), .values = values_none),
	F("parallelism.sharding", KEY_WORD, parallelism.sharding, WORDS(words_sharding),
	  .text_def = "zero1"),
	F("parallelism.schedule", KEY_WORD, parallelism.schedule, WORDS(words_schedule)),
	MAP("batch"),
	F("batch.seq", KEY_INT, seq, RANGE(1, 1 << 30)),
	F("batch.micro", KEY_INT, micro, RANGE(1, 1 << 20)),
	F("batch.global", KEY_INT, global_batch, RANGE(1, GLOBAL_BATCH_MAX)),
	F("batch.global_tokens", KEY_INT, global_tokens, RANGE(1, 1LL << 40)),
	F("precision", KEY_WORD, precision, WORDS(words_precision), .refused = "mxfp4",
	  .instead =
		  "no plan counts it; leave it out, so that plans count bf16, and give the engine "
		  "its own flags (Primus: fp4: e2m1 and fp4_recipe: mxfp4 in engine.args)"),
	F("recompute", KEY_WORD, recompute, WORDS(words_recompute)),
	F("steps", KEY_INT, steps, RANGE(1, 1000000000)),
	CUSTOM("features", key_read_features, SHAPE("object")),
	CUSTOM("features.grouped_gemm", feature_read),
	CUSTOM("features.a2a", feature_read),
	CUSTOM("features.sync_free", feature_read),
	CUSTOM("features.overlap_a2a", feature_read),
	CUSTOM("features.pipeline_layout", feature_read),
	CUSTOM("features.recompute_layers", feature_read),
	CUSTOM("features.loss_fusion", feature_read),
	CUSTOM("features.manual_gc", feature_read),
	MAP("bind"),
	F("bind.cpu", KEY_WORD, bind.cpu, WORDS(words_cpu), .text_def = "numa"),
	F("bind.memory", KEY_WORD, bind.memory, WORDS(words_memory), .text_def = "preferred"),
	F("bind.nic", KEY_WORD, bind.nic, WORDS(words_nic), .text_def = "nearest"),
	F("bind.smt", KEY_WORD, bind.smt, WORDS(words_smt), .text_def = "auto"),
	F("bind.verify", KEY_WORD, bind.verify, WORDS(words_verify_bind), .text_def = "strict"),
	F("bind.reserve_cores", KEY_INT, bind.reserve_cores, RANGE(0, 1024), DEF(2)),
	CUSTOM("env", key_read_env, SHAPE("object")),
	CUSTOM("experiment", left_read, SHAPE("object")),
	MAP("checkpoint"),
	F("checkpoint.dir", KEY_PATH, checkpoint.dir),
	F("checkpoint.every", KEY_INT, checkpoint.every, RANGE(1, 1000000000), DEF(MO_NONE),
	  WORDS(words_every), .values = values_every),
	F("checkpoint.keep", KEY_INT, checkpoint.keep, RANGE(1, 1000000), DEF(0), WORDS(words_all),
	  .values = values_all),
	F("checkpoint.verify", KEY_WORD, checkpoint.verify, WORDS(words_level),
	  .text_def = "sizes"),
	F("checkpoint.resume", KEY_INT, checkpoint.resume, RANGE(0, 1000000000), DEF(-1),
	  WORDS(words_resume), .values = values_resume),
	CUSTOM("checkpoint.layout", key_read_layout, SHAPE("string")),
	F("checkpoint.resume_args", KEY_LIST, checkpoint.resume_args,
	  .count_offset = offsetof(struct recipe, checkpoint.n_resume_args)),
	MAP("metrics"),
	CUSTOM("metrics.lines", key_read_metrics_lines, SHAPE("array")),
	MAP("stop"),
	F("stop.signal", KEY_INT, stop_signal, RANGE(1, 31), DEF(MO_NONE), WORDS(signal_words),
	  .values = signal_values, .refused = SIGNAL_REFUSED, .instead = SIGNAL_INSTEAD),
	F("stop.grace", KEY_DURATION, stop_grace_us, DEF(120LL * 1000000)),
	MAP("recovery"),
	F("recovery.on_node_loss", KEY_WORD, on_node_loss, WORDS(words_node_loss),
	  .text_def = "wait", .refused = "shrink",
	  .instead = "use wait: the job waits for its node, or for 'moectl fence NODE "
		     "--confirmed'; or spare, where the site's fence_command proves it off"),
	F("recovery.lease", KEY_DURATION, lease_us, .min = 1, DEF(120LL * 1000000)),
	F("recovery.grace", KEY_DURATION, grace_us, DEF(0)),
	F("recovery.max_cycles_without_progress", KEY_INT, max_cycles, RANGE(1, 1000), DEF(3)),
	F("recovery.backoff", KEY_DURATION, backoff_us, DEF(300LL * 1000000)),
	CUSTOM("recovery.policy", recovery_read_policy, SHAPE("object")),
	F("recovery.hang", KEY_WORD, hang, WORDS(words_hang), .text_def = "auto"),
	F("recovery.straggler", KEY_WORD, straggler, WORDS(words_straggler), .text_def = "report"),
	CUSTOM("recovery.loss_spike", key_read_loss_spike, SHAPE("none|object")),
	F("recovery.loss_spike.action", KEY_WORD, loss_action, WORDS(words_loss_action)),
	F("recovery.loss_spike.factor", KEY_REAL, loss_factor, RANGE(1, 1000)),
	F("recovery.loss_spike.max", KEY_INT, max_rollbacks, RANGE(0, 1000), DEF(MO_NONE)),
	F("recovery.loss_spike.skip", KEY_INT, skips, RANGE(0, SKIPS_MAX), DEF(MO_NONE)),
	MAP("health"),
	CUSTOM("health.preflight", key_read_preflight, SHAPE("string|array")),
	CUSTOM("labels", labels_read, SHAPE("object")),
	F("priority", KEY_INT, priority, RANGE(0, 100), DEF(50)),
	F("time_limit", KEY_DURATION, time_limit_us, DEF(MO_NONE)),
};

struct reader recipe_reader(struct recipe *recipe, struct recipe_errors *errors)
{
	return (struct reader){ .errors = errors,
				.keys = recipe_keys,
				.n_keys = ELEMENTSOF(recipe_keys),
				.bases = { recipe } };
}

struct recipe_model *model_read(const struct ynode *map, struct recipe_errors *errors)
{
	struct recipe_model *model = mo_desc_new(&recipe_model_desc);
	struct reader r = recipe_reader(NULL, errors);

	r.bases[BASE_MODEL] = model;
	schema_defaults(&r, "model.");
	schema_read(&r, "model.", map);
	return model;
}

static char *number(int64_t n)
{
	return n == MO_NONE ? NULL : mo_printf("%lld", (long long)n);
}

/* Sequences that a data-parallel rank takes at once: a pipeline its whole step, which it cuts
 * into micro-batches itself. */
static int64_t pass_batch(const struct recipe *r)
{
	int64_t pp = r->parallelism.pp, dp = r->parallelism.dp;

	if (recipe_leaves(r, "batch.micro") || r->micro == MO_NONE || pp < 1 ||
	    (!r->experiment_hash && recipe_leaves(r, "parallelism.pp")))
		return MO_NONE;
	if (pp == 1)
		return r->micro;
	return r->global_batch != MO_NONE && dp > 0 ? r->global_batch / dp : MO_NONE;
}

/* Values that follow from several of the recipe: sequences of a data-parallel rank in a step,
 * micro-batches of a pipeline, and batches counted in tokens. */
static char *derived(const struct recipe *r, const char *path)
{
	const struct recipe_model *m = r->model;
	int64_t micro = r->micro == MO_NONE ? 1 : r->micro, dp = r->parallelism.dp;
	bool batch = r->global_batch != MO_NONE && dp > 0;

	if (mo_streq(path, "derived.local_batch") && batch)
		return number(r->global_batch / dp);
	if (mo_streq(path, "derived.pass_batch"))
		return number(pass_batch(r));
	if (mo_streq(path, "derived.micro_batches") && batch)
		return number(r->global_batch / mo_times(dp, micro));
	if (mo_streq(path, "derived.stages"))
		return number(mo_times(r->parallelism.pp, r->parallelism.vpp));
	if (mo_streq(path, "derived.micro_tokens") && r->seq != MO_NONE)
		return number(mo_times(micro, r->seq));
	if (mo_streq(path, "derived.global_tokens") && r->seq != MO_NONE &&
	    r->global_batch != MO_NONE)
		return number(mo_times(r->global_batch, r->seq));
	if (!m)
		return NULL;
	if (mo_streq(path, "derived.moe_layers") && m->moe)
		return number(m->layers - m->moe->dense_layers);
	if (mo_streq(path, "derived.ffn"))
		return number(m->ffn != MO_NONE ? m->ffn : m->moe ? m->moe->ffn : MO_NONE);
	return NULL;
}

char *recipe_value(const struct recipe *r, const char *path)
{
	const struct key *k = schema_key(recipe_keys, ELEMENTSOF(recipe_keys), path);
	const void *bases[] = { r, r->model, r->model ? r->model->moe : NULL,
				r->model ? r->model->mla : NULL, r->engine.container };

	if (mo_starts_with(path, "features."))
		return feature_words(r, path + strlen("features."));
	if (!k)
		return mo_starts_with(path, "derived.") ? derived(r, path) : NULL;
	if (k->type == KEY_MAP || k->type == KEY_LIST || k->type == KEY_CUSTOM ||
	    k->type == KEY_REFUSED || !bases[k->base])
		return NULL;
	return schema_value(k, bases[k->base]);
}

bool recipe_path_known(const char *path)
{
	static const char *const derived_paths[] = {
		"derived.moe_layers",    "derived.ffn",           "derived.local_batch",
		"derived.pass_batch",    "derived.micro_batches", "derived.micro_tokens",
		"derived.global_tokens", "derived.stages"
	};

	return schema_key(recipe_keys, ELEMENTSOF(recipe_keys), path) ||
	       mo_enum_parse(derived_paths, ELEMENTSOF(derived_paths), path) >= 0;
}

const char *recipe_path_near(const char *path)
{
	const char *paths[ELEMENTSOF(recipe_keys)];

	for (size_t i = 0; i < ELEMENTSOF(recipe_keys); i++)
		paths[i] = recipe_keys[i].path;
	return mo_near_miss(path, paths, ELEMENTSOF(recipe_keys));
}

char *recipe_expand(const struct recipe *r, const char *text, const char **ret_missing)
{
	struct mo_buf b = { 0 };

	while (*text && b.len <= WORD_BYTES_MAX) { /* who gives the words refuses what is longer */
		/* to the next brace only: texts may be full of them */
		size_t n = *text == '{' ? strcspn(text + 1, "{}") : 0;
		const char *end = n && text[1 + n] == '}' ? text + 1 + n : NULL;
		_cleanup_(mo_freep) char *path = end ? mo_strndup(text + 1, n) : NULL;

		if (!path || !recipe_path_known(path)) {
			mo_buf_add(&b, text++, 1);
			continue;
		}
		_cleanup_(mo_freep) char *value = recipe_value(r, path);
		const struct key *k = schema_key(recipe_keys, ELEMENTSOF(recipe_keys), path);

		if (value)
			mo_buf_str(&b, value);
		else if (ret_missing && !*ret_missing)
			*ret_missing = k ? k->path : "model";
		text = end + 1;
	}
	return mo_buf_take(&b);
}
