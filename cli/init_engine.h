/* What the engine of a draft makes of the words of the original. */
#pragma once
#include "cli/init_state.h"

/* What the engine's file and the original's own configuration say. 0 or an exit status
 * (printed). */
int init_engine(struct init *i);
