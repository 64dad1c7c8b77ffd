/* Which keys of an experiment an engine file speaks of, gathered from all its rows; see
 * engine_experiment.c. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/errors.h"
#include "lib/recipe/tree.h"

/* What is judged by its value must be read from the experiment. */
void engine_experiment_finish(struct engine *e, const struct ynode *root,
			      struct recipe_errors *errors);
