/* What a recipe says itself of its checkpoints, held against the engine's file. Private to
 * lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

/* The recipe's rules for checkpoint.layout and checkpoint.resume_args, and what follows for the
 * engine when there is no error. */
void layout_rules(struct rules *k);
void layout_apply(const struct recipe *r, struct engine *e);
