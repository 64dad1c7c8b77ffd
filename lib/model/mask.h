/* What looks like a credential is shown as ***: by the name it stands behind, or by its own
 * form. Used wherever a value leaves the node or the store for somebody's eyes. */
#pragma once
#include "lib/base/util.h"

#define MO_MASKED "***"
/* An environment variable's name: *KEY* *TOKEN* *SECRET* *PASSW* *CREDENTIAL* *WEBHOOK*;
 * TOKENIZER and TOKENIZED are no tokens. */
bool mo_mask_variable(const char *name);
/* An argument's or key's name, by its last word: --wandb-api-key yes,
 * --moe-token-dispatcher-type and --num-tokens no. */
bool mo_mask_argument(const char *name);
/* A copy of free text (a value, a line of output) without what looks like a credential:
 * passwords in URLs (scheme://user:***@host), NAME=VALUE and --name=VALUE by their names, our
 * own tokens. */
char *mo_mask_text(const char *text);
/* A variable's value: *** by its name, else mo_mask_text(). NULL stays NULL. */
char *mo_mask_value(const char *name, const char *value);
/* The words of a command line, changed in place: also the word behind --name. */
void mo_mask_words(char **words, size_t n);
