/* What failures cost. Private to lib/plan and to the tests and benchmarks that look inside. */
#pragma once
#include "lib/plan/parts.h"

/* given: 0 where nothing is. */
void reliability_of(const struct shape *s, double step_s, const struct plan_failures *given,
		    struct plan_reliability *ret);
