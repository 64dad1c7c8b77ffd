/* Failures, checkpoint interval, the share of useful time and spares. Failure rate: Meta's RSC-1, 6.5 per 1000 node-days (Kokolis et al. 2024); interval: Young 1974, Daly 2006; useful time:
 * Daly's exact mean time of a segment when failures come exponentially; spares: nodes under repair are Poisson. */
#include <math.h>

#include "lib/plan/parts.h"

#define FAILURES_PER_NODE_DAY 6.5e-3
#define RESTART_S 300.0              /* detect, place, initialise, load */
#define FAST_RESTART_S 60.0
#define REPAIR_DAYS 3.0
#define SPARE_TARGET 0.95            /* of the time a spare is there when a node fails */
#define SPARES_MAX 100000
#define SAVE_BYTES_PER_GPU_S 0.5e9   /* blocking part of a save: a guess until a job's own saves are known */
#define SAVE_FLOOR_S 2.0
#define CHECKPOINT_BYTES 14.0        /* per parameter: BF16 weights, FP32 master and Adam */

double plan_young_s(double save_s, double mttf_s)
{
	return sqrt(2 * save_s * mttf_s);
}

double plan_daly_s(double save_s, double mttf_s)
{
	if (save_s >= 2 * mttf_s)
		return mttf_s;
	double x = save_s / (2 * mttf_s);

	return plan_young_s(save_s, mttf_s) * (1 + sqrt(x) / 3 + x / 9) - save_s;
}

double plan_ettr(double interval_s, double save_s, double restart_s, double mttf_s)
{
	return interval_s / (mttf_s * exp(restart_s / mttf_s) * expm1((interval_s + save_s) / mttf_s));
}

int64_t plan_spares(double mean_under_repair, double target)
{
	/* Terms of the sum by logarithms: exp(-mean) alone is 0 for large clusters. */
	double below = 0;
	int64_t spares = 0;

	for (; spares < SPARES_MAX; spares++) {
		below += exp((double)spares * log(mean_under_repair) - mean_under_repair - lgamma((double)spares + 1));
		if (below >= target)
			break;
	}
	return spares;
}

void reliability_of(const struct shape *s, double step_s, struct plan_reliability *ret)
{
	struct params p = plan_params(s->model);
	double nodes = ceil((double)s->gpus / (double)MO_MAX(MO_MIN(s->gpu->domain_gpus, 8), 1));
	double save = SAVE_FLOOR_S + CHECKPOINT_BYTES * p.total / ((double)s->gpus * SAVE_BYTES_PER_GPU_S);

	ret->failures_per_day = nodes * FAILURES_PER_NODE_DAY;
	double mttf = 86400 / ret->failures_per_day, interval = MO_MAX(plan_daly_s(save, mttf), step_s), fast;

	ret->checkpoint_every_s = interval;
	ret->young_s = plan_young_s(save, mttf);
	ret->ettr = plan_ettr(interval, save, RESTART_S, mttf);
	ret->spare_nodes = plan_spares(ret->failures_per_day * REPAIR_DAYS, SPARE_TARGET);
	fast = plan_ettr(interval, save, FAST_RESTART_S, mttf);
	ret->ettr_fast_restart = fast;

	_cleanup_(mo_freep) char *save_note = mo_printf("a save is taken to block %.3g s (%.0f bytes per parameter at %.1f GB/s and GPU), a restart to take %.0f s, a repair %.0f days", save,
							CHECKPOINT_BYTES, SAVE_BYTES_PER_GPU_S / 1e9, RESTART_S, REPAIR_DAYS);
	_cleanup_(mo_freep) char *buys = mo_printf("a restart in %.0f s instead of %.0f s buys %.0f GPU hours a day", FAST_RESTART_S, RESTART_S, (fast - ret->ettr) * 24 * (double)s->gpus);

	mo_strs_add(&ret->notes, &ret->n_notes, save_note);
	mo_strs_add(&ret->notes, &ret->n_notes, buys);
}
