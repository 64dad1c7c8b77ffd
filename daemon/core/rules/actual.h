/* A job against its plan: what the planner promised at the submit, what the job does since, and
 * the measured runs that calibrate later plans. Pure. Callers: update.c, jobs.c, the views, the
 * shell's plans. */
#pragma once
#include "daemon/core/state/state.h"

#define ACTUAL_STEPS 50   /* steady steps before anything is said */
#define ACTUAL_WARM_UP 10 /* first iterations of an attempt that do not count */

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
void actual_of(const struct job *j, struct actual *ret);
/* Median of the steady steps of the newest attempt: those behind the warm-up, without the ones
 * that hold a save or stand out of the rest. False: fewer than ACTUAL_STEPS. */
bool actual_measure(const struct job *j, struct measured *ret);

struct turn;
/* Sets what the job does against its plan; true when it emitted something. */
bool actual_act(struct turn *t, int64_t id);
