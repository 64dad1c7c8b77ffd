/* The samples of a job: one per (attempt, iteration), ascending, bounded. */
#pragma once
#include "daemon/core/state/state.h"

void samples_add(struct job *j, const struct sample *s, int64_t attempt, int64_t time);
