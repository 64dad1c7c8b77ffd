/* The recipe's `features:` (docs/features.md): values, and conditions on them. Private to
 * lib/recipe. */
#pragma once
#include "lib/model/layout.h"
#include "lib/recipe/rules_say.h"
#include "lib/recipe/schema.h"

/* Reads one value ("features.a2a": v) into the recipe; for keys.c. */
void feature_read(struct reader *r, const struct key *k, const struct ynode *v);
/* Value as it was given, normalised: words, "true"/"false", numbers, "[0,1,2]"; NULL when not
 * given. name without "features.". */
const char *feature_value(const struct recipe *r, const char *name);
/* The same as an engine gets it: "0,1,2" (caller frees). */
char *feature_words(const struct recipe *r, const char *name);
/* Does the value ask for something? alltoall, none, auto, 0, false and an empty list do not.
 * NULL: no. */
bool feature_asks(const char *value);
/* Numbers of a recompute_layers value; *at moves on, false at the end. */
bool feature_next_layer(const char **at, int64_t *ret);
