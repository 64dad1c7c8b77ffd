/* config/models/NAME.yaml -> model. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/recipe.h"

/* ret must be initialised. 0, or -EINVAL with err (near miss as hint). */
int model_load(const char *name, struct recipe_model *ret, struct mo_error *err);
