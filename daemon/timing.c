/* See timing.h. */
#include "daemon/timing.h"

#include <stddef.h>

const double timing_limits[TIMING_BUCKETS] = { 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
					       0.01,   0.025,   0.1,    0.5,   1,      5 };

void timing_add(struct timing *t, int64_t us)
{
	double s = (double)us / 1e6;
	size_t i = 0;

	while (i < TIMING_BUCKETS && s > timing_limits[i])
		i++;
	t->bucket[i]++;
	t->n++;
	t->sum_s += s;
}
