/* config/runtimes/NAME.yaml -> struct runtime. */
#pragma once
#include "lib/model/runtime.h"
#include "lib/recipe/errors.h"

/* ret must be initialised. 0, or -EINVAL with errors: each command has words, and names only what
 * is known when it is run. */
int runtime_parse(const char *text, size_t n, struct runtime *ret, struct recipe_errors *errors);
/* The installed file (mo_data_file). ret must be initialised. 0, or -EINVAL with err. */
int runtime_load(const char *name, struct runtime *ret, struct mo_error *err);
