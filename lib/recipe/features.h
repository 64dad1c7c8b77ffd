/* The recipe's `features:` (docs/features.md): values, and conditions on them. Private to lib/recipe. */
#pragma once
#include "lib/recipe/schema.h"
#include "lib/recipe/rules.h"

/* Reads one value ("features.a2a": v) into the recipe; for keys.c. */
void feature_read(struct reader *r, const struct key *k, const struct ynode *v);
/* Value as it was given, normalised: words, "true"/"false", numbers, "0,1,2"; NULL when not given. name without "features.". */
const char *feature_value(const struct recipe *r, const char *name);
/* Does the value ask for something? alltoall, none, auto, 0, false and an empty list do not. NULL: no. */
bool feature_asks(const char *value);
/* Numbers of a recompute_layers value; *at moves on, false at the end. */
bool feature_next_layer(const char **at, int64_t *ret);

/* Stages of "Et*3|(tt|)*2,m|L" as Megatron counts them: commas fall, (x)*n and x*n are repeated. The stages, each its letters; NULL with *ret_why. Free: feature_layout_free. */
struct layout { char **stages; size_t n_stages; int64_t decoders, mtp; };
bool feature_layout(const char *text, struct layout *ret, char **ret_why);
void feature_layout_done(struct layout *l);
/* The longest layout that is unrolled, in letters. */
#define LAYOUT_LETTERS_MAX 20000
