/* Seconds of one exchange, before anything hides it. Private to lib/plan and to the tests and
 * benchmarks that look inside. */
#pragma once
#include "lib/plan/shape.h"

/* ranks that zero shards dense weights over */
double shape_shards(const struct shape *s);
double comm_tp(const struct shape *s); /* one direction of one layer */
double comm_cp(const struct shape *s);
/* of n equal places that hold the experts, those that a token reaches */
double comm_reached(const struct recipe_moe *m, double n);
/* dispatch and combine of one layer, one direction */
double comm_a2a(const struct shape *s);
/* activations of one micro-batch to the next stage */
double comm_p2p(const struct shape *s);
/* of a weight that its owner sends to the others */
double comm_weight_bytes(const struct shape *s);
/* weights: of one rank's layer, unsharded */
double comm_fsdp_gather(const struct shape *s, double weights, bool experts);
/* reduce-scatter and all-gather of a stage's weights */
double comm_grads(const struct shape *s, double dense, double experts);
bool comm_fsdp(const struct shape *s);
