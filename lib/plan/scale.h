/* The same batch on other numbers of GPUs. Private to lib/plan. */
#pragma once
#include "lib/plan/shape.h"

void scaling_of(const struct recipe *r, const struct shape *base, const struct plan_options *o,
		struct plan_doc *doc);
