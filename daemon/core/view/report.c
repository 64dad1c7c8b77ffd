/* The report of a job: the GPU-second ledger charged up to now, and what follows from it. Pure
 * getter. */
#include "daemon/core/view/view.h"

#include <math.h>
#include <string.h>

#include "daemon/core/state/data_order.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/view/prepare.h"
#include "daemon/core/view/report.h"

static const struct mo_field report_seconds_fields[] = {
	MO_D(report_seconds, total, MO_REAL,
	     "GPU-seconds from submit to end: the sum of those below but queue"),
	MO_D(report_seconds, productive, MO_REAL, "first pass of iterations"),
	MO_D(report_seconds, queue, MO_REAL,
	     "waiting for GPUs, times the GPUs that it waits for: no GPU time, beside the total"),
	MO_D(report_seconds, image, MO_REAL,
	     "its GPUs were kept for it until their nodes had its image"),
	MO_D(report_seconds, launch, MO_REAL, "starting processes, engine.prepare included"),
	MO_D(report_seconds, init, MO_REAL,
	     "until the engine loads its checkpoint or begins the first iteration"),
	MO_D(report_seconds, load, MO_REAL, "loading a checkpoint"),
	MO_D(report_seconds, recompute, MO_REAL, "iterations that a failure had undone"),
	MO_D(report_seconds, save, MO_REAL, "saving checkpoints while training waits"),
	MO_D(report_seconds, hang, MO_REAL,
	     "standing: what no iteration explains, 3 times the recent one and 10 s"),
	MO_D(report_seconds, detect, MO_REAL,
	     "the unfinished iteration and the end of a failed attempt"),
	MO_D(report_seconds, drain, MO_REAL, "ending an attempt as planned"),
	MO_D(report_seconds, idle, MO_REAL, "paused"),
	MO_D(report_seconds, spare, MO_REAL,
	     "nodes that were kept for it beside its ranks (cluster.spares): no part of ettr",
	     .omit = true),
};
static const struct mo_desc report_seconds_desc = MO_DESC(report_seconds, report_seconds_fields);
static const struct mo_field report_view_fields[] = {
	MO_D(report_view, wall_s, MO_REAL, "seconds from submit to end, or to now"),
	MO_D_SUB(report_view, gpu_seconds, MO_STRUCT, &report_seconds_desc,
		 "where the GPU-seconds went"),
	MO_D(report_view, ettr, MO_REAL,
	     "productive share of the time in which it had GPUs, 0 to 1"),
	MO_D(report_view, ettr_hour, MO_REAL,
	     "the same of the last hour, to five minutes; null: it had no GPUs in it"),
	MO_D(report_view, ettr_saving_each, MO_REAL,
	     "ettr if each iteration had been saved at no cost: without recompute"),
	MO_D(report_view, overdue_s, MO_REAL,
	     "by how much the iteration under way is overdue: it counts as hang until it is done"),
	MO_D(report_view, goodput, MO_REAL, "productive share of all GPU-seconds, 0 to 1"),
	MO_D(report_view, mfu, MO_REAL, "mean share of the GPUs' peak, 0 to 1"),
	MO_D(report_view, restarts, MO_INT, "how often it was started again after a failure"),
	MO_D_VEC(report_view, restart_parts, &restart_part_desc,
		 "what its restarts took, by part of the waterfall; empty: there was none"),
	MO_D_VEC(report_view, incidents, &incident_desc, "its failures, oldest first"),
	MO_D_SUB(report_view, prepare, MO_OPT, &prepare_view_desc,
		 "what engine.prepare took; its gpu_s are part of gpu_seconds.launch",
		 .omit = true),
	MO_D_SUB(report_view, data_order, MO_OPT, &data_order_desc,
		 "whether the newest resume went on with its data, as the engine tells it",
		 .omit = true),
};
static const struct mo_field ledger_view_fields[] = {
	MO_D(ledger_view, from, MO_TIME,
	     "since when: the submit, or of a window the newest moment that is known before it, to "
	     "5 minutes or a twelfth of it"),
	MO_D(ledger_view, to, MO_TIME, "until when: the end of the job, or now"),
	MO_D_SUB(ledger_view, gpu_seconds, MO_STRUCT, &report_seconds_desc,
		 "where the GPU-seconds between them went, without spare"),
	MO_D(ledger_view, ettr, MO_REAL,
	     "productive share of the time in it in which the job had GPUs, 0 to 1"),
	MO_D(ledger_view, goodput, MO_REAL, "productive share of the GPU-seconds in it, 0 to 1"),
};
const struct mo_desc ledger_view_desc = MO_DESC(ledger_view, ledger_view_fields);
const struct mo_desc report_view_desc = MO_DESC(report_view, report_view_fields);

