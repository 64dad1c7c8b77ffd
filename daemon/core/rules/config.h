/* What a node read of the engine's own configuration, and what follows from it: see config.c. */
#pragma once
#include "daemon/core/state/state.h"

struct turn;

/* The engine's files on the job's node are not those that the submit read. */
bool config_differs(const struct job *j);
/* How it ended cannot be said before its steps are known. */
bool config_awaited(const struct job *j);
/* FX_CONFIG */
void config_ask(struct turn *t, const struct job *j);
/* IN_CONFIG */
void config_judged(struct turn *t);
