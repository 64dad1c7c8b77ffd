/* A recipe: YAML (JSON is YAML) through libfyaml with our own guards, into the plain values of
 * lib/model. Every error names line and column (1-based: the key when it is unknown or
 * duplicate, else the value), what was expected, and the near-miss key as hint. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/errors.h"
#include "lib/recipe/set.h"

/* Text -> recipe. ret must be initialised by mo_desc_init(&recipe_desc). 0, or -EINVAL with
 * errors (and with the recipe where errors->kept). Cross-field rules (rules.h) run too; engine
 * file, model catalogue and env profiles are looked up with mo_data_file(). ret_engine may be
 * NULL. warnings: appended strings. */
int recipe_parse(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets,
		 struct recipe *ret, struct engine *ret_engine, char ***ret_warnings,
		 size_t *n_warnings, struct recipe_errors *errors);
/* Makes recipe.engine.traits of a record that an older version wrote, by the engine file of
 * today. 0, or -errno with err: there are none. */
int recipe_traits_renew(struct recipe *r, struct mo_error *err);
