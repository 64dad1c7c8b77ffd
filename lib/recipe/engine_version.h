/* Which file of an engine a recipe, or a tree of the engine, is of. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"
#include "lib/model/recipe.h"

/* The file of the recipe's engine, of the version that its engine.args are for. ret->kind is the
 * recipe's. */
int engine_load_for(const struct recipe *r, struct engine *ret, struct mo_error *err);
/* The kind by which a tree is read that has one of the files that `versions` names; NULL: this
 * one. there: is the file in the tree? Borrowed from the engine. */
const char *engine_version_of_tree(const struct engine *e,
				   bool (*there)(void *arg, const char *file), void *arg);
