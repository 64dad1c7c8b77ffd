/* One plan while it is computed. Private to lib/plan. */
#pragma once
#include "lib/plan/plan.h"

struct shape {
	const struct recipe_model *model;
	const struct gpu_type *gpu;
	const char *precision, *schedule, *recompute, *sharding;   /* schedule is never NULL here */
	int64_t gpus, tp, pp, vpp, ep, etp, cp, dp;
	int64_t micro, global, seq;
	double nic_gbps;
};
int64_t shape_micro_batches(const struct shape *s);
int64_t shape_edp(const struct shape *s);                   /* ranks that hold the same experts */
double shape_tokens(const struct shape *s);                 /* of one micro-batch on one rank, before TP: seq x micro / cp */
/* Layers of a pipeline stage: [first, last). */
void shape_stage(const struct shape *s, int64_t stage, int64_t *ret_first, int64_t *ret_last);
/* Weights of a stage on one rank: those replicated over dp x cp, and the experts' (replicated over edp). */
void shape_weights(const struct shape *s, int64_t stage, double *ret_dense, double *ret_experts);

void memory_of(const struct shape *s, struct plan_memory *ret);
void time_of(const struct shape *s, struct plan *p);
void reliability_of(const struct shape *s, double step_s, struct plan_reliability *ret);
/* All of one plan but its notes. */
void plan_of(const struct shape *s, struct plan *ret);
/* Tries all shardings of o->gpus; appends the best. */
int plan_search(const struct recipe *r, const struct shape *base, size_t top, struct plan_doc *ret, struct mo_error *err);
