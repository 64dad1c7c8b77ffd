/* Keys of an engine's own files that its version has not. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_files(struct rules *k);
