/* Flags of an engine that moectl decides itself: what a job saves, where, and what it resumes from. Private to lib/recipe; engine_owned(): recipe_file.h. */
#pragma once
#include "lib/recipe/schema.h"

/* The section `owned: {FLAG: what to do instead}` of an engine file. */
void engine_owned_read(struct reader *r, const struct key *k, const struct ynode *v);
/* Adds the flags of the words `resume` and `fresh`, which are always moectl's. */
void engine_owned_finish(struct engine *e);
/* What to write instead; NULL = the flag is not owned. */
const char *owned_instead(const struct engine *e, const char *flag);
