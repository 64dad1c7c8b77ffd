/* recovery.policy of a recipe: what follows a failure of which class. Private to lib/recipe. */
#pragma once
#include "lib/recipe/schema.h"

void recovery_read_policy(struct reader *r, const struct key *k, const struct ynode *v);
