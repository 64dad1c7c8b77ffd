/* Kernels of one layer, one micro-batch, one rank. Private to lib/plan and to the tests and
 * benchmarks that look inside. */
#pragma once
#include "lib/plan/shape.h"

bool shape_narrow(const struct shape *s); /* products in 8 bits or fewer */
/* recompute: what `s->recompute` adds to backward */
struct kernels {
	double forward, backward, wgrad, recompute;
};
struct kernels dense_kernels(const struct shape *s);
struct kernels moe_kernels(const struct shape *s);
struct kernels head_kernels(const struct shape *s);
struct kernels embedding_kernels(const struct shape *s);
