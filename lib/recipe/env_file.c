/* Environment profiles: config/env/base.yaml (every rank), amd.yaml and nvidia.yaml (nodes with such GPUs). Each item has a value, a reason and a source; they and the
 * engine's and the recipe's items make the layers that the agent merges. */
#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/model/env_names.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/keys.h"

#define I(f, t, ...) { .path = #f, .type = (t), .offset = offsetof(struct env_item, f), ##__VA_ARGS__ }
static const struct key item_keys[] = {
	I(name, KEY_TEXT, .required = true),
	I(value, KEY_TEXT, .required = true),
	I(reason, KEY_TEXT, .required = true),
	I(source, KEY_TEXT),
};

void env_items_read(struct recipe_errors *errors, const char *what, const struct ynode *v, struct env_item **ret, size_t *n_ret)
{
	if (v->kind != YAML_LIST) {
		errors_at(errors, v, NULL, "%s: expected a list of {name, value, reason}", what);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *item = v->items[i].value, *name = ynode_get(item, "name");
		struct env_item *e = mo_vec_add(&env_item_desc, (void **)ret, n_ret);
		struct reader r = { .errors = errors, .keys = item_keys, .n_keys = ELEMENTSOF(item_keys), .bases = { e } };

		if (item->kind != YAML_MAP) {
			errors_at(errors, item, NULL, "%s: expected {name, value, reason}", what);
			continue;
		}
		schema_read(&r, "", item);
		if (e->name && mo_env_launch_name(e->name))
			errors_at(errors, name, NULL, "%s: %s is set by the launcher", what, e->name);
		for (size_t k = 0; e->name && k + 1 < *n_ret; k++)
			if (mo_streq((*ret)[k].name, e->name))
				errors_at(errors, name, NULL, "%s: %s is given twice", what, e->name);
	}
}

struct env_file { struct env_item *items; size_t n; const char *layer; };

static void read_items(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct env_file *f = r->arg;

	env_items_read(r->errors, k->path, v, &f->items, &f->n);
}

static void read_env_format(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_SCALAR || !mo_streq(v->text, "1"))
		errors_at(r->errors, v, NULL, "env: this version reads format 1: write 'env: 1'");
}

static const struct key file_keys[] = {
	{ .path = "env", .type = KEY_CUSTOM, .read = read_env_format, .required = true },
	{ .path = "items", .type = KEY_CUSTOM, .read = read_items, .required = true },
};

/* All of config/env/NAME.yaml, appended as the layer; an item without a source of its own is sourced by the file. */
static int append_file(const char *name, enum env_layer layer, struct env_item **items, size_t *n_items, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	_cleanup_(ynode_freep) struct ynode *root = catalogue_open("env", "environment profile", name, &path, err);
	struct env_file file = { 0 };
	struct reader r = { .errors = &errors, .keys = file_keys, .n_keys = ELEMENTSOF(file_keys), .arg = &file };

	if (!root)
		return -EINVAL;
	schema_read(&r, "", root);
	for (size_t i = 0; i < file.n && !errors.n; i++) {
		struct env_item *item = mo_vec_add(&env_item_desc, (void **)items, n_items);

		mo_desc_copy(&env_item_desc, item, &file.items[i]);
		item->layer = layer;
		_cleanup_(mo_freep) char *source = item->source ? mo_printf("env/%s.yaml: %s", name, item->source) : mo_printf("env/%s.yaml", name);

		mo_str_set(&item->source, source);
	}
	mo_vec_clear(&env_item_desc, (void **)&file.items, &file.n);
	return errors.n ? catalogue_fail(&errors, path, err) : 0;
}

static struct env_item *append(struct env_item **items, size_t *n_items, enum env_layer layer, const char *name, const char *value)
{
	struct env_item *item = mo_vec_add(&env_item_desc, (void **)items, n_items);

	item->layer = layer;
	mo_str_set(&item->name, name);
	mo_str_set(&item->value, value);
	return item;
}

int env_layers(const struct recipe *r, const struct engine *e, const char *vendor, struct env_item **items, size_t *n_items, struct mo_error *err)
{
	if (vendor) {
		bool profile = mo_streq(vendor, "amd") || mo_streq(vendor, "nvidia");

		return profile ? append_file(vendor, ENV_PROFILE, items, n_items, err) : 0;
	}
	int ret = append_file("base", ENV_BASE, items, n_items, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; e && i < e->n_env; i++) {
		struct env_item *item = append(items, n_items, ENV_ENGINE, e->env[i].key, e->env[i].value);

		mo_str_set(&item->reason, i < e->n_env_reason ? e->env_reason[i].value : NULL);
		item->source = mo_printf("engines/%s.yaml", e->kind);
	}
	for (size_t i = 0; i < r->n_env; i++) {
		struct env_item *item = append(items, n_items, ENV_RECIPE, r->env[i].name, r->env[i].value);

		mo_str_set(&item->file, r->env[i].file);
		mo_str_set(&item->reason, "the recipe says so");
		item->source = mo_printf("recipe: env.%s", r->env[i].name);
	}
	return 0;
}
