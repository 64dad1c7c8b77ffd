/* Environment profiles: every config/env/NAME.yaml says in `when` what it applies to, and in
 * `layer` and `order` what it overrides (docs/environment.md). Here the part of `when` that the
 * recipe decides is evaluated; GPU and NIC stay with the profile for launch_make(). Each item
 * has a value, a reason and a source; what other launchers do (`alternatives`) becomes part of
 * the reason. */
#include "lib/recipe/env_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/env_profile.h"
#include "lib/model/launch.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/catalogue_list.h"
#include "lib/recipe/engine_words.h"
#include "lib/recipe/env_items.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/schema_scalar.h"

#define OWN "args." /* begins a path of the engine's own keys */

/* The recipe's part of `when`: it has one of these words at the path. */
struct condition {
	char *path;
	char **words;
	size_t n;
};

/* What a file is read into. */
struct env_file {
	struct env_profile profile;
	struct condition *conditions;
	size_t n_conditions;
	struct env_limit *limits;
	size_t n_limits;
};

static void env_file_free(void *arg)
{
	struct env_file *f = arg;

	for (size_t i = 0; i < f->n_conditions; i++) {
		for (size_t k = 0; k < f->conditions[i].n; k++)
			free(f->conditions[i].words[k]);
		free(f->conditions[i].words);
		free(f->conditions[i].path);
	}
	free(f->conditions);
	for (size_t i = 0; i < f->n_limits; i++) {
		free(f->limits[i].name);
		free(f->limits[i].reason);
	}
	free(f->limits);
	mo_desc_done(&env_profile_desc, &f->profile);
	free(f);
}

static void read_items(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct env_file *f = r->arg;

	env_items_read(r->errors, k->path, v, &f->profile.items, &f->profile.n_items);
}

#define L(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct env_limit, f), ##__VA_ARGS__ \
	}
static const struct key limit_keys[] = {
	L(name, KEY_TEXT, .required = true),
	L(min, KEY_INT, .min = INT64_MIN, .max = INT64_MAX, .required = true),
	L(max, KEY_INT, .min = INT64_MIN, .max = INT64_MAX, .required = true),
	L(reason, KEY_TEXT, .required = true),
};

static void read_limits(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct env_file *f = r->arg;

	if (v->kind != YAML_LIST) {
		errors_at(r->errors, v, NULL, "%s: expected a list of {name, min, max, reason}",
			  k->path);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *node = v->items[i].value;

		if (node->kind != YAML_MAP) {
			errors_at(r->errors, node, NULL, "%s: expected {name, min, max, reason}",
				  k->path);
			continue;
		}
		struct env_limit *limit = MO_GROW(f->limits, f->n_limits);
		struct reader in = { .errors = r->errors,
				     .keys = limit_keys,
				     .n_keys = ELEMENTSOF(limit_keys),
				     .bases = { limit } };

		*limit = (struct env_limit){ 0 };
		schema_read(&in, "", node);
	}
}

static void read_env_format(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_SCALAR || !mo_streq(v->text, "1"))
		errors_at(r->errors, v, NULL, "env: this version reads format 1: write 'env: 1'");
}

/* One word or a list of words. */
static void read_words(struct reader *r, const struct key *k, const struct ynode *v, char ***ret,
		       size_t *n_ret)
{
	_cleanup_(mo_freep) char *word = NULL;

	if (v->kind == YAML_LIST)
		value_list(r, k->path, v, ret, n_ret);
	else if (value_text(r, k->path, v, &word))
		mo_strs_add(ret, n_ret, word);
}

static void read_gpu(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct env_profile *p = &((struct env_file *)r->arg)->profile;

	read_words(r, k, v, &p->gpu, &p->n_gpu);
}

static void read_nic(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct env_profile *p = &((struct env_file *)r->arg)->profile;

	read_words(r, k, v, &p->nic, &p->n_nic);
}

