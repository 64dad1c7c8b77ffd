/* Text between the quotes of a YAML scalar -> what it means. Private to lib/recipe. */
#pragma once
#include "lib/base/buf.h"

/* text[0..n): what stands between the quotes, in a document that libfyaml accepted; quote: ' or ". Appends. False: an escape that names no character. */
bool quoted_text(const char *text, size_t n, char quote, struct mo_buf *b);
