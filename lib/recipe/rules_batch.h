/* What an engine's files let a rank take at once. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_batch(struct rules *k);
