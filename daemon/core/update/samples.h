/* The samples of a job: one per (attempt, iteration), ascending, bounded. */
#pragma once
#include "daemon/core/state/state.h"

void samples_add(struct job *j, const struct sample *s, int64_t attempt, int64_t time);
int64_t samples_step_us(const struct job *j);                    /* recent time of an iteration, 0 unknown */
