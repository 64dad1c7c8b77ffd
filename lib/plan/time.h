/* Seconds on one rank for one micro-batch, and of a step. backward holds recomputation; wgrad is
 * the part of backward that zero-bubble schedules may move. Private to lib/plan and to the tests
 * and benchmarks that look inside. */
#pragma once
#include "lib/plan/shape.h"

struct pass {
	double compute, a2a, tp, cp, launch;
}; /* launch: the GPU waits for the host */
struct layer_cost {
	struct pass forward, backward;
	double wgrad;
};
/* head: final norm, logits, loss and MTP layers */
struct costs {
	struct layer_cost dense, moe, embedding, head;
};
void costs_of(const struct shape *s, struct costs *ret);
double pass_total(const struct pass *p);
/* Sum over the layers of a stage, with embedding on the first one and head where it lies. */
struct layer_cost stage_cost(const struct shape *s, const struct costs *c, int64_t stage);
void pass_add(struct pass *to, const struct pass *what, double times);
double optimizer_s(const struct shape *s, int64_t stage);
void time_of(const struct shape *s, struct plan *p);
