/* What an image means for the keys beside it. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_container(struct rules *k);
