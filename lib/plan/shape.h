/* One plan while it is computed. Private to lib/plan and to the tests and benchmarks that look
 * inside. What computes it has a header each, in this order: params -> layer, comm -> time;
 * memory beside them. Here: what all of them read of it, and what follows from its sizes alone. */
#pragma once
#include "lib/plan/constants.h"
#include "lib/plan/features.h"
#include "lib/plan/plan.h"

struct curve; /* curve.h */
struct shape {
	const struct recipe_model *model;
	const struct gpu_type *gpu;
	const char *precision, *schedule, *recompute, *sharding; /* schedule is never NULL here */
	int64_t gpus, tp, pp, vpp, ep, etp, cp, dp;
	int64_t micro, global, seq;
	/* ranks that zero shards over; 0 = all of dp x cp */
	int64_t shard;
	/* of each virtual stage, beside stage_layers */
	const int64_t *chunk_layers;
	/* of each stage, an explicit layout; NULL = evenly */
	const int64_t *stage_layers;
	/* sequences that a rank puts through its pipeline at once, several times a step; 0: all
	 * of them */
	int64_t pass;
	/* a step is one micro-batch of every rank: global follows from micro and dp, and there
	 * is no pipeline */
	bool one_micro;
	bool even_layers; /* pp must divide the layers */
	double nic_gbps;
	struct plan_fabric fabric;
	struct shape_features features;
	const struct plan_constants *k; /* NULL: plan_constants */
	/* measured instead of the catalogue's; NULL: catalogue */
	const struct curve *a2a_curve, *reduce_curve;
};
static inline const struct plan_constants *shape_k(const struct shape *s)
{
	return s->k ? s->k : &plan_constants;
}
int64_t shape_micro_batches(const struct shape *s); /* of one pass through the pipeline */
int64_t shape_passes(const struct shape *s);
double shape_grad_bytes(const struct shape *s);
double shape_moment_bytes(const struct shape *s); /* both moments, per parameter */
double shape_state_bytes(const struct shape *s);  /* and master weights */
int64_t shape_edp(const struct shape *s);         /* ranks that hold the same experts */
/* of one micro-batch on one rank, before TP: seq x micro / cp */
double shape_tokens(const struct shape *s);
/* Layers of a pipeline stage: [first, last). */
void shape_stage(const struct shape *s, int64_t stage, int64_t *ret_first, int64_t *ret_last);
/* that has the output layer: the last one, the first where the schedule folds the pipeline into
 * a V */
int64_t shape_head_stage(const struct shape *s);
/* How many of the layers [first, last) run forward again. */
int64_t shape_recomputed(const struct shape *s, int64_t first, int64_t last);
/* of all chunks of a stage, which lie apart when it has several */
int64_t shape_stage_recomputed(const struct shape *s, int64_t stage);
/* DualPipe: the stage of the other direction on the same rank; else the same */
int64_t shape_twin(const struct shape *s, int64_t stage);
/* Weights of a stage on one rank: those replicated over dp x cp, and the experts' (replicated
 * over edp); of DualPipe both stages that the rank has. */
void shape_weights(const struct shape *s, int64_t stage, double *ret_dense, double *ret_experts);
/* What the recipe says of it; dp is left to the caller. */
int shape_of(const struct recipe *r, const struct gpu_type *gpu, int64_t gpus, struct shape *ret,
	     struct mo_error *err);
