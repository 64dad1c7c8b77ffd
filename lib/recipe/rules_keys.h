/* engine.args against the engine's list of flags; called by rules_engine(). Private to
 * lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_keys(struct rules *k);
/* An experiment's loader takes keys as they are written: with '-' for '_' a word is another key,
 * which nothing reads. The key that was meant, borrowed; NULL: the word is none of these. */
const char *rules_dropped(const struct engine *e, const char *flag);
