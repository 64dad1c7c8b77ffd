/* Text between the quotes of a YAML scalar -> what it means. Private to lib/recipe. */
#pragma once
#include "lib/base/buf.h"

/* text[0..n): what stands between the quotes, in a document that libfyaml accepted; quote: ' or
 * ". Appends. False: an escape that names no character. */
bool quoted_text(const char *text, size_t n, char quote, struct mo_buf *b);
/* A character as UTF-8. */
void quoted_add(uint32_t c, struct mo_buf *b);
/* n hexadecimal digits at s that are a character's number. */
bool quoted_hex(const char *s, size_t n, uint32_t *ret);
