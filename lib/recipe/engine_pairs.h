/* Mappings of an engine file, whatever its section: the bottom of its readers. Private to
 * lib/recipe. */
#pragma once
#include "lib/recipe/schema.h"

struct kv;
/* A mapping of texts, appended. */
void engine_pairs_read(struct reader *r, const char *what, const struct ynode *v, struct kv **ret,
		       size_t *n_ret);
/* A row's key, of flags and of features. */
void flag_key_check(struct reader *r, const char *what, const struct ynode *key);
