/* What an engine file and a recipe say themselves about the environment of ranks; see
 * env_layers.c. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/env_profile.h"
#include "lib/model/recipe.h"

/* What engine file and recipe say themselves about the environment, each item with layer, reason
 * and source. Appends to items. */
void env_layers(const struct recipe *r, const struct engine *e, struct env_item **items,
		size_t *n_items);
