/* Sections of an engine file that say what a recipe may ask of the engine. The words of a
 * feature become rows of `flags`, so that engine.args which contradict them are found like those
 * that contradict any other value; the rest is kept in struct engine_checks until the recipe is
 * checked. */
#include "lib/recipe/engine_checks.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/env_names.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/engine_pairs.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/schema_scalar.h"

struct engine_checks *engine_checks_of(struct engine *e)
{
	if (!e->checks)
		e->checks = mo_desc_new(&engine_checks_desc);
	return e->checks;
}

struct feature_file {
	char *words, *reason, *missing;
};
static const struct key feature_keys[] = {
	{ .path = "words", .type = KEY_TEXT, .offset = offsetof(struct feature_file, words) },
	{ .path = "reason", .type = KEY_TEXT, .offset = offsetof(struct feature_file, reason) },
	{ .path = "missing", .type = KEY_TEXT, .offset = offsetof(struct feature_file, missing) },
	{ .path = "env", .type = KEY_MAP },
};

static void read_feature_env(struct reader *r, const struct ynode *env, struct engine_feature *f)
{
	for (size_t i = 0; i < env->n; i++) {
		const struct ynode *name = env->items[i].key;
		struct kv *item = MO_ADD(f, env, &kv_desc);

		mo_str_set(&item->key, name->text);
		value_text(r, "features", env->items[i].value, &item->value);
		if (mo_env_launch_name(name->text))
			errors_at(r->errors, name, NULL, "features: %s is set by the launcher",
				  name->text);
	}
}

/* {words, env, reason} or {missing}. */
static void read_feature(struct reader *r, const char *when, const struct ynode *key,
			 const struct ynode *v)
{
	struct engine *e = r->bases[0];
	struct feature_file file = { 0 };
	struct reader map = { .errors = r->errors,
			      .keys = feature_keys,
			      .n_keys = ELEMENTSOF(feature_keys),
			      .bases = { &file } };
	const struct ynode *env = ynode_get(v, "env");

	for (size_t i = 0; i < v->n; i++)
		if (!mo_streq(v->items[i].key->text, "env")) {
			struct ynode one = { .kind = YAML_MAP,
					     .items = &v->items[i],
					     .n = 1,
					     .line = v->line,
					     .column = v->column };

			schema_read(&map, "", &one);
		}
	if (file.missing) {
		struct kv *m = MO_ADD(engine_checks_of(e), missing, &kv_desc);

		mo_str_set(&m->key, when);
		mo_str_set(&m->value, file.missing);
	} else {
		struct kv *flag = MO_ADD(e, flags, &kv_desc);

		mo_str_set(&flag->key, when);
		mo_str_set(&flag->value, file.words ? file.words : "");
	}
	if (file.missing && (file.words || env))
		errors_at(r->errors, key, NULL,
			  "features: a feature is missing, or it has words and variables");
	if (env && env->kind == YAML_MAP) {
		struct engine_feature *f = MO_ADD(e, features, &engine_feature_desc);

		mo_str_set(&f->when, when);
		mo_str_set(&f->reason, file.reason);
		read_feature_env(r, env, f);
	}
	if (env && (env->kind != YAML_MAP || !file.reason))
		errors_at(r->errors, env, NULL,
			  "features: expected env: {NAME: value} and a reason");
	free(file.words);
	free(file.reason);
	free(file.missing);
}

void engine_features_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL,
			  "features: expected a mapping such as {loss_fusion=true: --flag}");
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *key = v->items[i].key, *value = v->items[i].value;
		_cleanup_(mo_freep) char *when = mo_printf("features.%s", key->text),
					 *path = mo_strndup(when, strcspn(when, FLAG_ROW_OPS));

		if (!recipe_path_known(path))
			errors_at(r->errors, key, NULL, "features: there is no feature '%s'",
				  path + strlen("features."));
		flag_key_check(r, "features", key);
		if (!recipe_path_known(path))
			continue;
		if (value->kind == YAML_MAP)
			read_feature(r, when, key, value);
		else {
			struct kv *flag = MO_ADD(e, flags, &kv_desc);

			mo_str_set(&flag->key, when);
			value_text(r, "features", value, &flag->value);
		}
	}
}

void engine_missing_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	engine_pairs_read(r, k->path, v, &engine_checks_of(e)->missing,
			  &engine_checks_of(e)->n_missing);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *key = v->items[i].key;
		_cleanup_(mo_freep) char *path = mo_strndup(key->text, strcspn(key->text, "="));

		if (!recipe_path_known(path) || mo_starts_with(path, "features."))
			errors_at(r->errors, key, NULL, "missing: '%s' is no value of a recipe",
				  path);
	}
}

/* Words between blanks: thousands of flags, which as a list would be as many nodes. */
static void add_words(const char *text, char ***ret, size_t *n_ret)
{
	for (const char *s = text + strspn(text, " \n\t"); *s; s += strspn(s, " \n\t")) {
		size_t n = strcspn(s, " \n\t");
		_cleanup_(mo_freep) char *word = mo_strndup(s, n);

		mo_strs_add(ret, n_ret, word);
		s += n;
	}
}

