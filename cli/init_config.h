/* A draft of an engine's own configuration: an experiment of Primus, a TOML of torchtitan. Both: 0,
 * or an exit status (printed); e, the draft's engine, becomes the one that the configuration
 * says. */
#pragma once
#include "cli/init_state.h"

int init_experiment(struct init *i, struct engine *e);
/* What the file says stays there; the line's own words become the recipe's. Beside them stand only
 * where and how often it saves, which moectl decides. i->toml stays NULL, and nothing is done,
 * where the line names no file. */
int init_toml(struct init *i, struct engine *e);
