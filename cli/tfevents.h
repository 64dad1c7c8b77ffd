/* Files that TensorBoard reads, and what imports from it. */
#pragma once
#include <json-c/json.h>
#include "lib/base/error.h"

/* Writes the samples of a job (items of GET /v1/jobs/{id}/metrics) below dir, one run for each
 * attempt, DIR/attempt-N/events.out.tfevents.1.moectl, each anew: an iteration that was done twice
 * is a point of two runs. Scalars have the names of the samples' members. *ret_runs: how many.
 * 0, or -errno with err. */
int tfevents_write(const char *dir, struct json_object *items, size_t *ret_runs,
		   struct mo_error *err);
