/* Words that an engine file and a recipe give together, besides the command of the ranks
 * (argv.h). */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"

/* The value that engine.args give the key of n bytes, dashes in front of theirs ignored; NULL =
 * none. */
const char *recipe_engine_arg(const struct recipe *r, const char *name, size_t n);
/* The words of engine.prepare, appended: the recipe's, else the engine file's; none = nothing to
 * prepare. The word {argv} becomes those of engine_argv(). Words of agent/core/text/words.h stay
 * for the node. */
void engine_prepare(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret);
/* engine.heartbeat.dir with engine.args and recipe values put in (caller frees); NULL = none. */
char *engine_heartbeat_dir(const struct engine *e, const struct recipe *r);
