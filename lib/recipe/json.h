/* A document as JSON. */
#pragma once
#include <stddef.h>
#include "lib/base/buf.h"

/* The document as one line of JSON (caller frees); NULL when it is no valid YAML. */
char *recipe_json(const char *text, size_t n);
void json_quoted(const char *s, struct mo_buf *b); /* as a JSON string */
