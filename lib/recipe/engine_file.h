/* config/engines/KIND.yaml -> engine. Errors name line and column. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/errors.h"

int engine_parse(const char *text, size_t n, struct engine *ret, struct recipe_errors *errors);
int engine_load(const char *kind, struct engine *ret, struct mo_error *err);
