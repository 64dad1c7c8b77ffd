/* engine.args against the recipe; see rules_args.c. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_args(struct rules *k);
/* Why the engine cannot be given the recipe's value of the path, whatever its other values are,
 * by the engine's file and engine.args (caller frees); NULL: nothing is against it. */
char *rules_not_given(const struct rules *k, const char *path);
