/* `moectl submit`. */
#pragma once
#include "cli/recipe.h"

extern const struct verb verb_submit;
/* Sends the recipe's text until there is an answer; the job is then there once. in: for its name,
 * and for what is wrong with it when nobody answers. 0 or an exit status (printed). */
int submit_send(struct cli *cli, struct recipe_input *in, const char *text, struct answer *ret);
