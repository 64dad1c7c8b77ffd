/* explain config (config.c). */
#pragma once
#include "cli/recipe.h"

/* Prints every key of the effective configuration of a recipe or a job, or those of `key`. in:
 * initialised, with its sets; the caller's. */
int explain_config(struct cli *cli, const char *what, const char *key, struct recipe_input *in);
