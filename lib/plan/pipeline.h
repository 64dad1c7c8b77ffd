/* Closed forms of the pipeline schedules: bubble, micro-batches in flight, layers of a stage.
 * Pure. Callers: memory.c, time.c, search.c, the plan picture. They are held against the
 * simulation of schedule_run.h by tests. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/recipe.h"

/* Most micro-batches whose activations the stage holds at once, in units of all layers of the
 * stage. schedule NULL: 1f1b, interleaved when vpp > 1. */
double pipeline_in_flight(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches,
			  int64_t stage);
bool pipeline_is_v(const char *schedule); /* the first and the last chunk lie on rank 0 */
/* weight gradients are work of their own, which fills bubbles */
bool pipeline_splits(const char *schedule);
/* Can the schedule run so many micro-batches through so many stages of so many layers? -EINVAL
 * with err naming the field, the rule and what would do. */
int pipeline_check(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches,
		   int64_t layers, struct mo_error *err);
/* Chunks that a rank of this schedule holds: 2 for those that fold the pipeline into a V, vpp
 * for interleaved, else 1. */
int64_t pipeline_chunks(const char *schedule, int64_t vpp);
/* Layers [first, last) of a stage. layers: how many each stage has, NULL = evenly, what remains
 * goes to the first stages. */
void pipeline_layers(int64_t total, int64_t pp, const int64_t *layers, int64_t stage,
		     int64_t *ret_first, int64_t *ret_last);
/* Decoder layers per pipeline rank of an explicit layout: virtual stage i is of rank i mod pp.
 * ret: pp entries. -EINVAL with err naming the field, the rule and what would do. */
int pipeline_layout(const char *text, int64_t pp, int64_t vpp, int64_t layers, int64_t *ret,
		    struct mo_error *err);
/* The same of each of n virtual stages, 0 of those that the text does not have. */
void pipeline_layout_chunks(const char *text, int64_t n, int64_t *ret);
/* Fraction of the pipelined part that is bubble; micro_batches per pipeline and step. schedule
 * NULL: 1f1b, interleaved when vpp > 1. */
double plan_bubble(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches);