static double mean_mfu(const struct job *j)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < j->progress.n_samples; i++)
		if (j->progress.samples[i].mfu != MO_NONE_F &&
		    isfinite(j->progress.samples[i].mfu)) {
			sum += j->progress.samples[i].mfu;
			n++;
		}
	return n ? sum / (double)n : MO_NONE_F;
}

/* By how much an iteration is overdue: not before it is done is that anything else. */
static int64_t standing_us(const struct state *s, const struct job *j, int64_t now)
{
	int64_t since = MO_MAX(j->ledger_at, job_progress_at(s, j)),
		explained = progress_explains_us(j, 1);

	return ledger_category(j) < 0 && now - since > explained ? now - since - explained : 0;
}

#define HOUR_US (3600 * 1000000LL)

double report_ettr(const int64_t ledger[_GPU_CATEGORY_N])
{
	int64_t held = ledger_held(ledger);

	return held > 0 ? (double)ledger[GPU_PRODUCTIVE] / (double)held : MO_NONE_F;
}

/* What the ledger got in the last us before end. Returns since when: to five minutes, or a
 * twelfth, earlier than that, or since the first mark. */
static int64_t ledger_since(const struct job *j, int64_t end, int64_t us,
			    int64_t ledger[_GPU_CATEGORY_N])
{
	int64_t before[_GPU_CATEGORY_N], from = ledger_until(j, end - us, before);

	for (int i = 0; i < _GPU_CATEGORY_N; i++)
		ledger[i] -= before[i];
	return from;
}

static double of_last_hour(const struct job *j, int64_t end, const int64_t *ledger)
{
	int64_t hour[_GPU_CATEGORY_N];

	memcpy(hour, ledger, sizeof(hour));
	(void)ledger_since(j, end, HOUR_US, hour);
	return report_ettr(hour);
}

static int64_t ledger_end(const struct job *j, int64_t now)
{
	return j->ended_at != MO_NONE ? j->ended_at : MO_MAX(now, j->ledger_at);
}

static int64_t spare_us(const struct state *s, const struct job *j, int64_t end)
{
	int64_t us = MO_MAX(0, j->spare_us);

	for (size_t i = 0; j->spec.recipe.spares > 0 && i < s->n_nodes; i++) {
		const struct node_spare *k = &s->nodes[i]->spare;

		us += k->job == j->id ? k->gpus * MO_MAX(0, end - k->since) : 0;
	}
	return us;
}

int64_t report_ledger(const struct state *s, const struct job *j, int64_t now,
		      int64_t ret[_GPU_CATEGORY_N])
{
	int64_t end = ledger_end(j, now), stands;
	int open = ledger_category(j);

	memcpy(ret, j->ledger, _GPU_CATEGORY_N * sizeof(*ret));
	if (open < 0) /* the iteration under way: a first pass, or below the watermark again */
		open = MO_MAX(j->progress.iteration, j->run.resume) + 1 > j->progress.watermark
			       ? GPU_PRODUCTIVE
			       : GPU_RECOMPUTE;
	stands = MO_MIN(standing_us(s, j, end), MO_MAX(0, end - j->ledger_at));
	if (!job_state_final(j->state)) {
		ret[GPU_HANG] += job_gpus(j) * stands;
		ret[open] += job_gpus(j) * (MO_MAX(0, end - j->ledger_at) - stands);
	}
	return stands;
}

