/* Values that only the engine's own experiment says (left.h). They stand in `experiment:`
 * (left_read.c). */
#include "lib/recipe/left.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/model/recipe.h"
#include "lib/recipe/experiment_record.h"
#include "lib/recipe/keys.h"

#define LEFT_MAX 64

static struct yitem *item_of(struct ynode *map, const char *key, size_t n)
{
	for (size_t i = 0; i < map->n; i++)
		if (strlen(map->items[i].key->text) == n &&
		    !strncmp(map->items[i].key->text, key, n))
			return &map->items[i];
	return NULL;
}

/* The recipe's own word about the path, or about what it is part of. */
static bool is_given(const struct ynode *root, const char *path)
{
	const struct ynode *vpp = ynode_find(root, "parallelism.vpp");

	/* One virtual stage takes the file's layout away. */
	if (mo_streq(path, "features.pipeline_layout") && vpp && !vpp->left &&
	    vpp->kind == YAML_SCALAR && mo_streq(vpp->text, "1"))
		return true;
	const struct ynode *n = ynode_find(root, path), *model = ynode_get(root, "model");

	/* Half a model from each would be neither. */
	if ((mo_streq(path, "model") || mo_starts_with(path, "model.")) && model && !model->left &&
	    !ynode_is_null(model))
		return true;
	if (!n && mo_streq(path, "batch.global"))
		n = ynode_find(root, "batch.global_tokens");
	return n && !n->left && !ynode_is_null(n);
}

static void put(struct ynode *root, const char *path, const struct ynode *value, const char *said)
{
	struct ynode *map = root;

	for (const char *part = path;;) {
		size_t n = strcspn(part, ".");
		struct yitem *item = item_of(map, part, n);

		if (!item) {
			_cleanup_(mo_freep) char *key = mo_strndup(part, n);

			item = MO_GROW(map->items, map->n);
			item->key = ynode_scalar(key, true, NULL);
			mo_str_set(&item->key->set, said);
			item->value = ynode_scalar(part[n] ? "" : value->text, value->plain, NULL);
			item->value->kind = part[n] ? YAML_MAP : YAML_SCALAR;
			item->value->left = true;
			mo_str_set(&item->value->set, said);
		} else if (!part[n]) {
			return;
		}
		if (!part[n] || item->value->kind != YAML_MAP) /* parallelism: auto */
			return;
		map = item->value;
		part += n + 1;
	}
}

/* Errors at the engine's own keys name the line of the experiment too. */
static void place_own(struct ynode *root, const struct ynode *said)
{
	const struct ynode *args = ynode_find(root, "experiment.args");

	for (size_t i = 0; args && args->kind == YAML_MAP && i < args->n; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("args.%s", args->items[i].key->text);
		const struct ynode *where = ynode_get(said, path);

		args->items[i].value->left = true;
		mo_str_set(&args->items[i].value->set,
			   where && where->kind == YAML_SCALAR ? where->text : path);
	}
}

void left_graft(struct ynode *root, struct recipe_errors *errors)
{
	const struct ynode *values = ynode_find(root, "experiment.values");
	const struct ynode *said = ynode_find(root, "experiment.said");

	place_own(root, said);
	if (!values || values->kind != YAML_MAP)
		return;
	for (size_t i = 0; i < values->n && i < LEFT_MAX; i++) {
		const struct ynode *key = values->items[i].key, *value = values->items[i].value;
		const struct ynode *where = ynode_get(said, key->text);
		_cleanup_(mo_freep) char *name =
			where && where->kind == YAML_SCALAR
				? mo_strdup(where->text)
				: mo_printf("experiment.values.%s", key->text);

		if (value->kind != YAML_SCALAR || !recipe_path_known(key->text))
			errors_at(errors, key, NULL,
				  "experiment.values: '%.60s' is no value of a recipe, or no "
				  "single one",
				  key->text);
		else if (!is_given(root, key->text))
			put(root, key->text, value, name);
	}
}

/* Sizes without which no sharding is known. */
static bool is_size(const char *path)
{
	static const char *const sizes[] = {
		"parallelism.tp",  "parallelism.pp", "parallelism.ep",
		"parallelism.etp", "parallelism.cp",
	};

	for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
		if (mo_streq(path, sizes[i]))
			return true;
	return false;
}

void left_find(const struct ynode *root, const struct engine *e, struct recipe *r)
{
	/* What the planner chooses is given. */
	bool chosen = r->parallelism.automatic && r->model;

	for (size_t i = 0; i < e->n_experiment_values; i++) {
		const char *rule = e->experiment_values[i].key;
		_cleanup_(mo_freep) char *path = mo_strndup(rule, strcspn(rule, "="));

		if (recipe_leaves(r, path) || is_given(root, path))
			continue;
		if (chosen && (mo_starts_with(path, "parallelism.") ||
			       mo_streq(path, "recompute") || mo_streq(path, "batch.micro")))
			continue;
		mo_strs_add(&r->left, &r->n_left, path);
		r->unread = r->unread || (is_size(path) && !ynode_find(root, path));
	}
}

/* A value as one word of a command: lists as JSON, without quotes around texts. */
static void own_word(const struct ynode *v, struct mo_buf *b)
{
	if (v->kind == YAML_SCALAR) {
		mo_buf_str(b, v->text);
		return;
	}
	mo_buf_str(b, "[");
	for (size_t i = 0; i < v->n; i++) {
		mo_buf_str(b, i ? "," : "");
		own_word(v->items[i].value, b);
	}
	mo_buf_str(b, "]");
}

void left_own(const struct ynode *root, const struct engine *e, struct recipe *r)
{
	for (size_t i = 0; i < e->n_experiment_plan_keys; i++) {
		const struct ynode *value = experiment_key(root, e->experiment_plan_keys[i]);
		struct mo_buf b = { 0 };

		if (!value || ynode_is_null(value))
			continue;
		struct kv *own = MO_ADD(&r->engine, own, &kv_desc);

		own_word(value, &b);
		mo_str_set(&own->key, e->experiment_plan_keys[i]);
		own->value = mo_buf_take(&b);
	}
}
