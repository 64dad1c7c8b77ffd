/* The engine's own experiment of a recipe: read here where the files are, so that checks, plans
 * and the job know what it says. */
#pragma once
#include "cli/recipe.h"
#include "lib/recipe/config_explain.h"

/* Parses a recipe (its text need not be valid; nothing is printed): does its engine take an
 * experiment? */
bool recipe_input_has_experiment(struct recipe_input *in);
/* Reads it for a recipe that was parsed, and adds what it says as the recipe's key `experiment`.
 * 0 (also when the files are not here), or an exit status (printed): Primus could not load it. */
int experiment_read_for(struct recipe_input *in);
/* Behind it, when the recipe was parsed again with what the files say: some words of the command
 * hang on that, so the result is read once more with them. Prints what the recipe overrides, and
 * keys that nobody reads. */
void experiment_read_again(struct recipe_input *in);
/* The experiment with the command and environment that a rank gets. ret and command are the
 * caller's. 0, -ENOENT .. with err when the file is not readable here, -EINVAL with err. */
int experiment_of(const struct recipe_input *in, struct experiment *ret,
		  struct rank_command *command, struct mo_error *err);
/* The document of explain config (appends), and how many keys it has. undecided: config_explain.h.
 * Errors as of experiment_of(). */
int experiment_explain(const struct recipe_input *in, const char *key, const char *undecided,
		       struct mo_buf *ret, size_t *ret_n, struct mo_error *err);
