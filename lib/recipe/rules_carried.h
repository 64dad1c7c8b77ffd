/* Values of a recipe that the engine has no flag for; see rules_carried.c. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_check_carried(struct rules *k);
/* Does some flag row or some word of the recipe itself carry the path to the engine? */
bool rules_carried(const struct rules *k, const char *path);
/* Values that ask for what an engine does anyhow. */
bool rules_asks_default(const char *path, const char *value);
/* Does the engine's command have the word, "{argv}" or another? */
bool rules_template_has(const struct engine *e, const char *word);
