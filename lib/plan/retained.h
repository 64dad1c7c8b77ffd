/* What one token keeps of one layer. Private to lib/plan and to the tests and benchmarks that
 * look inside. */
#pragma once
#include "lib/plan/shape.h"

/* that one token keeps of one layer */
double memory_layer_bytes(const struct shape *s, bool moe, const char *recompute);
/* of its products' results: what gradients of weights that wait need beside what is kept */
double memory_layer_gradients(const struct shape *s, bool moe);
/* of these, what waits in the host's memory by modules */
double memory_layer_offloaded(const struct shape *s, bool moe);
