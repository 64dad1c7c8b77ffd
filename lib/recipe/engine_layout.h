/* Where checkpoints of an engine lie, and the words by which it takes one or none, or leaves
 * data out. Private to lib/recipe; rows of engine_file.c. */
#pragma once
#include "lib/recipe/schema.h"

void engine_layout_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_resume_read(struct reader *r, const struct key *k, const struct ynode *v);
void engine_skip_read(struct reader *r, const struct key *k, const struct ynode *v);
