/* The launch order of one node. Pure; called by commands.c for each reply and by dry runs. */
#pragma once
#include "daemon/core/state/state.h"

/* Of place i of the job; ret must be initialised. */
void launch_make(const struct state *s, const struct job *j, size_t i, struct launch *ret);
