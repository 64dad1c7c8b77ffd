/* recovery.loss_spike.skip against the engine. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_skip(struct rules *k);
