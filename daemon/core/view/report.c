/* The report of a job: the GPU-second ledger charged up to now, and what follows from it. Pure
 * getter. */
#include "daemon/core/view/view.h"

#include <math.h>
#include <string.h>

#include "daemon/core/state/progress.h"

static const struct mo_field report_seconds_fields[] = {
	MO_F(report_seconds, total, MO_REAL),     MO_F(report_seconds, productive, MO_REAL),
	MO_F(report_seconds, queue, MO_REAL),     MO_F(report_seconds, launch, MO_REAL),
	MO_F(report_seconds, init, MO_REAL),      MO_F(report_seconds, load, MO_REAL),
	MO_F(report_seconds, recompute, MO_REAL), MO_F(report_seconds, save, MO_REAL),
	MO_F(report_seconds, hang, MO_REAL),      MO_F(report_seconds, detect, MO_REAL),
	MO_F(report_seconds, drain, MO_REAL),     MO_F(report_seconds, idle, MO_REAL),
};
static const struct mo_desc report_seconds_desc = MO_DESC(report_seconds, report_seconds_fields);
static const struct mo_field report_view_fields[] = {
	MO_F(report_view, wall_s, MO_REAL),
	MO_F_SUB(report_view, gpu_seconds, MO_STRUCT, &report_seconds_desc),
	MO_F(report_view, ettr, MO_REAL),
	MO_F(report_view, goodput, MO_REAL),
	MO_F(report_view, mfu, MO_REAL),
	MO_F(report_view, restarts, MO_INT),
	MO_F_VEC(report_view, incidents, &incident_desc),
	MO_F_SUB(report_view, prepare, MO_OPT, &prepare_view_desc, .omit = true),
};
const struct mo_desc report_view_desc = MO_DESC(report_view, report_view_fields);

static double mean_mfu(const struct job *j)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < j->n_samples; i++)
		if (j->samples[i].mfu != MO_NONE_F && isfinite(j->samples[i].mfu)) {
			sum += j->samples[i].mfu;
			n++;
		}
	return n ? sum / (double)n : MO_NONE_F;
}

void job_report(const struct state *s, const struct job *j, int64_t now, struct report_view *ret)
{
	struct report_seconds *g = &ret->gpu_seconds;
	double *slots[_GPU_CATEGORY_N] = {
		[GPU_PRODUCTIVE] = &g->productive,
		[GPU_QUEUE] = &g->queue,
		[GPU_LAUNCH] = &g->launch,
		[GPU_INIT] = &g->init,
		[GPU_LOAD] = &g->load,
		[GPU_RECOMPUTE] = &g->recompute,
		[GPU_SAVE] = &g->save,
		[GPU_HANG] = &g->hang,
		[GPU_DETECT] = &g->detect,
		[GPU_DRAIN] = &g->drain,
		[GPU_IDLE] = &g->idle,
	};
	int64_t ledger[_GPU_CATEGORY_N],
		total = 0, end = j->ended_at != MO_NONE ? j->ended_at : MO_MAX(now, j->ledger_at);
	int open = ledger_category(j);
	double counted;

	(void)s;
	memcpy(ledger, j->ledger, sizeof(ledger));
	if (open < 0) /* the iteration under way: a first pass, or below the watermark again */
		open = MO_MAX(j->iteration, j->resume) + 1 > j->watermark ? GPU_PRODUCTIVE
									  : GPU_RECOMPUTE;
	if (!job_state_final(j->state))
		ledger[open] += job_gpus(j) * MO_MAX(0, end - j->ledger_at);
	for (int i = 0; i < _GPU_CATEGORY_N; i++) {
		*slots[i] = (double)ledger[i] / 1e6;
		total += ledger[i];
	}
	g->total = (double)total / 1e6;
	counted = g->total - g->queue - g->idle;
	ret->wall_s = (double)(end - j->created_at) / 1e6;
	ret->ettr = counted > 0 ? g->productive / counted : MO_NONE_F;
	ret->goodput = g->total > 0 ? g->productive / g->total : MO_NONE_F;
	ret->mfu = mean_mfu(j);
	ret->restarts = j->restarts;
	ret->prepare = prepare_view_of(j);
	for (size_t i = 0; i < j->n_incidents; i++)
		mo_desc_copy(&incident_desc, MO_ADD(ret, incidents, &incident_desc),
			     &j->incidents[i]);
}
