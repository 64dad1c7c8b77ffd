/* A job against its plan: what the planner promised at the submit, what the job does since, and
 * the measured runs that calibrate later plans. Pure. Callers: jobs.c, the views (plan_drift.c). */
#pragma once
#include "daemon/core/state/state.h"

#define PLAN_DRIFT_STEPS 50   /* steady steps before anything is said */
#define PLAN_DRIFT_WARM_UP 10 /* first iterations of an attempt that do not count */

/* Median of the steady steps of the newest attempt: those behind the warm-up, without the ones
 * that hold a save or stand out of the rest. False: fewer than PLAN_DRIFT_STEPS. */
bool plan_drift_measure(const struct job *j, struct measured *ret);
/* actual / planned - 1; MO_NONE_F: one of them is not known. */
double plan_drift_ratio(double actual, double planned);
/* Is the step time inside the error that the planner said? */
bool plan_drift_within(const struct promise *p, const struct measured *m);
/* The comparison in words; caller frees. */
char *plan_drift_text(const struct promise *p, const struct measured *m);

struct turn;
/* Sets what the job does against its plan; true when it emitted something. */
bool plan_drift_act(struct turn *t, int64_t id);
