/* Pipelines as timelines: the plan's own schedule, and one iteration of a run that Primus dumped
 * (dump_pp_data: config.json and pp_rank_N.json, milliseconds). */
#pragma once
#include "cli/cli.h"
#include "lib/model/gpu.h"
#include "lib/plan/plan.h"
#include "lib/plan/schedule.h"

struct json_object;
/* more: a second line or NULL; memory_gb: of each rank, as dumped or planned; NULL: unknown */
struct timeline {
	struct sched s;
	char *title, *more;
	double *memory_gb;
	int64_t iteration;
	bool measured;
};
void timeline_done(struct timeline *t);
/* All micro-batches, as far as they can be simulated; the title says so. 0, or -EINVAL with err
 * when the schedule has no picture (one stage, too many stages). */
int timeline_of_plan(const struct recipe *r, const struct gpu_type *gpu, const struct plan *p,
		     const struct plan_options *o, struct timeline *ret, struct mo_error *err);
/* iteration 0: the last one. -errno with err naming the file. */
int timeline_read(const char *dir, int64_t iteration, struct timeline *ret, struct mo_error *err);
/* {"iteration","iter_time_s","bubble",
 *  "ranks":[{"forward_s","backward_s","wgrad_s","bubble","memory_gb"}],"note"};
 * note: a piece that took much longer than its like, if there is one */
struct json_object *timeline_json(const struct timeline *t);
