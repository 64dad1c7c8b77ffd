/* Private to lib/recipe; recipe_apply_sets() is in recipe_file.h. */
#pragma once
#include "lib/recipe/yaml.h"

/* The recipe's tree with the sets applied; NULL with errors. Errors that leave a tree (a bad set, a duplicate key) are only in errors. */
struct ynode *recipe_tree(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets, struct recipe_errors *errors);
