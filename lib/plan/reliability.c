/* Failures, checkpoint interval, the share of useful time and spares. Failure rate: Meta's
 * RSC-1, 6.5 per 1000 node-days (Kokolis et al. 2024); interval: Young 1974, Daly 2006; useful
 * time: Daly's exact mean time of a segment when failures come exponentially; spares: nodes
 * under repair are Poisson. */
#include "lib/plan/reliability.h"

#include <math.h>

#include "lib/base/assert.h"
#include "lib/plan/params.h"
#include "lib/plan/shape.h"

#define FAILURES_PER_1000_NODE_DAYS 6.5
#define RESTART_S 300.0 /* detect, place, initialise, load */
#define FAST_RESTART_S 60.0
#define REPAIR_DAYS 3.0
#define SPARE_TARGET 0.95 /* of the time a spare is there when a node fails */
#define SPARES_MAX 100000
/* blocking part of a save: a guess, plan_options.failures.save_s replaces it */
#define SAVE_BYTES_PER_GPU_S 0.5e9
#define SAVE_FLOOR_S 2.0
#define CHECKPOINT_BYTES 14.0 /* per parameter: BF16 weights, FP32 master and Adam */

double plan_young_s(double save_s, double mttf_s)
{
	mo_assert(save_s >= 0 && mttf_s > 0);
	return sqrt(2 * save_s * mttf_s);
}

double plan_daly_s(double save_s, double mttf_s)
{
	mo_assert(save_s >= 0 && mttf_s > 0);
	if (save_s >= 2 * mttf_s)
		return mttf_s;
	double x = save_s / (2 * mttf_s);

	return plan_young_s(save_s, mttf_s) * (1 + sqrt(x) / 3 + x / 9) - save_s;
}

double plan_ettr(double interval_s, double save_s, double restart_s, double mttf_s)
{
	mo_assert(interval_s > 0 && mttf_s > 0);
	return interval_s /
	       (mttf_s * exp(restart_s / mttf_s) * expm1((interval_s + save_s) / mttf_s));
}

int64_t plan_spares(double mean_under_repair, double target)
{
	mo_assert(mean_under_repair >= 0 && target > 0 && target < 1);
	/* Terms of the sum by logarithms: exp(-mean) alone is 0 for large clusters. */
	double below = 0;
	int64_t spares = 0;

	for (; spares < SPARES_MAX; spares++) {
		below += exp((double)spares * log(mean_under_repair) - mean_under_repair -
			     lgamma((double)spares + 1));
		if (below >= target)
			break;
	}
	return spares;
}

/* What faster restarts than the one assumed would buy. */
static void restarts_of(double interval, double save, double restart_s, double mttf, double gpus,
			struct plan_reliability *ret)
{
	static const double faster[] = { 600, 300, 120, 60, 30, 10 };
	double first = plan_ettr(interval, save, restart_s, mttf);

	for (size_t i = 0; i <= ELEMENTSOF(faster); i++) {
		double s = i == 0 ? restart_s : faster[i - 1];

		if (i > 0 && s >= restart_s)
			continue;
		struct plan_restart *row = MO_GROW(ret->restarts, ret->n_restarts);

		*row = (struct plan_restart){ s, plan_ettr(interval, save, s, mttf), 0 };
		row->gpu_hours_per_day = (row->ettr - first) * 24 * gpus;
	}
}

/* Times as people say them, rounded: "76.8 s", "5 min", "3 days". Caller frees. */
static char *span(double s)
{
	return s >= 2 * 86400  ? mo_printf("%.3g days", s / 86400)
	       : s >= 2 * 3600 ? mo_printf("%.3g h", s / 3600)
	       : s >= 120      ? mo_printf("%.3g min", s / 60)
			       : mo_printf("%.3g s", s);
}

static void note_assumed(const struct plan_failures *f, const struct plan_failures *given,
			 double save, struct plan_reliability *ret)
{
	_cleanup_(mo_freep) char *how =
		given->save_s > 0 ? mo_strdup("as given")
				  : mo_printf("%.0f bytes per parameter at %.1f GB/s and GPU",
					      CHECKPOINT_BYTES, SAVE_BYTES_PER_GPU_S / 1e9);
	_cleanup_(mo_freep) char *saves = span(save), *restarts = span(f->restart_s),
				 *repairs = span(f->repair_s);
	_cleanup_(mo_freep) char *assumed =
		mo_printf("assumed: %.3g failures per 1000 node-days%s, a save blocks %s (%s), a "
			  "restart takes %s, a repair %s",
			  f->rate, given->rate > 0 ? "" : " (Meta's RSC-1)", saves, how, restarts,
			  repairs);

	mo_strs_add(&ret->notes, &ret->n_notes, assumed);
}

/* What an engine must store to go on, whoever holds which part: each weight once, in 16 bits beside
 * its master or as the master itself, and the optimizer's states. */
static double checkpoint_gb(const struct shape *s, const struct params *p)
{
	double bytes = s->features.shard_bytes > 0
			       ? (double)s->features.shard_bytes + shape_moment_bytes(s)
			       : 2 + shape_state_bytes(s);

	return s->features.adapters ? MO_NONE_F : (p->total + p->mtp) * bytes / 1e9;
}

static double node_gpus(const struct shape *s)
{
	return (double)MO_MAX(MO_MIN(s->gpu->domain_gpus, 8), 1);
}

double plan_spares_share(int64_t kept, int64_t gpus)
{
	return kept > 0 ? (double)kept / ((double)kept + (double)gpus) : 0;
}

void reliability_spares(const struct shape *s, int64_t spares, struct plan_reliability *ret)
{
	if (spares <= 0)
		return;
	ret->kept_nodes = spares;
	ret->kept_gpus = spares * (int64_t)node_gpus(s);
	ret->kept_share = plan_spares_share(ret->kept_gpus, s->gpus);
}

void reliability_of(const struct shape *s, double step_s, const struct plan_failures *given,
		    struct plan_reliability *ret)
{
	struct params p = plan_params(s->model);
	const struct plan_failures f = {
		.rate = given->rate > 0 ? given->rate : FAILURES_PER_1000_NODE_DAYS,
		.restart_s = given->restart_s > 0 ? given->restart_s : RESTART_S,
		.repair_s = given->repair_s > 0 ? given->repair_s : REPAIR_DAYS * 86400,
		.spare_target = given->spare_target > 0 ? given->spare_target : SPARE_TARGET,
	};
	double nodes = ceil((double)s->gpus / node_gpus(s));
	double save = given->save_s > 0
			      ? given->save_s
			      : SAVE_FLOOR_S + CHECKPOINT_BYTES * p.total /
						       ((double)s->gpus * SAVE_BYTES_PER_GPU_S);

	ret->failures_per_day = nodes * f.rate / 1000;
	double mttf = 86400 / ret->failures_per_day,
	       interval = MO_MAX(plan_daly_s(save, mttf), step_s);

	ret->checkpoint_every_s = interval;
	ret->checkpoint_gb = checkpoint_gb(s, &p);
	ret->young_s = plan_young_s(save, mttf);
	ret->ettr = plan_ettr(interval, save, f.restart_s, mttf);
	ret->spare_target = f.spare_target;
	ret->spare_nodes = plan_spares(ret->failures_per_day * f.repair_s / 86400, f.spare_target);
	ret->ettr_fast_restart = plan_ettr(interval, save, FAST_RESTART_S, mttf);
	restarts_of(interval, save, f.restart_s, mttf, (double)s->gpus, ret);
	note_assumed(&f, given, save, ret);
}
