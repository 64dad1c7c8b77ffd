/* A job against its plan, as documents show it: what the planner promised, what the job does since,
 * and how far these are apart (daemon/core/rules/plan_drift.h measures and decides). */
#pragma once
#include "daemon/core/state/state.h"

struct actual_numbers {
	double step_time_s, memory_gb, bubble;
};
struct actual_chosen {
	int64_t tp, pp, vpp, ep, etp, cp, dp, micro;
	char *sharding, *schedule, *recompute, *pipeline_layout;
};
/* `plan` of a Job document. bubble of a run is known only from its engine's pipeline
 * dump, which is written when the run ends: it stays unknown here, and bubble_note says how to
 * get it. */
struct actual {
	struct actual_chosen *chosen;
	struct actual_numbers planned;
	double error_pct;
	int64_t anchors;
	struct actual_numbers actual, drift;
	int64_t steps, iteration, attempt, measured_at;
	int8_t within;
	char *text, *bubble_note;
};
extern const struct mo_desc actual_desc;

/* j has a promise; ret must be initialised. */
void plan_drift_of(const struct job *j, struct actual *ret);
