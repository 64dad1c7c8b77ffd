/* Parameters, FLOPs and the sizes that follow from a shape. Private to lib/plan and to the tests
 * and benchmarks that look inside. */
#pragma once
#include "lib/plan/parts.h"

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
/* mean number of earlier tokens that a token attends to */
double model_context(const struct recipe_model *m, double seq);
void model_head_widths(const struct recipe_model *m, double *ret_qk, double *ret_v);
