/* What a recipe leaves to its experiment, written down as the recipe's key `experiment`; see
 * experiment_document.c. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/experiment.h"

/* Everything that the recipe leaves to the experiment, as the recipe's key `experiment` (one
 * line of YAML, caller frees). */
char *experiment_document(const struct engine *e, const struct recipe *r,
			  const struct experiment *x);
