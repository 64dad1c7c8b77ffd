/* What values a variable of the ranks can have, whoever sets it: `limits` of the files in config/env. Private to lib/recipe. */
#pragma once
#include "lib/base/error.h"

struct env_limit {
	char *name;
	int64_t min, max; /* of a whole number */
	char *reason; /* what happens beyond */
};
/* NULL: any value will do. Without an answer, because a file cannot be read, err says so too. Borrowed until files are read again. */
const struct env_limit *env_limit(const char *variable, struct mo_error *err);