void engine_keys_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	if (v->kind == YAML_SCALAR)
		add_words(v->text, &c->keys, &c->n_keys);
	else
		value_list(r, "keys", v, &c->keys, &c->n_keys);
}

void engine_keys_older_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	value_list(r, k->path, v, &c->keys_older, &c->n_keys_older);
}

void engine_layout_flags_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	value_list(r, k->path, v, &c->layout_flags, &c->n_layout_flags);
}

void engine_outputs_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	value_list(r, k->path, v, &c->outputs, &c->n_outputs);
}

void engine_data_parallel_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	value_list(r, k->path, v, &c->data_parallel, &c->n_data_parallel);
	if (c->n_data_parallel && c->n_data_parallel != 2)
		errors_at(r->errors, v, NULL,
			  "data_parallel: expected two flags: of replicas, of shards");
}

void engine_keys_source_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	value_text(r, k->path, v, &engine_checks_of(r->bases[0])->keys_source);
}

void engine_keys_more_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	value_text(r, k->path, v, &engine_checks_of(r->bases[0])->keys_more);
}

void engine_keys_complete_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	value_bool(r, k->path, v, &engine_checks_of(r->bases[0])->keys_complete);
}

void engine_renamed_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	if (v->kind != YAML_MAP)
		errors_at(r->errors, v, NULL,
			  "renamed: expected a mapping of old flags to new ones");
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		struct kv *pair = MO_ADD(c, renamed, &kv_desc);

		mo_str_set(&pair->key, v->items[i].key->text);
		value_text(r, "renamed", v->items[i].value, &pair->value);
	}
}

void engine_last_save_off_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	engine_pairs_read(r, k->path, v, &c->last_save_off, &c->n_last_save_off);
}

void engine_untold_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	engine_pairs_read(r, k->path, v, &c->untold, &c->n_untold);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *key = v->items[i].key, *value = v->items[i].value;
		const char *text = value->kind == YAML_SCALAR ? value->text : "";
		_cleanup_(mo_freep) char *other =
			*text == '{' ? mo_strndup(text + 1, strcspn(text + 1, "}")) : NULL;

		if (!recipe_path_known(key->text))
			errors_at(r->errors, key, NULL, "%s: '%.60s' is no value of a recipe",
				  k->path, key->text);
		if (other &&
		    (!recipe_path_known(other) || !mo_streq(text + strlen(other) + 1, "}")))
			errors_at(r->errors, value, NULL, "%s: '%.60s' is no value of a recipe",
				  k->path, text);
	}
}

void engine_module_names_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	engine_pairs_read(r, k->path, v, &c->module_names, &c->n_module_names);
}

/* Words between blanks, hundreds of them: longer than other texts. */
static void read_word_lists(struct reader *r, const char *what, const struct ynode *v,
			    struct kv **ret, size_t *n_ret)
{
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *words = v->items[i].value;

		if (words->kind != YAML_SCALAR) {
			errors_at(r->errors, words, NULL, "%s: expected words between blanks",
				  what);
			continue;
		}
		struct kv *row = mo_vec_add(&kv_desc, (void **)ret, n_ret);

		mo_str_set(&row->key, v->items[i].key->text);
		mo_str_set(&row->value, words->text);
	}
	if (v->kind != YAML_MAP)
		errors_at(r->errors, v, NULL, "%s: expected a mapping of words between blanks",
			  what);
}

void engine_types_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	read_word_lists(r, k->path, v, &c->types, &c->n_types);
}

void engine_names_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine_checks *c = engine_checks_of(r->bases[0]);

	read_word_lists(r, k->path, v, &c->names, &c->n_names);
}

/* {when: {KEY: CONDITION}, set: {KEY: WORD}, because: TEXT} */
static void read_force(struct reader *r, const struct ynode *v)
{
	struct engine_force *f = MO_ADD((struct engine *)r->bases[0], forced, &engine_force_desc);
	const struct ynode *when = ynode_get(v, "when"), *set = ynode_get(v, "set"),
			   *because = ynode_get(v, "because");

	if (v->kind != YAML_MAP || v->n != 3 || !set || !when || !because) {
		errors_at(r->errors, v, NULL, "experiment.forced: expected {when, set, because}");
		return;
	}
	engine_pairs_read(r, "experiment.forced", when, &f->when, &f->n_when);
	engine_pairs_read(r, "experiment.forced", set, &f->set, &f->n_set);
	value_text(r, "experiment.forced", because, &f->because);
}

void engine_forced_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, "%s: expected a list of {when, set, because}",
			  k->path);
	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++)
		read_force(r, v->items[i].value);
}

void engine_versions_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	engine_pairs_read(r, k->path, v, &e->versions, &e->n_versions);
	for (size_t i = 0; i < e->n_versions; i++)
		if (!mo_name_valid(e->versions[i].value))
			errors_at(r->errors, v, NULL,
				  "versions: %s: expected the kind of another engine file",
				  e->versions[i].key);
}
