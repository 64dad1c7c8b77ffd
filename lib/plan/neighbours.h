/* One plan against those beside it, in words. Private to lib/plan. */
#pragma once
#include "lib/plan/shape.h"

/* Notes: what the next smaller and larger legal value of each choice would cost that the recipe
 * does not fix. */
void neighbours_compare(const struct recipe *r, const struct plan_options *o, const struct shape *s,
			struct plan *p);
/* Note: the fastest plan that differs in one choice and fits. */
void neighbours_nearest(const struct recipe *r, const struct plan_options *o, const struct shape *s,
			struct plan *p);
