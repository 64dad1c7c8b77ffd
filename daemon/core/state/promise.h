/* What a job is to do by its plan, and what it does. */
#pragma once
#include "lib/base/desc.h"

/* What the planner said of a job when it was submitted, calibrated by what was measured until
 * then. error_pct: of the step time; anchors: measured runs that it rests on; checkpoint_gb: of
 * one, MO_NONE_F unknown, or of an earlier version. */
struct promise {
	double step_time_s, memory_gb, bubble, error_pct, checkpoint_gb;
	int64_t anchors;
};
/* What a job does, against its promise (plan_drift.c): median of the steady steps of an attempt,
 * most memory. steps: iterations behind it; iteration, time: when it was measured. */
struct measured {
	int64_t steps, attempt, iteration, time;
	double step_time_s, memory_gb;
};
extern const struct mo_desc promise_desc, measured_desc;
