/* The search for `parallelism: auto`. Private to lib/plan. */
#pragma once
#include "lib/plan/shape.h"

/* Tries all shardings of o->gpus; appends the best. -EINVAL: none can be had; the error names
 * the nearest numbers that can. */
int plan_search(const struct recipe *r, const struct shape *base, const struct plan_options *o,
		size_t top, struct plan_doc *ret, struct mo_error *err);
