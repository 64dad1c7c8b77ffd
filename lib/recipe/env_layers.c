/* What an engine file and a recipe say themselves about the environment of ranks. */
#include "lib/recipe/env_layers.h"

#include "lib/model/launch.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/directory.h"

static struct env_item *append(struct env_item **items, size_t *n_items, enum env_layer layer,
			       const char *name, const char *value)
{
	struct env_item *item = mo_vec_add(&env_item_desc, (void **)items, n_items);

	item->layer = layer;
	mo_str_set(&item->name, name);
	mo_str_set(&item->value, value);
	return item;
}

static void feature_layer(const struct recipe *r, const struct engine *e, struct env_item **items,
			  size_t *n_items)
{
	for (size_t i = 0; i < e->n_features; i++) {
		const struct engine_feature *f = &e->features[i];
		_cleanup_(flag_row_done) struct flag_row row =
			flag_row(r, &(struct kv){ .key = f->when });

		for (size_t k = 0; row.applies && k < f->n_env; k++) {
			struct env_item *item =
				append(items, n_items, ENV_FEATURE, f->env[k].key, f->env[k].value);

			mo_str_set(&item->reason, f->reason);
			item->source = mo_printf("engines/%s.yaml: %s", e->kind, f->when);
		}
	}
}

void env_layers(const struct recipe *r, const struct engine *e, struct env_item **items,
		size_t *n_items)
{
	for (size_t i = 0; i < e->n_env; i++) {
		struct env_item *item =
			append(items, n_items, ENV_ENGINE, e->env[i].key, e->env[i].value);

		mo_str_set(&item->reason, i < e->n_env_reason ? e->env_reason[i].value : NULL);
		item->source = mo_printf("engines/%s.yaml", e->kind);
	}
	directory_variables(r, e, items, n_items);
	feature_layer(r, e, items, n_items);
	for (size_t i = 0; i < r->n_env; i++) {
		struct env_item *item =
			append(items, n_items, ENV_RECIPE, r->env[i].name, r->env[i].value);

		mo_str_set(&item->file, r->env[i].file);
		mo_str_set(&item->reason, "the recipe says so");
		item->source = mo_printf("recipe: env.%s", r->env[i].name);
	}
}
