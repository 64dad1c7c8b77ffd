/* The Plan document of a recipe, offline: shared by `plan` and `submit --dry-run`. */
#pragma once
#include "cli/recipe.h"
#include "lib/plan/plan.h"

/* A search chooses only what the recipe's own checks and its engine's rules let pass. gpu:
 * instead of cluster.gpu, NULL = the recipe's. ret must be initialised. 0 or -EINVAL with err. */
int planning(const struct recipe_input *in, const char *gpu, const struct plan_options *o,
	     struct plan_doc *ret, struct mo_error *err);
/* Plans, and writes what the recipe left to the planner into `in`, as the controller does. As
 * planning(). */
int planning_choose(struct recipe_input *in, struct plan_doc *ret, struct mo_error *err);
