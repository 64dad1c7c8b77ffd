/* Rules between keys of a recipe: all of them. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_check(struct rules *k);
