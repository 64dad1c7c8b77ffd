/* Where the training of a draft saves, and how often (init_engine.c, init_config.c). */
#pragma once
#include "cli/init_state.h"

/* Takes back what the draft says of checkpoints. */
void init_saves_drop(struct draft *d);
/* Notes that the original saves nothing. */
void init_saves_none(struct init *i);
/* checkpoint.dir of the draft made absolute, where the engine takes it relative to dump, or, dump
 * NULL, to its own directory; taken back where it is none that a recipe may hold. */
void init_saves_dir(struct init *i, const char *dump);
/* Notes what the original's line leaves open of checkpoints. */
void init_saves_of_line(struct init *i, const struct engine *e);
