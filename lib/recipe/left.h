/* What a recipe leaves to the experiment of its engine. The command does not say it, so the
 * file's value stands; where the file was read, its values are in the document under
 * `experiment:`, and are checked and planned like the recipe's own. Private to lib/recipe. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/schema.h"

/* Puts the values of root's `experiment.values` where the recipe says nothing. Their errors name
 * the line of the experiment. */
void left_graft(struct ynode *root, struct recipe_errors *errors);
/* Fills recipe.left and recipe.unread. */
void left_find(const struct ynode *root, const struct engine *e, struct recipe *r);
/* Fills recipe.engine.own from `experiment.result`. */
void left_own(const struct ynode *root, const struct engine *e, struct recipe *r);