/* ">N": a number above N; else the text itself. */
static bool word_matches(const char *word, const char *value)
{
	int64_t least, have;

	if (!value)
		return false;
	if (word[0] == '>')
		return mo_parse_i64(word + 1, INT64_MIN, INT64_MAX, &least) == 0 &&
		       mo_parse_i64(value, INT64_MIN, INT64_MAX, &have) == 0 && have > least;
	return mo_streq(word, value);
}

static void read_condition(struct reader *r, const char *path, const struct ynode *v)
{
	struct env_file *f = r->arg;
	struct condition *c = MO_GROW(f->conditions, f->n_conditions);
	struct key k = { .path = path };

	*c = (struct condition){ .path = mo_strdup(path) };
	read_words(r, &k, v, &c->words, &c->n);
}

/* What the recipe says there; of the engine's own keys also what its configuration does. Caller
 * frees; NULL = nothing. */
static char *condition_value(const struct condition *c, const struct recipe *recipe)
{
	if (!recipe || !mo_starts_with(c->path, OWN))
		return recipe ? recipe_value(recipe, c->path) : NULL;
	const char *key = c->path + strlen(OWN),
		   *said = recipe_engine_arg(recipe, key, strlen(key));

	return mo_strdup(said ? said : recipe_experiment_arg(recipe, key));
}

/* features.* are looked up in what the recipe gives. */
static bool condition_holds(const struct condition *c, const struct recipe *recipe)
{
	_cleanup_(mo_freep) char *value = condition_value(c, recipe);
	const char *feature =
		mo_starts_with(c->path, "features.") ? c->path + strlen("features.") : "";
	bool found = false;

	for (size_t i = 0; recipe && i < recipe->n_features; i++)
		if (mo_streq(recipe->features[i].key, feature))
			mo_str_set(&value, recipe->features[i].value);
	for (size_t i = 0; i < c->n; i++)
		found = found || word_matches(c->words[i], value);
	return found;
}

static void read_engine(struct reader *r, const struct key *k, const struct ynode *v)
{
	read_condition(r, "engine.kind", v);
}

static void read_feature(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL,
			  "%s: expected a mapping of recipe values, such as {parallelism.sharding: "
			  "zero3}",
			  k->path);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *path = v->items[i].key;

		if (mo_starts_with(path->text, OWN) || recipe_path_known(path->text))
			read_condition(r, path->text, v->items[i].value);
		else
			errors_at(r->errors, path, NULL, "%s: '%.60s' is no value of a recipe",
				  k->path, path->text);
	}
}

/* from ENV_BASE on */
static const char *const words_layer[] = { "base", "profile", "engine", "feature", NULL };
static const char *const words_vendor[] = { "amd", "nvidia", NULL };
static const struct key file_keys[] = {
	{ .path = "env", .type = KEY_CUSTOM, .read = read_env_format, .required = true },
	{ .path = "layer",
	  .type = KEY_ENUM,
	  .offset = offsetof(struct env_file, profile.layer),
	  .words = words_layer,
	  .required = true },
	{ .path = "order",
	  .type = KEY_INT,
	  .offset = offsetof(struct env_file, profile.order),
	  .min = 0,
	  .max = 1000 },
	{ .path = "when", .type = KEY_MAP },
	{ .path = "when.vendor",
	  .type = KEY_WORD,
	  .offset = offsetof(struct env_file, profile.vendor),
	  .words = words_vendor },
	{ .path = "when.gpu", .type = KEY_CUSTOM, .read = read_gpu },
	{ .path = "when.nic", .type = KEY_CUSTOM, .read = read_nic },
	{ .path = "when.engine", .type = KEY_CUSTOM, .read = read_engine },
	{ .path = "when.feature", .type = KEY_CUSTOM, .read = read_feature },
	{ .path = "items", .type = KEY_CUSTOM, .read = read_items },
	{ .path = "limits", .type = KEY_CUSTOM, .read = read_limits },
};

/* config/env/NAME.yaml; NULL with err. Borrowed until the next call: a file is read when it is
 * new, and for each recipe only asked whether it applies. */
