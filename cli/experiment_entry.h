/* Where the experiment of a command lies. */
#pragma once
#include "cli/recipe.h"

/* A file of the command that could not be read, and the errno: an exit status (printed) where
 * the engine's checkout is here and the file must be too; 0: only the nodes may have it. */
int experiment_missing(const struct recipe_input *in, const char *file, int why);
