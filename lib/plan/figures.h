/* Figures and notes of one plan. Private to lib/plan and to its tests. */
#pragma once
#include "lib/plan/shape.h"

void plan_of(const struct shape *s, struct plan *ret);
