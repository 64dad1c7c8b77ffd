/* What only a shell replaces. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_shell(struct rules *k);
