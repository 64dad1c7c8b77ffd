/* Flags of an engine that moectl decides itself: what a job saves, where, and what it resumes
 * from. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/schema.h"

/* Makes engine.owned what engine.prepare must leave alone for this recipe: also every flag that
 * a recipe value brings, without those of engine.args_unchecked. */
void engine_owned(struct engine *e, const struct recipe *r);
/* Private to lib/recipe: the section `owned: {FLAG: what to do instead}` of an engine file. */
void engine_owned_read(struct reader *r, const struct key *k, const struct ynode *v);
/* Adds the flags of the words `resume` and `fresh`, which are always moectl's. */
void engine_owned_finish(struct engine *e);
/* What to write instead; NULL = the flag is not owned. */
const char *owned_instead(const struct engine *e, const char *flag);
