/* What failures cost. Private to lib/plan and to the tests and benchmarks that look inside, but for
 * plan_daly_s(), by which moed chooses when to save. */
#pragma once
#include "lib/plan/shape.h"

/* given: 0 where nothing is. */
void reliability_of(const struct shape *s, double step_s, const struct plan_failures *given,
		    struct plan_reliability *ret);
/* Daly's interval between checkpoints for a blocking save of save_s and a mean time between
 * failures of mttf_s. */
double plan_daly_s(double save_s, double mttf_s);
double plan_young_s(double save_s, double mttf_s);
/* Share of time that is kept, failures exponential: every interval of work is followed by a
 * save; a failure costs the restart and the work since the last save. */
double plan_ettr(double interval_s, double save_s, double restart_s, double mttf_s);
/* Of the GPU-seconds that a job takes those of the GPUs that are kept beside its own, 0 to 1. */
double plan_spares_share(int64_t kept, int64_t gpus);
/* What cluster.spares costs: fills the fields of *ret for it; MO_NONE without any. */
void reliability_spares(const struct shape *s, int64_t spares, struct plan_reliability *ret);
/* Fewest spares such that with the given mean number under repair the chance that they suffice
 * is target. */
int64_t plan_spares(double mean_under_repair, double target);
