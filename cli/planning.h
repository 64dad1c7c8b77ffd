/* The Plan document of a recipe, offline: shared by `plan` and `submit --dry-run`. */
#pragma once
#include "cli/recipe.h"
#include "lib/plan/plan.h"

/* e: its flags say which shardings a search may choose. gpu: instead of cluster.gpu, NULL = the recipe's. ret must be initialised. 0 or -EINVAL with err. */
int planning(const struct recipe *r, const struct engine *e, const char *gpu, const struct plan_options *o, struct plan_doc *ret, struct mo_error *err);
