/* A shape of a recipe (plan.c). Private to lib/plan and to the tests and benchmarks that look
 * inside. */
#pragma once
#include "lib/plan/parts.h"

/* What the recipe says of it; dp is left to the caller. */
int shape_of(const struct recipe *r, const struct gpu_type *gpu, int64_t gpus, struct shape *ret,
	     struct mo_error *err);
