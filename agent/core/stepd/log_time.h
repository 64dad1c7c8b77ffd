/* When a rank wrote what: beside its log rank-R.log the supervisor keeps rank-R.times, entries, the
 * oldest first, each of what was written within a step of time, so that the agent can begin to read
 * at a time. That of rank-R.log.1 ends with .1 too. */
#pragma once
#include <stdint.h>

struct log_time {
	int64_t at_us; /* wall clock */
	int64_t byte;  /* the first one of then, of all that the rank ever wrote */
};
#define LOG_TIMES_STEP_US (10 * 1000000LL)
#define LOG_TIMES "rank-%lld.times"
#define LOG_TIMES_OLD "rank-%lld.times.1"
