/* See yaml_growth.h. */
#include "lib/recipe/yaml_growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/model/limits.h"

struct ynode *yaml_node_new(struct yaml_growth *g, enum yaml_kind kind, int64_t line,
			    int64_t column)
{
	if (++g->nodes > MO_RECIPE_NODES_MAX) {
		errors_place(g->errors, line, column, "an alias that contains aliases multiplies",
			     "more than %d values after expanding aliases", MO_RECIPE_NODES_MAX);
		return NULL;
	}
	struct ynode *n = mo_alloc(sizeof(*n));

	n->kind = kind;
	n->line = line;
	n->column = column;
	return n;
}

bool yaml_node_text(struct yaml_growth *g, struct ynode *n, char *text)
{
	n->text = text;
	g->bytes += text ? strlen(text) : 0;
	if (g->bytes <= MO_RECIPE_TEXT_MAX)
		return true;
	errors_place(g->errors, n->line, n->column, "an alias repeats its text",
		     "more than %d bytes of texts after expanding aliases", MO_RECIPE_TEXT_MAX);
	return false;
}

struct ynode *yaml_node_copy(struct yaml_growth *g, const struct ynode *from)
{
	_cleanup_(ynode_freep) struct ynode *n =
		yaml_node_new(g, from->kind, from->line, from->column);

	if (!n)
		return NULL;
	n->plain = from->plain;
	n->tag = from->tag;
	if (!yaml_node_text(g, n, mo_strdup(from->text)))
		return NULL;
	for (size_t i = 0; i < from->n; i++) {
		struct yitem *item = MO_GROW(n->items, n->n);

		if (from->items[i].key && !(item->key = yaml_node_copy(g, from->items[i].key)))
			return NULL;
		if (!(item->value = yaml_node_copy(g, from->items[i].value)))
			return NULL;
	}
	return TAKE_PTR(n);
}

/* Takes the pairs of a merged mapping that the target does not have. */
static int merge_from(struct yaml_growth *g, struct ynode *into, const struct ynode *from)
{
	if (from->kind != YAML_MAP) {
		errors_at(g->errors, from, NULL, "<<: expected a mapping or a list of mappings");
		return -EINVAL;
	}
	for (size_t i = 0; i < from->n; i++) {
		if (ynode_get(into, from->items[i].key->text))
			continue;
		if (into->n >= MO_RECIPE_KEYS_MAX) {
			errors_at(g->errors, into, NULL, "more than %d keys in one mapping",
				  MO_RECIPE_KEYS_MAX);
			return -EINVAL;
		}
		_cleanup_(ynode_freep) struct ynode *key = yaml_node_copy(g, from->items[i].key);
		_cleanup_(ynode_freep) struct ynode *value =
			yaml_node_copy(g, from->items[i].value);

		if (!key || !value)
			return -EINVAL;
		struct yitem *item = MO_GROW(into->items, into->n);

		item->key = TAKE_PTR(key);
		item->value = TAKE_PTR(value);
	}
	return 0;
}

int yaml_merge(struct yaml_growth *g, struct ynode *into, const struct ynode *value)
{
	if (value->kind != YAML_LIST)
		return merge_from(g, into, value);
	for (size_t i = 0; i < value->n; i++)
		if (merge_from(g, into, value->items[i].value) < 0)
			return -EINVAL;
	return 0;
}
