/* Parts of the search for `parallelism: auto`. Private to lib/plan. */
#pragma once
#include "lib/plan/parts.h"
#include "lib/plan/pipeline.h"

/* Seconds of a sequence for the order of plans: placement counts. */
double search_rank(const struct shape *s, double step_s);
/* Divides GPUs, model and batch, and the schedule has this shape. */
bool search_legal(const struct shape *s);
/* plan_options.refuses of these sizes. */
const char *search_refuses(const struct plan_options *o, const struct shape *s);
/* Notes: what the next smaller and larger legal value of each choice would cost that the recipe does not fix. */
void search_neighbours(const struct recipe *r, const struct plan_options *o, const struct shape *s, struct plan *p);
/* Note: GPUs that hold the model once, and whether the experts' exchanges stay inside a node. */
void plan_note_replica(const struct shape *s, struct plan *p);
/* Note: the fastest plan that differs in one choice and fits. */
void search_nearest(const struct recipe *r, const struct plan_options *o, const struct shape *s, struct plan *p);
/* -EINVAL with the nearest numbers of GPUs and batch that can be divided; refused: why what can be divided is refused, NULL = nothing can. */
int search_nothing(const struct shape *base, const char *refused, struct mo_error *err);
