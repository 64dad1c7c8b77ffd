/* Engine files (config/engines/KIND.yaml) -> struct engine. The format is described in
 * docs/engines.md. Patterns are compiled while it is read (engine_lines.c), so that a bad one is
 * found with its place and never on a node. */
#include "lib/recipe/engine_file.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/config_inputs.h"
#include "lib/recipe/data_words.h"
#include "lib/recipe/engine_checks.h"
#include "lib/recipe/engine_experiment.h"
#include "lib/recipe/engine_layout.h"
#include "lib/recipe/engine_lines.h"
#include "lib/recipe/engine_pairs.h"
#include "lib/recipe/engine_plan_read.h"
#include "lib/recipe/engine_prepare_read.h"
#include "lib/recipe/engine_rules.h"
#include "lib/recipe/env_items.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/owned.h"
#include "lib/recipe/schema_scalar.h"

static const char *const words_config[] = { "flags", "dotted", "kept", "equals", NULL };
static const char *const words_experiment[] = { "primus", NULL };
static const char *const words_names[] = { "workspace", "work_group", "user_name", "exp_name",
					   NULL };
static const char *const words_processes[] = { "gpu", "node", NULL };
static const char *const words_metrics_rank[] = { "first", "last", "any", NULL };

static void read_lines(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	engine_lines_read(r->errors, "lines", v, &e->rules, &e->n_rules);
}

static void read_flags(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	engine_pairs_read(r, "flags", v, &e->flags, &e->n_flags);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *key = v->items[i].key;
		_cleanup_(mo_freep) char *path =
			mo_strndup(key->text, strcspn(key->text, FLAG_ROW_OPS));

		if (!recipe_path_known(path))
			errors_at(r->errors, key, NULL, "flags: '%s' is no value of a recipe",
				  path);
		flag_key_check(r, "flags", key);
	}
}

/* Done already where the file was found (engine_load). */
static void read_like(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_SCALAR || !mo_name_valid(v->text))
		errors_at(r->errors, v, NULL, "like: expected the kind of another engine file");
}

static void read_exit_codes(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	engine_pairs_read(r, "exit_codes", v, &e->exit_codes, &e->n_exit_codes);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *code = v->items[i].key;
		int64_t n;

		if (mo_parse_i64(code->text, 1, 255, &n) < 0)
			errors_at(r->errors, code, NULL,
				  "exit_codes: '%.60s' is no exit code of a program that failed: 1 "
				  "to 255",
				  code->text);
	}
}

static void read_engine_env(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];
	struct env_item *items = NULL;
	size_t n = 0;

	env_items_read(r->errors, "env", v, &items, &n);
	for (size_t i = 0; i < n; i++) {
		struct kv *value = MO_ADD(e, env, &kv_desc),
			  *reason = MO_ADD(e, env_reason, &kv_desc);

		mo_str_set(&value->key, items[i].name);
		mo_str_set(&value->value, items[i].value);
		mo_str_set(&reason->key, items[i].name);
		mo_str_set(&reason->value, items[i].reason);
	}
	mo_vec_clear(&env_item_desc, (void **)&items, &n);
}

static void read_may_change(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	value_list(r, "may_change", v, &e->may_change, &e->n_may_change);
	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++)
		if (v->items[i].value->kind == YAML_SCALAR &&
		    !recipe_path_known(v->items[i].value->text))
			errors_at(r->errors, v->items[i].value, NULL,
				  "may_change: '%s' is no value of a recipe",
				  v->items[i].value->text);
}

static void read_heartbeat_file(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	if (value_text(r, k->path, v, &e->heartbeat.file))
		engine_pattern_check(r, v, NULL);
	if (e->heartbeat.file && !strstr(e->heartbeat.file, "{rank}"))
		errors_at(r->errors, v, NULL,
			  "heartbeat.file: it needs {rank}: each rank has a file of its own");
}

static void read_heartbeat_phases(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	engine_pairs_read(r, k->path, v, &e->heartbeat.phases, &e->heartbeat.n_phases);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++)
		if (v->items[i].value->kind == YAML_SCALAR &&
		    mo_enum_parse(engine_phases, ELEMENTSOF(engine_phases) - 1,
				  v->items[i].value->text) < 0)
			errors_at(r->errors, v->items[i].value, NULL,
				  "heartbeat.phases: expected one of init, load, train, save, "
				  "eval, got '%s'",
				  v->items[i].value->text);
}

