/* checkpoint.every: auto while a job lives: Young and Daly's interval from what its saves cost
 * and how often it fails. Pure. */
#pragma once
#include "daemon/core/state/state.h"

/* With its arithmetic, for people. Seconds; unknown while nothing was measured. */
struct interval {
	/* in force in the present attempt; the recipe's or the planner's before anything was
	 * measured */
	int64_t iterations;
	int64_t next; /* of the next attempt */
	/* saves that were measured, and what one of them blocked training for, on average */
	int64_t saves;
	double save_s;
	double step_s, mttf_s, seconds;     /* seconds = Daly's interval */
	int64_t failures, cluster_failures; /* of the job; of all jobs */
	double gpu_days, cluster_gpu_days;  /* in which they happened */
	char *text;                         /* the arithmetic in words */
};
extern const struct mo_desc interval_desc;

/* false: checkpoint.every is not automatic. ret must be initialised. */
bool interval_of(const struct state *s, const struct job *j, struct interval *ret);
