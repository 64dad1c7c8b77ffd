/* What the engine's own keys take, said by engine.args or its files. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_types(struct rules *k);
/* int, float, bool, or the words that the key takes, "a|b|c"; NULL: nobody says. Borrowed. */
const char *rules_type(const struct engine_checks *c, const char *key);
