/* A plan's schedule with the times of its stages. */
#pragma once
#include "lib/plan/plan.h"
#include "lib/plan/schedule.h"

/* o: of the plan; NULL: none. The schedule of a plan of plan_make(), run with the times of its
 * stages. ret is to be freed by sched_done(), also after an error of the run. */
int plan_schedule(const struct recipe *r, const struct gpu_type *gpu, const struct plan *p,
		  const struct plan_options *o, int64_t micro_batches, struct sched *ret,
		  struct mo_error *err);
