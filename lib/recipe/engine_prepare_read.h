/* What an engine file has moe-stepd run before the ranks; see engine_prepare_read.c. */
#pragma once
#include "lib/recipe/schema.h"

bool engine_prepare_given(struct reader *r, const struct key *k, const struct ynode *v);
void engine_prepare_argv_read(struct reader *r, const struct key *k, const struct ynode *v);
/* A file beside the engine files, whose text travels with the job: the nodes need nothing of it.
 * It gets the command of a rank. */
void engine_prepare_script_read(struct reader *r, const struct key *k, const struct ynode *v);
