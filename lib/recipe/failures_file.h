/* config/failures/signatures.yaml -> rules. Patterns are compiled while reading, so that a bad
 * one is found with its place. */
#pragma once
#include "lib/model/failure.h"
#include "lib/recipe/errors.h"

/* ret must be initialised. 0, or -EINVAL with errors. */
int failures_parse(const char *text, size_t n, struct failure_rules *ret,
		   struct recipe_errors *errors);
/* The installed file (mo_data_file), or the one that came with the program, whatever the site has
 * put before it. */
int failures_load(bool shipped, struct failure_rules *ret, struct mo_error *err);
