/* The simulation of a schedule: a piece of work starts when its rank is free and what it needs has
 * arrived. Pure. Callers: schedule_plan.c, tests that hold the closed forms of pipeline.h against
 * it. */
#pragma once
#include "lib/plan/schedule.h"

/* Work of one virtual stage on one micro-batch, seconds. */
struct sched_cost {
	double f, b, w;
};
/* Simulates. cost: one entry per virtual stage (sched_stages); transfer: seconds from one rank
 * to the next. -EDEADLK with err naming the rank that waits and for what. */
int sched_run(struct sched *s, const struct sched_cost *cost, double transfer,
	      struct mo_error *err);
