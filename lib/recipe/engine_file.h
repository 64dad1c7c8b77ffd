/* config/engines/KIND.yaml -> engine. Errors name line and column. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/errors.h"

int engine_parse(const char *text, size_t n, struct engine *ret, struct recipe_errors *errors);
struct ynode;
/* As engine_parse(), of a tree that was read. */
int engine_read(const struct ynode *root, struct engine *ret, struct recipe_errors *errors);
