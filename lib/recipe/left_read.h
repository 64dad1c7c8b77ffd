/* Reader of the recipe's key `experiment`, a row of keys.c. Private to lib/recipe. */
#pragma once
#include "lib/recipe/schema.h"

void left_read(struct reader *r, const struct key *k, const struct ynode *v);
