/* Files that TensorBoard reads, and what imports from it. */
#pragma once
#include <json-c/json.h>
#include "lib/base/buf.h"
#include "lib/base/error.h"

/* The samples of a job (items of GET /v1/jobs/{id}/metrics, page by page) become files below dir,
 * one run for each attempt, DIR/attempt-N/events.out.tfevents.1.moectl, each begun anew and grown
 * by what each page adds, as TensorBoard reads it while it grows: an iteration that was done twice
 * is a point of two runs. Scalars have the names of the samples' members. */
struct tfevents {
	const char *dir; /* the rest is 0 before the first page */
	size_t n_runs, n_samples;
	int64_t attempt; /* whose file is growing; 0: none yet */
};
/* 0, or -errno with err. */
int tfevents_add(struct tfevents *t, struct json_object *items, struct mo_error *err);
