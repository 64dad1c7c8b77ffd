/* What one pass over the bytes of a document shows, before its parser sees them. Private to
 * yaml.c. */
#pragma once
#include "lib/recipe/errors.h"

/* true with an error added: it is too large, no UTF-8 text, or one at which libfyaml turns slow. */
bool yaml_bytes_refused(const char *text, size_t n, const char *what, struct recipe_errors *errors);
/* 1-based number of the first line indented with a tab, 0 if none: libfyaml reports such a line
 * somewhere before it. */
int64_t yaml_tab_line(const char *text, size_t n);
