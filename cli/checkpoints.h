/* What lies in a recipe's checkpoint.dir on this machine, for those who plan a resume from it. */
#pragma once
#include "cli/cli.h"
#include "cli/recipe.h"
#include "lib/plan/plan.h"

/* The newest whole checkpoint there does not reshard, and the plan has other sizes (caller
 * frees); NULL: it can be resumed, or nothing is there. */
char *checkpoints_misfit(const struct recipe_input *in, const struct plan_parallelism *p);
extern const struct verb verb_checkpoints;
