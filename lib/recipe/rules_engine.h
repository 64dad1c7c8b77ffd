/* The engine's flags against the recipe's values and args. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_engine(struct rules *k);
