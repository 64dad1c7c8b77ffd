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
	struct data_order *data_order;
};
/* The ledger alone, of all its time or of the last part. */
struct ledger_view {
	int64_t from, to; /* core time */
	struct report_seconds gpu_seconds;
	double ettr, goodput;
};
extern const struct mo_desc report_view_desc, ledger_view_desc;

/* The ledger charged up to now (core time), GPU-microseconds. Returns by how many microseconds the
 * iteration under way is overdue: they are counted as hang. */
int64_t report_ledger(const struct state *s, const struct job *j, int64_t now,
		      int64_t ret[_GPU_CATEGORY_N]);
/* Productive share of the time in which the job had GPUs, 0 to 1; MO_NONE_F: it had none. */
double report_ettr(const int64_t ledger[_GPU_CATEGORY_N]);
/* now: core time; window_us: of what passed before now, or before the job's end; MO_NONE: of all
 * that passed since its submit. */
void job_ledger(const struct state *s, const struct job *j, int64_t now, int64_t window_us,
		struct ledger_view *ret);
/* now: core time. */
void job_report(const struct state *s, const struct job *j, int64_t now, struct report_view *ret);
