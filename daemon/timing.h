/* How long something took, counted in fixed classes: a histogram of GET /metrics. */
#pragma once
#include <stdint.h>

/* Seconds spent, in fixed buckets: Prometheus histogram. */
#define TIMING_BUCKETS 12
struct timing {
	int64_t bucket[TIMING_BUCKETS + 1], n;
	double sum_s;
};
extern const double timing_limits[TIMING_BUCKETS];
void timing_add(struct timing *t, int64_t us);
