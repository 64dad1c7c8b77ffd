/* Keys of an experiment that the engine has nowhere. */
#pragma once
#include "cli/recipe.h"
#include "lib/recipe/config_explain.h"

/* Warns of keys that the version of the engine that we know has nowhere. */
void experiment_unknown_keys(const struct recipe_input *in, const struct experiment *x);
