/* --set a.b=value: changes the tree before it is read, so that the same checks run. The value is
 * one text as it is (`--set name=x`), or YAML when it begins with { [ " or '. Nodes that came so
 * carry the path, and errors about them name it instead of a line. */
#include "lib/recipe/set.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/recipe/tree.h"
#include "lib/recipe/yaml.h"

#define SET_PARTS_MAX 8
#define SET_REPEATED_MAX 60 /* bytes of a value that a message repeats */

static void mark(struct ynode *n, const char *set)
{
	mo_str_set(&n->set, set);
	n->line = n->column = 0;
	for (size_t i = 0; i < n->n; i++) {
		if (n->items[i].key)
			mark(n->items[i].key, set);
		mark(n->items[i].value, set);
	}
}

/* Could the text stand without quotes and mean the same? Otherwise it is a text for sure. */
static bool is_plain(const char *s)
{
	double number;

	return *s && *s != '-' && !strchr("@%&*!|>?,=:#", *s)
		       ? strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789."
				   "_+/~-") == strlen(s)
		       : *s == '-' && s[1] && strchr("0123456789.", s[1]) &&
				 mo_parse_double(s, &number) == 0;
}

static struct ynode *value_node(const struct recipe_set *set, const char *name,
				struct recipe_errors *errors)
{
	struct ynode *n;

	if (*set->value && strchr("{[\"'", *set->value)) {
		_cleanup_(recipe_errors_done) struct recipe_errors own = { 0 };

		n = yaml_load(set->value, strlen(set->value), "value", &own);
		if (own.n) {
			errors_place(errors, 0, 0, own.items[0].hint, "%s: %s", name,
				     own.items[0].text);
			n = ynode_free(n);
		}
	} else
		n = ynode_scalar(set->value, is_plain(set->value), NULL);
	if (n)
		mark(n, name);
	return n;
}

static struct yitem *item_of(struct ynode *map, const char *key)
{
	for (size_t i = 0; i < map->n; i++)
		if (mo_streq(map->items[i].key->text, key))
			return &map->items[i];
	return NULL;
}

static struct yitem *item_add(struct ynode *map, const char *key, const char *set)
{
	struct yitem *item = MO_GROW(map->items, map->n);

	item->key = ynode_scalar(key, is_plain(key), NULL);
	mo_str_set(&item->key->set, set);
	return item;
}

/* Where the next part of the path starts; args and env take the rest as one key, because their
 * keys may hold dots. */
static size_t part_length(const char *set, const char *part)
{
	size_t done = (size_t)(part - set);

	if ((done == 12 && mo_starts_with(set, "engine.args.")) ||
	    (done == 4 && mo_starts_with(set, "env.")))
		return strlen(part);
	return strcspn(part, ".");
}

/* As the user wrote it, without what may be a secret. */
static char *place_of(const struct recipe_set *set)
{
	if (set->name)
		return mo_strdup(set->name);
	if (mo_starts_with(set->key, "env.") || mo_streq(set->key, "env"))
		return mo_printf("--set %s", set->key);
	return mo_printf("--set %s=%.*s%s", set->key, SET_REPEATED_MAX, set->value,
			 strlen(set->value) > SET_REPEATED_MAX ? "..." : "");
}

static void set_one(struct ynode *root, const struct recipe_set *set, struct recipe_errors *errors)
{
	_cleanup_(mo_freep) char *name = place_of(set);
	struct ynode *map = root;
	const char *part = set->key;

	for (size_t depth = 0; depth < SET_PARTS_MAX; depth++) {
		size_t n = part_length(set->key, part);
		_cleanup_(mo_freep) char *key = mo_strndup(part, n);
		struct yitem *item = NULL;

		if (!n) {
			errors_place(errors, 0, 0, NULL, "%s: an empty part in the key", name);
			return;
		}
		if (map->kind != YAML_MAP) {
			_cleanup_(mo_freep) char *whole =
				mo_strndup(set->key, (size_t)(part - set->key - 1));
			_cleanup_(mo_freep) char *hint =
				map->kind == YAML_LIST
					? mo_printf("%s is a list: set all of it", whole)
					: mo_printf("%s is '%.60s': set all of it", whole,
						    map->text);

			errors_place(errors, 0, 0, hint, "%s: '%s' cannot be set inside a %s", name,
				     key, map->kind == YAML_LIST ? "list" : "single value");
			return;
		}
		item = item_of(map, key);
		if (!item) {
			if (map->n >= MO_RECIPE_KEYS_MAX) {
				errors_place(errors, 0, 0, NULL,
					     "%s: more than %d keys in one mapping", name,
					     MO_RECIPE_KEYS_MAX);
				return;
			}
			item = item_add(map, key, name);
		}
		if (!part[n]) {
			struct ynode *value = value_node(set, name, errors);

			ynode_free(item->value);
			item->value = value ? value : ynode_scalar("null", true, NULL);
			return;
		}
		if (!item->value || ynode_is_null(item->value) || ynode_is_empty(item->value)) {
			ynode_free(item->value);
			item->value = ynode_scalar("", false, NULL);
			item->value->kind = YAML_MAP;
			mo_str_set(&item->value->set, name);
		}
		map = item->value;
		part += n + 1;
	}
	errors_place(errors, 0, 0, NULL, "%s: more than %d parts in the key", name, SET_PARTS_MAX);
}

struct ynode *recipe_tree(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets,
			  struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, "recipe", errors);

	if (!root)
		return NULL;
	if (root->kind != YAML_MAP) {
		errors_at(errors, root, "begin with 'recipe: 1'",
			  "a recipe is a mapping of keys to values");
		return NULL;
	}
	for (size_t i = 0; i < n_sets; i++)
		set_one(root, &sets[i], errors);
	return TAKE_PTR(root);
}

char *recipe_apply_sets(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets,
			struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = recipe_tree(text, n, sets, n_sets, errors);
	struct mo_buf b = { 0 };

	if (recipe_errors_finish(errors) < 0)
		return NULL;
	if (!n_sets)
		return mo_strndup(text, n);
	ynode_emit(root, &b);
	return mo_buf_take(&b);
}