static const struct env_file *profile_read(const char *name, const char *path, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	const struct ynode *root = catalogue_tree(path, "environment profile", err);
	struct env_file *file = root ? catalogue_read(root) : NULL;

	if (!root || file)
		return file;
	file = mo_alloc(sizeof(*file));
	struct reader r = { .errors = &errors,
			    .keys = file_keys,
			    .n_keys = ELEMENTSOF(file_keys),
			    .bases = { file },
			    .arg = file };
	mo_desc_init(&env_profile_desc, &file->profile);
	file->profile.order = 0;
	if (root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else
		errors_at(&errors, root, NULL, "an environment profile is a mapping");
	file->profile.layer += ENV_BASE; /* no file says anything below it */
	if (!errors.n && !file->profile.n_items && !file->n_limits)
		errors_at(&errors, root, NULL, "missing key 'items', or 'limits'");
	for (size_t i = 0; i < file->profile.n_items; i++) {
		struct env_item *item = &file->profile.items[i];
		_cleanup_(mo_freep) char *source =
			item->source ? mo_printf("env/%s.yaml: %s", name, item->source)
				     : mo_printf("env/%s.yaml", name);

		item->layer = file->profile.layer;
		mo_str_set(&item->source, source);
	}
	mo_str_set(&file->profile.name, name);
	if (errors.n == 0)
		return catalogue_keep_read(root, file, env_file_free);
	env_file_free(file);
	catalogue_fail(&errors, path, err);
	return NULL;
}

/* True: the profile applies to the recipe, and ret is filled. */
static bool profile_apply(const struct env_file *file, const struct recipe *recipe,
			  struct env_profile *ret)
{
	if (!file->profile.n_items) /* limits alone are nothing for a node */
		return false;
	for (size_t i = 0; i < file->n_conditions; i++)
		if (!condition_holds(&file->conditions[i], recipe))
			return false;
	mo_desc_init(&env_profile_desc, ret);
	mo_desc_copy(&env_profile_desc, ret, &file->profile);
	return true;
}

static int by_precedence(const void *a, const void *b)
{
	const struct env_profile *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer - y->layer;
	return x->order != y->order ? (x->order > y->order) - (x->order < y->order)
				    : strcmp(x->name, y->name);
}

int env_profiles(const struct recipe *r, struct env_profile **ret, size_t *n_ret,
		 struct mo_error *err)
{
	const struct catalogue_list *l = catalogue_list("env");

	if (!l->n)
		return mo_error_set(err, -EINVAL,
				    "no environment profiles are installed: reinstall the data "
				    "files, or set MOE_DATA_DIR to the directory that holds env/");
	for (size_t i = 0; i < l->n; i++) {
		const struct env_file *file = profile_read(l->names[i], l->paths[i], err);
		struct env_profile profile = { 0 };

		if (!file)
			return -EINVAL;
		if (profile_apply(file, r, &profile))
			*(struct env_profile *)mo_vec_add(&env_profile_desc, (void **)ret, n_ret) =
				profile;
	}
	if (*n_ret)
		qsort(*ret, *n_ret, sizeof(**ret), by_precedence);
	return 0;
}

int env_limits_read(struct env_limits *ret, struct mo_error *err)
{
	const struct catalogue_list *l = catalogue_list("env");

	for (size_t i = 0; i < l->n; i++) {
		const struct env_file *file = profile_read(l->names[i], l->paths[i], err);

		if (!file)
			return -EINVAL;
		for (size_t k = 0; k < file->n_limits; k++) {
			const struct env_limit *limit = &file->limits[k];

			*MO_GROW(ret->items, ret->n) =
				(struct env_limit){ mo_strdup(limit->name), limit->min, limit->max,
						    mo_strdup(limit->reason) };
		}
	}
	return 0;
}

void env_limits_done(struct env_limits *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].name);
		free(l->items[i].reason);
	}
	free(l->items);
	*l = (struct env_limits){ 0 };
}

const struct env_limit *env_limit(const struct env_limits *l, const char *variable)
{
	for (size_t i = 0; i < l->n; i++)
		if (mo_streq(l->items[i].name, variable))
			return &l->items[i];
	return NULL;
}
