/* TOML 1.0 -> a configuration's values, each with its line (toml.io). */
#pragma once
#include "lib/base/error.h"
#include "lib/recipe/config_value.h"

/* text: n bytes and a NUL behind them. NULL with err (the reason alone) and *ret_line: where. Every
 * value's place is `at` with its line. */
struct config_value *config_toml(const char *text, size_t n, struct config_place at,
				 int64_t *ret_line, struct mo_error *err);
