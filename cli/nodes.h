/* `moectl nodes`, `moectl node`. */
#pragma once
#include "cli/output.h"

extern const struct verb verb_nodes, verb_node;
/* A row for each of items. */
void nodes_table(struct json_object *items, struct table *ret);
