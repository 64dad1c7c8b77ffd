/* Shared by the files that build schedules. Private to lib/plan. */
#pragma once
#include "lib/plan/schedule.h"

void sched_add(struct sched_rank *r, enum sched_op op, int64_t chunk, int64_t micro);
bool sched_is_v(const char *kind);
/* V-half and V-min, pp > 2. */
void sched_blocks(struct sched *s);
