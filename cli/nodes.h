/* `moectl nodes`, `moectl node`. */
#pragma once
#include "cli/cli.h"

extern const struct verb verb_nodes, verb_node;
