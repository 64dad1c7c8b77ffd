/* Questions about sizes that a plan may or may not have. Private to lib/plan and to its tests. */
#pragma once
#include "lib/plan/shape.h"

/* Seconds of a sequence for the order of plans: placement counts. */
double shape_rank(const struct shape *s, double step_s);
/* Divides GPUs, model and batch, and the schedule has this shape. */
bool shape_is_legal(const struct shape *s);
/* plan_options.refuses of these sizes; NULL: the recipe may have them. */
const char *shape_refused(const struct plan_options *o, const struct shape *s);