static void read_experiment_values(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	if (v->kind != YAML_MAP)
		errors_at(r->errors, v, NULL, "%s: expected a mapping", k->path);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *key = v->items[i].key, *rows = v->items[i].value;
		_cleanup_(mo_freep) char *path = mo_strndup(key->text, strcspn(key->text, "="));
		bool several = rows->kind == YAML_LIST;

		if (!recipe_path_known(path))
			errors_at(r->errors, key, NULL, "%s: '%s' is no value of a recipe", k->path,
				  path);
		for (size_t n = 0; n < (several ? rows->n : 1); n++) {
			_cleanup_(mo_freep) char *text = NULL;

			if (!value_text(r, k->path, several ? rows->items[n].value : rows, &text))
				continue;
			struct kv *row = MO_ADD(e, experiment_values, &kv_desc);

			mo_str_set(&row->key, key->text);
			row->value = TAKE_PTR(text);
		}
	}
}

static void read_experiment_names(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	engine_pairs_read(r, k->path, v, &e->save_names, &e->n_save_names);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++)
		if (mo_enum_parse(words_names, ELEMENTSOF(words_names) - 1, v->items[i].key->text) <
		    0)
			errors_at(r->errors, v->items[i].key, NULL,
				  "experiment.names: expected workspace, work_group, user_name or "
				  "exp_name, got '%s'",
				  v->items[i].key->text);
}

static void read_config_files(struct reader *r, const struct key *k, const struct ynode *v)
{
	static const char *const formats[] = { "yaml", "json", "toml" };
	struct engine *e = r->bases[0];

	engine_pairs_read(r, k->path, v, &e->config_files, &e->n_config_files);
	for (size_t i = 0; i < e->n_config_files; i++) {
		const char *value = e->config_files[i].value ? e->config_files[i].value : "";
		_cleanup_(mo_freep) char *format = mo_strndup(value, strcspn(value, " "));

		if (mo_enum_parse(formats, ELEMENTSOF(formats), format) < 0)
			errors_at(r->errors, v, NULL,
				  "config.files: '%s': expected yaml, json or toml first", value);
	}
}

static void read_engine_format(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_SCALAR || !mo_streq(v->text, "1"))
		errors_at(r->errors, v, NULL,
			  "engine: this version reads format 1: write 'engine: 1'");
}

static void read_inputs(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	engine_pairs_read(r, k->path, v, &e->inputs, &e->n_inputs);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *how = v->items[i].value;
		const char *wrong = how->kind == YAML_SCALAR ? config_input_wrong(how->text) : NULL;

		if (wrong)
			errors_at(r->errors, how, NULL, "inputs: %s", wrong);
	}
}

#define F(p, t, f, ...) \
	{ \
		.path = (p), .type = (t), .offset = offsetof(struct engine, f), ##__VA_ARGS__ \
	}
