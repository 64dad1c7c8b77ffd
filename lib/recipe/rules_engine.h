/* The engine's flags against the recipe's values and args. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_engine(struct rules *k);
/* Why the engine cannot be told the recipe's value of the path, whatever its other values are,
 * by the engine's file and engine.args (caller frees); NULL: nothing is against it. */
char *rules_untold(const struct rules *k, const char *path);