/* Without spare, which no ledger has. Returns the total, GPU-microseconds. */
static int64_t seconds_of(const int64_t ledger[_GPU_CATEGORY_N], struct report_seconds *ret)
{
	double *const slots[_GPU_CATEGORY_N] = {
		[GPU_PRODUCTIVE] = &ret->productive,
		[GPU_QUEUE] = &ret->queue,
		[GPU_LAUNCH] = &ret->launch,
		[GPU_INIT] = &ret->init,
		[GPU_LOAD] = &ret->load,
		[GPU_RECOMPUTE] = &ret->recompute,
		[GPU_SAVE] = &ret->save,
		[GPU_HANG] = &ret->hang,
		[GPU_DETECT] = &ret->detect,
		[GPU_DRAIN] = &ret->drain,
		[GPU_IDLE] = &ret->idle,
		[GPU_IMAGE] = &ret->image,
	};
	int64_t total = 0;

	for (int i = 0; i < _GPU_CATEGORY_N; i++) {
		*slots[i] = (double)ledger[i] / 1e6;
		total += i == GPU_QUEUE ? 0 : ledger[i];
	}
	ret->spare = MO_NONE_F;
	ret->total = (double)total / 1e6;
	return total;
}

void job_ledger(const struct state *s, const struct job *j, int64_t now, int64_t window_us,
		struct ledger_view *ret)
{
	int64_t ledger[_GPU_CATEGORY_N];

	(void)report_ledger(s, j, now, ledger);
	ret->to = ledger_end(j, now);
	ret->from =
		window_us == MO_NONE ? j->created_at : ledger_since(j, ret->to, window_us, ledger);
	(void)seconds_of(ledger, &ret->gpu_seconds);
	ret->ettr = report_ettr(ledger);
	ret->goodput = ret->gpu_seconds.total > 0
			       ? ret->gpu_seconds.productive / ret->gpu_seconds.total
			       : MO_NONE_F;
}

void job_report(const struct state *s, const struct job *j, int64_t now, struct report_view *ret)
{
	struct report_seconds *g = &ret->gpu_seconds;
	int64_t ledger[_GPU_CATEGORY_N], stands = report_ledger(s, j, now, ledger);
	int64_t end = ledger_end(j, now), total = seconds_of(ledger, g);
	double counted = g->total - g->idle;
	int64_t spare = spare_us(s, j, end);

	g->spare = j->spec.recipe.spares > 0 ? (double)spare / 1e6 : MO_NONE_F;
	g->total = (double)(total + spare) / 1e6;
	ret->wall_s = (double)job_age(j, end) / 1e6;
	ret->ettr = report_ettr(ledger);
	ret->ettr_hour = of_last_hour(j, end, ledger);
	ret->ettr_saving_each =
		counted > g->recompute ? g->productive / (counted - g->recompute) : MO_NONE_F;
	ret->overdue_s = (double)stands / 1e6;
	ret->goodput = g->total > 0 ? g->productive / g->total : MO_NONE_F;
	ret->mfu = mean_mfu(j);
	ret->restarts = j->restarts;
	ret->prepare = prepare_view_of(j);
	ret->data_order = mo_desc_dup(&data_order_desc, j->progress.data_order);
	for (size_t i = 0; i < j->n_incidents; i++)
		mo_desc_copy(&incident_desc, MO_ADD(ret, incidents, &incident_desc),
			     &j->incidents[i]);
	if (ret->n_incidents > 0)
		restart_open(j, end, &ret->incidents[ret->n_incidents - 1]);
	ret->restart_parts = restart_parts(ret->incidents, ret->n_incidents, &ret->n_restart_parts);
}
