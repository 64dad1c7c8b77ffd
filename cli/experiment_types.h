/* Values of an experiment that the engine takes otherwise than they look. */
#pragma once
#include "cli/recipe.h"
#include "lib/recipe/config_explain.h"

/* Warns of values that the engine takes otherwise than they look, and of keys that are given
 * twice. */
void experiment_misread_values(const struct recipe_input *in, const struct experiment *x,
			       const struct config_teller *t);
