/* The files of config/env: profiles, which give ranks their environment, and limits, which say what
 * values a variable can have, whoever sets it. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/env_profile.h"
#include "lib/model/recipe.h"
#include "lib/recipe/errors.h"

/* The profiles of config/env whose conditions on the recipe hold, in the order in which later
 * ones override; which of them a node gets is env_profile_applies(). Appends. */
int env_profiles(const struct recipe *r, struct env_profile **ret, size_t *n_ret,
		 struct mo_error *err);
struct env_limit {
	char *name;
	int64_t min, max; /* of a whole number */
	char *reason;     /* what happens beyond */
};
/* Those of all files, read once for a recipe: it may set 512 variables, and each read of the
 * directory and its files costs 40 us. -EINVAL with err: a file cannot be read. */
struct env_limits {
	struct env_limit *items;
	size_t n;
};
int env_limits_read(struct env_limits *ret, struct mo_error *err);
void env_limits_done(struct env_limits *l);
/* NULL: any value will do. */
const struct env_limit *env_limit(const struct env_limits *l, const char *variable);
