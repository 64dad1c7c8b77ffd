/* Where the GPU-hours of a job went, and its incidents (see view.h). */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/view/prepare.h"
#include "daemon/core/view/restarts.h"

struct report_seconds {
	double total, productive, queue, image, launch, init, load, recompute, save, hang, detect,
		drain, idle, spare;
};
struct report_view {
	double wall_s;
	struct report_seconds gpu_seconds;
	double overdue_s;
	double ettr, ettr_hour, ettr_saving_each, goodput, mfu;
	int64_t restarts;
	struct restart_part *restart_parts;
	size_t n_restart_parts;
	struct incident *incidents;
	size_t n_incidents;
	struct prepare_view *prepare;
};
extern const struct mo_desc report_view_desc;

/* now: core time. */
void job_report(const struct state *s, const struct job *j, int64_t now, struct report_view *ret);
