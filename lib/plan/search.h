/* Parts of the search for `parallelism: auto`. Private to lib/plan. */
#pragma once
#include "lib/plan/parts.h"
#include "lib/plan/pipeline.h"

/* Divides GPUs, model and batch, and the schedule has this shape. */
bool search_legal(const struct shape *s);
/* Notes: what the next smaller and larger legal value of each choice would cost. */
void search_neighbours(const struct shape *s, struct plan *p);
/* Note: GPUs that hold the model once, and whether the experts' exchanges stay inside a node. */
void plan_note_replica(const struct shape *s, struct plan *p);
/* -EINVAL with the nearest numbers of GPUs and batch that can be divided. */
int search_nothing(const struct shape *base, struct mo_error *err);
