/* The recipe that was made: written, and what is said of it. */
#pragma once
#include "cli/init_state.h"

/* Writes the recipe and says what is different. 0 or an exit status (printed). */
int init_put(const struct init *i, const struct cli *cli);
