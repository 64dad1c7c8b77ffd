/* Keys of an engine's own files that its version has not. Private to lib/recipe. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/config_value.h"
#include "lib/recipe/rules_say.h"

void rules_files(struct rules *k);
/* Another kind that reads the same files and knows more of their keys (caller frees): a file of
 * another version; NULL: this one knows most. */
char *engine_kind_of_keys(const struct engine *e, const struct config_value *merged);
