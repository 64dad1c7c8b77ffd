/* A document as JSON. */
#pragma once
#include <stddef.h>

/* The document as one line of JSON (caller frees); NULL when it is no valid YAML. */
char *recipe_json(const char *text, size_t n);
