/* Plans of one size. Private to lib/plan. */
#pragma once
#include "lib/plan/shape.h"

/* Best first: a search, or the recipe's own sizes with dp for the difference. */
int plans_for(const struct recipe *r, struct shape *s, const struct plan_options *o, size_t top,
	      struct plan_doc *doc, struct mo_error *err);
