/* What values a variable of the ranks can have, whoever sets it: `limits` of the files in
 * config/env. Private to lib/recipe. */
#pragma once
#include "lib/base/error.h"

struct env_limit {
	char *name;
	int64_t min, max; /* of a whole number */
	char *reason;     /* what happens beyond */
};
/* Those of all files, read once for a recipe: it may set 512 variables, and each look at the
 * directory and its files costs 40 us. -EINVAL with err: a file cannot be read. */
struct env_limits {
	struct env_limit *items;
	size_t n;
};
int env_limits_read(struct env_limits *ret, struct mo_error *err);
void env_limits_done(struct env_limits *l);
/* NULL: any value will do. */
const struct env_limit *env_limit(const struct env_limits *l, const char *variable);
