/* Environment of ranks: what engine file and recipe say, and the profiles of config/env. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/env_profile.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/recipe/errors.h"

/* The profiles of config/env whose conditions on the recipe hold, in the order in which later
 * ones override; which of them a node gets is env_profile_applies(). Appends. */
int env_profiles(const struct recipe *r, struct env_profile **ret, size_t *n_ret,
		 struct mo_error *err);
