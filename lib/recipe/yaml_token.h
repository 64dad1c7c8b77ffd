/* The text of a token of libfyaml. Called by yaml.c. */
#pragma once
#include <libfyaml.h>

#include "lib/base/buf.h"

/* The token's text, as libfyaml reads it; NULL has none. */
void yaml_token_text(struct fy_token *token, struct mo_buf *b);
/* The same of a scalar: what stands in quotes is read from text (of n bytes, the whole document).
 * false: an escape in it is broken. */
bool yaml_scalar_text(const char *text, size_t n, struct fy_token *token, struct mo_buf *b);
