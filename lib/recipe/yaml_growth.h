/* Values are made and copied here, so that aliases and merge keys cannot make a large tree of a
 * small text. Called by yaml.c. */
#pragma once
#include "lib/recipe/errors.h"
#include "lib/recipe/tree.h"

/* What the tree has by now. */
struct yaml_growth {
	struct recipe_errors *errors;
	size_t nodes, bytes;
};
/* NULL with an error added: there are MO_RECIPE_NODES_MAX. */
struct ynode *yaml_node_new(struct yaml_growth *g, enum yaml_kind kind, int64_t line,
			    int64_t column);
/* Takes the text, which may be that of an alias: a long one would be there thousands of times.
 * false with an error added: it is too much. */
bool yaml_node_text(struct yaml_growth *g, struct ynode *n, char *text);
/* With all below it. NULL with an error added. */
struct ynode *yaml_node_copy(struct yaml_growth *g, const struct ynode *from);
/* "<<": the pairs of value, a mapping or a list of mappings, that the mapping into does not have.
 * 0, or -EINVAL with an error added. */
int yaml_merge(struct yaml_growth *g, struct ynode *into, const struct ynode *value);
