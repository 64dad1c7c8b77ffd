/* Lists of {name, value, reason, source}: variables of ranks, wherever they are said. */
#include "lib/recipe/env_items.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/model/env_names.h"
#include "lib/model/launch.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/schema.h"

struct item_file {
	struct env_item item;
	char *alternatives;
	bool unset;
};

#define I(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct item_file, item.f), \
		##__VA_ARGS__ \
	}
static const struct key item_keys[] = {
	I(name, KEY_TEXT, .required = true),
	I(value, KEY_TEXT),
	{ .path = "unset", .type = KEY_BOOL, .offset = offsetof(struct item_file, unset) },
	I(reason, KEY_TEXT, .required = true),
	{ .path = "alternatives",
	  .type = KEY_TEXT,
	  .offset = offsetof(struct item_file, alternatives) },
	I(source, KEY_TEXT),
};

/* One item; false with an error. The item owns its texts then. */
static bool read_item(struct recipe_errors *errors, const char *what, const struct ynode *v,
		      struct env_item *ret)
{
	struct item_file f = { 0 };
	struct reader r = { .errors = errors,
			    .keys = item_keys,
			    .n_keys = ELEMENTSOF(item_keys),
			    .bases = { &f } };
	size_t before = errors->n;

	if (v->kind != YAML_MAP) {
		errors_at(errors, v, NULL, "%s: expected {name, value, reason}", what);
		return false;
	}
	mo_desc_init(&env_item_desc, &f.item);
	schema_read(&r, "", v);
	if (errors->n == before && !f.item.value == !f.unset)
		errors_at(errors, v, NULL, "%s: %s needs one of value and unset: true", what,
			  f.item.name);
	if (f.item.name && mo_env_launch_name(f.item.name))
		errors_at(errors, ynode_get(v, "name"), NULL, "%s: %s is set by the launcher", what,
			  f.item.name);
	if (f.alternatives && f.item.reason) {
		_cleanup_(mo_freep) char *reason =
			mo_printf("%s (others: %s)", f.item.reason, f.alternatives);
		mo_str_set(&f.item.reason, reason);
	}
	free(f.alternatives);
	*ret = f.item;
	return true;
}

void env_items_read(struct recipe_errors *errors, const char *what, const struct ynode *v,
		    struct env_item **ret, size_t *n_ret)
{
	if (v->kind != YAML_LIST) {
		errors_at(errors, v, NULL, "%s: expected a list of {name, value, reason}", what);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *node = v->items[i].value;
		struct env_item item;

		if (!read_item(errors, what, node, &item))
			continue;
		for (size_t k = 0; item.name && k < *n_ret; k++)
			if (mo_streq((*ret)[k].name, item.name))
				errors_at(errors, ynode_get(node, "name"), NULL,
					  "%s: %s is given twice", what, item.name);
		*(struct env_item *)mo_vec_add(&env_item_desc, (void **)ret, n_ret) = item;
	}
}
