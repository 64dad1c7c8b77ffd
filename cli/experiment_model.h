/* The recipe's model beside the experiment's. */
#pragma once
#include "cli/recipe.h"
#include "lib/recipe/config_explain.h"

/* Warns of a `model` of the recipe that is not the experiment's. */
void experiment_other_model(const struct recipe_input *in, const struct experiment *x);
