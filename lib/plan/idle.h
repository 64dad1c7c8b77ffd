/* Closed forms of what a rank of a pipeline idles. Pure. */
#pragma once
#include <stdint.h>

/* Seconds that a rank is idle in a step when its layers take f forward, b backward and w for
 * weight gradients (in b of schedules that do not split them off) per micro-batch. */
double pipeline_idle(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches, double f,
		     double b, double w);
