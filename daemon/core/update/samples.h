/* The samples of a job: one per (attempt, iteration), ascending, bounded. */
#pragma once
#include "daemon/core/state/state.h"

/* What comes behind so many newer ones is of no use, and each would move all behind it: those
 * before them never change. */
#define SAMPLES_LATE_MAX 512

void samples_add(struct job *j, const struct sample *s, int64_t attempt, int64_t time);
