/* Memory of a rank. Private to lib/plan and to the tests and benchmarks that look inside. */
#pragma once
#include "lib/plan/shape.h"

void memory_of_stage(const struct shape *s, int64_t stage, struct plan_memory *ret);
void memory_stages_of(const struct shape *s, struct plan *p);
void memory_of(const struct shape *s, struct plan_memory *ret); /* the fullest stage */
