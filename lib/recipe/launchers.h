/* Programs that start ranks as somebody else's children. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

/* engine.argv must not begin with one, by itself or behind env, a shell and their like: what it
 * starts outlives the job. */
void launchers_check(struct rules *k);
