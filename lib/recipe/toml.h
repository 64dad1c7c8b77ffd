/* A TOML as torchtitan's configurations are, into a map of typed values with the line of each.
 * Pure. Not read, and said so: arrays of tables, dates. */
#pragma once
#include "lib/base/error.h"
#include "lib/recipe/config_value.h"

/* -EINVAL with err: "LINE: what". */
int toml_read(const char *text, size_t n, struct config_value **ret, struct mo_error *err);
