/* explain config (config.c). */
#pragma once
#include "cli/recipe.h"

/* Prints every key of the recipe's effective configuration, or those of `key`. in: initialised, with its sets; the caller's. */
int explain_config(struct cli *cli, const char *file, const char *key, struct recipe_input *in);
