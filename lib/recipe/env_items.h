/* Lists of {name, value, reason, source}; see env_items.c. */
#pragma once
#include "lib/model/env_profile.h"
#include "lib/recipe/errors.h"

struct ynode;

/* A list of {name, value, reason, source}, appended; names of the launcher and repeated names
 * are errors. */
void env_items_read(struct recipe_errors *errors, const char *what, const struct ynode *v,
		    struct env_item **ret, size_t *n_ret);
