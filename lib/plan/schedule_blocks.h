/* Schedules that are made of building blocks. Private to lib/plan. */
#pragma once
#include "lib/plan/schedule.h"

/* V-half and V-min, pp > 2. */
void sched_blocks(struct sched *s);
