/* What a resolved experiment says about values of a recipe, by the rows that the engine file has for it. */
#pragma once
#include "lib/recipe/experiment.h"
#include "lib/recipe/recipe_file.h"

/* The value of the first row of that path that holds, and the value of the experiment that decided it (NULL: the engine's own
 * default). False: no row holds, or what stands there is no value that a recipe has. */
bool experiment_value(const struct engine *e, const struct experiment *x, const char *path,
		      char **ret_text, char **ret_key, const struct config_value **ret_from);
/* Where the engine would save by the names of its configuration; workdir: what relative ones are relative to. Caller frees. */
char *experiment_directory(const struct engine *e, const struct experiment *x, const char *workdir);
/* 0, or -EINVAL with err when that is not checkpoint.dir: the name that is in the way, and its place. */
int experiment_directory_check(const struct engine *e, const struct recipe *r,
			       const struct experiment *x, struct mo_error *err);
/* Everything that the recipe leaves to the experiment, as the recipe's key `experiment` (one line of YAML, caller frees). */
char *experiment_said(const struct engine *e, const struct recipe *r, const struct experiment *x);
