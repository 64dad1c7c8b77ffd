/* What a recipe may say, as JSON Schema: editors complete and check by it. */
#pragma once
#include "lib/base/buf.h"

/* Appends one document of draft 7, which editors for YAML read. Keys, types, bounds, words and
 * defaults are those of the table of keys; what one key means for another stays a rule
 * (`moectl validate`). So it takes whatever a recipe may say, and refuses unknown keys, wrong types
 * and values out of bounds. */
void recipe_schema(struct mo_buf *b);
