/* A draft against what it was made from. */
#pragma once
#include "cli/init_state.h"

/* The recipe, checked, against the original: fills what is the same and what differs. 0 or an
 * exit status (printed). */
int init_compare(struct cli *cli, struct init *i);
