/* The queue: which job starts next, and what the others wait for; see schedule.c. */
#pragma once
#include "daemon/core/state/state.h"

struct turn;

/* True when it emitted something. */
bool schedule(struct turn *t);
bool scan_fresh(const struct job *j, int64_t now);
