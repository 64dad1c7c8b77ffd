/* Values of a recipe that are set beside its text (--set). */
#pragma once
#include <stdbool.h>
#include "lib/recipe/errors.h"

/* --set a.b=c: applied to the document before it is read, so the same checks run; errors of a
 * set value name "--set a.b", or name where it is given (the option or query value that it came
 * from), with line 0. */
struct recipe_set {
	char *key, *value, *name;
};
/* The document with the sets applied, as YAML text to send to the controller (caller frees).
 * NULL + errors on failure. */
char *recipe_apply_sets(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets,
			struct recipe_errors *errors);
/* Private to lib/recipe. */
/* The recipe's tree with the sets applied; NULL with errors. Errors that leave a tree (a bad
 * set, a duplicate key) are only in errors. */
struct ynode *recipe_tree(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets,
			  struct recipe_errors *errors);
