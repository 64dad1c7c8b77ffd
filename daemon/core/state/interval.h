/* checkpoint.every: auto while a job lives: Young and Daly's interval from what its saves cost
 * and how often it fails. Pure. */
#pragma once
#include "daemon/core/state/state.h"

/* With its arithmetic, for people. Seconds; unknown while nothing was measured. */
struct interval {
	/* the recipe's or the planner's before anything was measured */
	int64_t iterations, next;
	int64_t saves;
	double save_s, step_s, mttf_s, seconds;
	int64_t failures, cluster_failures;
	double gpu_days, cluster_gpu_days;
	char *text;
};
extern const struct mo_desc interval_desc;

/* Mean seconds until the job fails, by what it and the cluster showed so far. */
double interval_mttf_s(const struct state *s, const struct job *j);
/* false: checkpoint.every is not automatic. ret must be initialised. */
bool interval_of(const struct state *s, const struct job *j, struct interval *ret);
