/* Calibration of plans by measured runs: the ratio of measured to planned step time and memory of runs on the same GPU in the same precision, of the same stack (software, GPU,
 * precision, model) first, then of the same model, then of the GPU. One run is worth as much as runs of a stack agree with each other against how far stacks are from the plan.
 * Pure. Callers: moectl plan --anchor. */
#pragma once
#include "lib/plan/plan.h"

struct plan_anchor_run { char *software, *gpu, *precision, *model; double step_ratio, memory_ratio; };  /* MO_NONE_F: not measured */
struct plan_anchor { struct plan_anchor_run *runs; size_t n_runs; };
void plan_anchor_done(struct plan_anchor *a);
/* doc: the plan of the run's own recipe (its first plan counts); measured in seconds and 10^9 bytes, MO_NONE_F = not measured. */
void plan_anchor_add(struct plan_anchor *a, const struct recipe *r, const struct plan_doc *doc, double step_time_s, double memory_gb);
/* Scales every plan and scaling row of doc; each plan gets a note. False: no run fits, doc is untouched. */
bool plan_anchor_apply(const struct plan_anchor *a, const struct recipe *r, const char *gpu, struct plan_doc *doc);
