/* Features against engine, model and each other; called by rules_engine(). Private to
 * lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_features(struct rules *k);
/* Why the engine has none of it and what to do: the file's words for the value, else for the
 * path; NULL: it says nothing. */
const char *rules_missing(const struct engine *e, const char *path, const char *value);
/* "{path}" stands in engine.args or engine.argv */
bool rules_in_words(const struct rules *k, const char *path);