#define LIST(p, f, n_f, ...) \
	F(p, KEY_LIST, f, .count_offset = offsetof(struct engine, n_f), ##__VA_ARGS__)
#define CUSTOM(p, fn, ...) \
	{ \
		.path = (p), .type = KEY_CUSTOM, .read = (fn), ##__VA_ARGS__ \
	}
static const struct key engine_keys[] = {
	CUSTOM("engine", read_engine_format, .required = true),
	F("kind", KEY_NAME, kind, .required = true),
	CUSTOM("like", read_like),
	F("title", KEY_TEXT, title),
	F("source", KEY_TEXT, source, .required = true),
	F("python", KEY_TEXT, python),
	F("entry", KEY_TEXT, entry),
	LIST("argv", argv, n_argv, .required = true),
	F("args_equals", KEY_BOOL, args_equals),
	CUSTOM("flags", read_flags),
	CUSTOM("resume", engine_resume_read),
	CUSTOM("fresh", engine_resume_read),
	CUSTOM("skip", engine_skip_read),
	CUSTOM("env", read_engine_env),
	F("metrics_rank", KEY_ENUM, metrics_rank, .words = words_metrics_rank),
	CUSTOM("lines", read_lines),
	CUSTOM("layout", engine_layout_read),
	F("needs_steps", KEY_BOOL, needs_steps),
	F("processes", KEY_ENUM, processes, .words = words_processes),
	{ .path = "prepare", .type = KEY_MAP },
	CUSTOM("prepare.argv", engine_prepare_argv_read),
	CUSTOM("prepare.script", engine_prepare_script_read),
	F("prepare.limit", KEY_DURATION, prepare_limit_us, .min = 1000000),
	F("prepare.hooks", KEY_BOOL, prepare_hooks),
	{ .path = "heartbeat", .type = KEY_MAP },
	F("heartbeat.dir", KEY_TEXT, heartbeat.dir, .required = true),
	CUSTOM("heartbeat.file", read_heartbeat_file, .required = true),
	F("heartbeat.iteration", KEY_TEXT, heartbeat.iteration, .required = true),
	F("heartbeat.event", KEY_TEXT, heartbeat.event),
	F("heartbeat.done", KEY_TEXT, heartbeat.done),
	CUSTOM("heartbeat.phases", read_heartbeat_phases),
	CUSTOM("may_change", read_may_change),
	F("stop_saves", KEY_BOOL, stop_saves),
	{ .path = "pipeline_dump", .type = KEY_MAP },
	F("pipeline_dump.key", KEY_NAME, dump_key, .required = true),
	F("pipeline_dump.in", KEY_TEXT, dump_in, .required = true),
	CUSTOM("exit_codes", read_exit_codes),
	CUSTOM("features", engine_features_read),
	CUSTOM("missing", engine_missing_read),
	{ .path = "experiment", .type = KEY_MAP },
	F("experiment.format", KEY_WORD, experiment, .words = words_experiment, .required = true),
	F("experiment.framework", KEY_NAME, experiment_framework),
	CUSTOM("experiment.values", read_experiment_values),
	F("experiment.directory", KEY_NAME, save_below),
	F("experiment.saves", KEY_NAME, save_key),
	CUSTOM("experiment.names", read_experiment_names),
	LIST("experiment.no_model", experiment_no_model, n_experiment_no_model),
	LIST("experiment.plan_keys", experiment_plan_keys, n_experiment_plan_keys),
	CUSTOM("experiment.forced", engine_forced_read),
	{ .path = "config", .type = KEY_MAP },
	F("config.words", KEY_WORD, config_words, .words = words_config, .required = true),
	CUSTOM("config.files", read_config_files),
	F("config.variables", KEY_NAME, config_variables),
	CUSTOM("inputs", read_inputs),
	CUSTOM("config.values", read_experiment_values),
	LIST("config.plan_keys", experiment_plan_keys, n_experiment_plan_keys),
	CUSTOM("plan", engine_plan_read),
	CUSTOM("versions", engine_versions_read),
	CUSTOM("rules", engine_rules_read),
	CUSTOM("keys", engine_keys_read),
	CUSTOM("keys_older", engine_keys_older_read),
	CUSTOM("layout_flags", engine_layout_flags_read),
	CUSTOM("outputs", engine_outputs_read),
	CUSTOM("data_parallel", engine_data_parallel_read),
	CUSTOM("keys_source", engine_keys_source_read),
	CUSTOM("keys_complete", engine_keys_complete_read),
	CUSTOM("keys_more", engine_keys_more_read),
	CUSTOM("renamed", engine_renamed_read),
	CUSTOM("untold", engine_untold_read),
	CUSTOM("module_names", engine_module_names_read),
	CUSTOM("last_save_off", engine_last_save_off_read),
	CUSTOM("types", engine_types_read),
	CUSTOM("names", engine_names_read),
	CUSTOM("owned", engine_owned_read),
	F("bool_words", KEY_BOOL, bool_words),
	LIST("main_words", main_words, n_main_words),
	F("even_layers", KEY_BOOL, even_layers),
	F("stop_signal", KEY_INT, stop_signal, .min = 1, .max = 31, .words = signal_words,
	  .values = signal_values, .refused = SIGNAL_REFUSED, .instead = SIGNAL_INSTEAD),
};

int engine_read(const struct ynode *root, struct engine *ret, struct recipe_errors *errors)
{
	struct engine e;
	struct reader r = { .errors = errors,
			    .keys = engine_keys,
			    .n_keys = ELEMENTSOF(engine_keys),
			    .bases = { &e } };

	mo_desc_init(&engine_desc, &e);
	e.metrics_rank = 0;
	e.processes = PROCESS_PER_GPU;
	if (root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else
		errors_at(errors, root, NULL, "an engine file is a mapping");
	if (e.n_inputs && !e.experiment && !e.config_words)
		errors_at(errors, ynode_get(root, "inputs"), NULL,
			  "inputs: nothing says how its configuration is read: give config, or "
			  "experiment");
	if (!errors->n) {
		engine_experiment_finish(&e, root, errors);
		data_words(e.argv, e.n_argv, ynode_get(root, "argv"), errors);
	}
	if (recipe_errors_finish(errors) < 0) {
		mo_desc_done(&engine_desc, &e);
		return -EINVAL;
	}
	engine_owned_finish(&e);
	mo_desc_done(&engine_desc, ret);
	*ret = e;
	return 0;
}

int engine_parse(const char *text, size_t n, struct engine *ret, struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, "engine file", errors);

	return root ? engine_read(root, ret, errors) : recipe_errors_finish(errors);
}
