/* Calibration of plans by measured runs on the same GPU in the same precision. What a run took
 * against its own plan has three causes: its stack (software, GPU, precision, model), its
 * configuration (sizes, batch), chance. A new plan shares the first with runs of its stack, in
 * part with runs of its model or software, and the second with runs of a like configuration;
 * from how far each usually spreads follows what the runs together say of it, and what remains
 * unknown (Gaussian regression). Pure. Callers: moectl plan --anchor, the daemon's plans of
 * finished jobs. */
#pragma once
#include "lib/plan/plan.h"

enum { ANCHOR_AXES = 9 };
struct plan_anchor_run {
	char *software, *gpu, *precision, *model;
	bool moe;
	/* the configuration: logarithms of sizes (anchor.c) */
	double at[ANCHOR_AXES];
	double step_ratio, memory_ratio; /* measured / planned; MO_NONE_F: not measured */
};
/* n_far: runs of which a measurement is more than 4 times off its plan, or less than a quarter:
 * it is left out */
struct plan_anchor {
	struct plan_anchor_run *runs;
	size_t n_runs, n_far;
};
void plan_anchor_done(struct plan_anchor *a);
/* doc: the plan of the run's own recipe (its first plan counts); measured in seconds and 10^9
 * bytes, MO_NONE_F = not measured. */
void plan_anchor_add(struct plan_anchor *a, const struct recipe *r, const struct plan_doc *doc,
		     double step_time_s, double memory_gb);
/* A run that has been added, as what is asked for: the factor on its plan, from all others and
 * in no case from itself. *ret_left: share of the plan's error, in logarithms, that remains; 1 =
 * nothing is known. False: no run fits. */
bool plan_anchor_expect(const struct plan_anchor *a, const struct plan_anchor_run *of, bool memory,
			double *ret_factor, double *ret_left);
/* Scales every plan and scaling row of doc; each plan gets a note. False: no run fits, doc is
 * untouched. */
bool plan_anchor_apply(const struct plan_anchor *a, const struct recipe *r, const char *gpu,
		       struct plan_doc *doc);
