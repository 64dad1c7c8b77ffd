/* Which kind of engine keys of its own files are for. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/config_value.h"

/* Another kind that reads the same files and knows more of their keys (caller frees): a file of
 * another version; NULL: this one knows most. */
char *engine_kind_of_keys(const struct engine *e, const struct config_value *merged);
