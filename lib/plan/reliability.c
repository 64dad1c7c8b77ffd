/* Failures, checkpoint interval and the share of useful time. Failure rate: Meta's RSC-1, 6.5 per 1000 node-days (Kokolis et al. 2024); interval: Daly 2006. */
#include <math.h>

#include "lib/plan/parts.h"

#define FAILURES_PER_NODE_DAY 6.5e-3
#define GPUS_PER_NODE 8.0
#define RESTART_S 300.0              /* detect, place, initialise, load */
#define SAVE_BYTES_PER_GPU_S 0.5e9   /* blocking part of a save: a guess until a job's own saves are known */
#define SAVE_FLOOR_S 2.0
#define CHECKPOINT_BYTES 14.0        /* per parameter: BF16 weights, FP32 master and Adam */

double plan_daly_s(double save_s, double mttf_s)
{
	if (save_s >= 2 * mttf_s)
		return mttf_s;
	double x = save_s / (2 * mttf_s);

	return sqrt(2 * save_s * mttf_s) * (1 + sqrt(x) / 3 + x / 9) - save_s;
}

void reliability_of(const struct shape *s, double step_s, struct plan_reliability *ret)
{
	struct params p = plan_params(s->model);
	double nodes = ceil((double)s->gpus / GPUS_PER_NODE), save = SAVE_FLOOR_S + CHECKPOINT_BYTES * p.total / ((double)s->gpus * SAVE_BYTES_PER_GPU_S);

	ret->failures_per_day = nodes * FAILURES_PER_NODE_DAY;
	double mttf = 86400 / ret->failures_per_day, interval = MO_MAX(plan_daly_s(save, mttf), step_s);

	ret->checkpoint_every_s = interval;
	/* Mean time of a segment with exponential failures. */
	ret->ettr = interval / (mttf * exp(RESTART_S / mttf) * expm1((interval + save) / mttf));
}
