/* Environment of ranks: what engine file and recipe say, and the profiles of config/env. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/env_profile.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/recipe/errors.h"

/* What engine file and recipe say themselves about the environment, each item with layer, reason
 * and source. Appends to items. */
void env_layers(const struct recipe *r, const struct engine *e, struct env_item **items,
		size_t *n_items);
/* The profiles of config/env whose conditions on the recipe hold, in the order in which later
 * ones override; which of them a node gets is env_profile_applies(). Appends. */
int env_profiles(const struct recipe *r, struct env_profile **ret, size_t *n_ret,
		 struct mo_error *err);
/* A list of {name, value, reason, source}, appended; names of the launcher and repeated names
 * are errors. */
struct ynode;
void env_items_read(struct recipe_errors *errors, const char *what, const struct ynode *v,
		    struct env_item **ret, size_t *n_ret);
