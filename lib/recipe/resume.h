/* A recipe against the one that saved what it would resume from. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"

/* Values that differ from those of the recipe that saved the checkpoints to resume from,
 * although the engine does not allow it (engine.may_change): "parallelism.tp 4 instead of 8".
 * NULL = none, or the engine file says nothing about it (caller frees). */
char *recipe_changed(const struct recipe *before, const struct recipe *now, const struct engine *e);
