/* Files that an experiment names. */
#pragma once
#include "cli/recipe.h"
#include "lib/recipe/config_explain.h"

/* Warns of files that it names and that are not here. */
void experiment_inputs(const struct recipe_input *in, const struct experiment *x,
		       const struct config_teller *t);
