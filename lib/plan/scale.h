/* Parts of the plan document that look beyond one plan. Private to lib/plan. */
#pragma once
#include "lib/plan/parts.h"

/* Plans of one size, best first: a search, or the recipe's own sizes with dp for the difference. */
int plans_for(const struct recipe *r, struct shape *s, const struct plan_options *o, size_t top, struct plan_doc *doc, struct mo_error *err);
void scaling_of(const struct recipe *r, const struct shape *base, const struct plan_options *o, struct plan_doc *doc);
