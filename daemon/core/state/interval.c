/* See interval.h. Failures per GPU-day begin at what is known of large clusters and move to what
 * is seen, of the cluster first, then of the job:
 *   cluster = (1 + F) / (1 / prior + D)     F failures of all jobs in D GPU-days
 *   job     = (1 + f) / (1 / cluster + d)   the same of this one
 * so that one early failure of a new job does not mean one a minute, and a job that fails for
 * reasons of its own is believed in the end. Called by update.c when an attempt is placed, and
 * by the views. */
#include "daemon/core/state/interval.h"

#include <math.h>

#include "daemon/core/state/progress.h"
#include "lib/base/assert.h"
#include "lib/plan/reliability.h"

/* 6.5 per 1000 node-days of eight GPUs (Kokolis et al. 2024), as the planner */
#define PRIOR_PER_GPU_DAY (6.5e-3 / 8)
#define SAVES_MIN 1
#define DAY_US 86400e6

static const struct mo_field interval_fields[] = {
	MO_D(interval, iterations, MO_INT, "iterations between saves in this attempt"),
	MO_D(interval, next, MO_INT, "the same of the next attempt"),
	MO_D(interval, saves, MO_INT, "saves that were measured"),
	MO_D(interval, save_s, MO_REAL, "seconds that one of them kept training waiting, mean"),
	MO_D(interval, step_s, MO_REAL, "seconds of an iteration"),
	MO_D(interval, mttf_s, MO_REAL, "mean seconds to a failure"),
	MO_D(interval, seconds, MO_REAL, "best seconds between saves, after Daly"),
	MO_D(interval, failures, MO_INT, "failures of this job"),
	MO_D(interval, cluster_failures, MO_INT, "failures of all jobs"),
	MO_D(interval, gpu_days, MO_REAL, "GPU-days in which those of the job happened"),
	MO_D(interval, cluster_gpu_days, MO_REAL, "GPU-days in which those of all jobs happened"),
	MO_D(interval, text, MO_STR, "the arithmetic in words"),
};
const struct mo_desc interval_desc = MO_DESC(interval, interval_fields);

/* Time in which it had its GPUs. */
static double gpu_days(const struct job *j)
{
	int64_t us = 0;

	for (size_t i = 0; i < j->n_ledger; i++)
		us += i == GPU_QUEUE || i == GPU_IDLE || i == GPU_IMAGE ? 0 : j->ledger[i];
	return (double)us / DAY_US;
}

static int64_t failures(const struct job *j)
{
	return j->restarts + j->failure.decided;
}

static void rates(const struct state *s, const struct job *j, struct interval *ret)
{
	double cluster;

	ret->failures = failures(j);
	ret->gpu_days = gpu_days(j);
	ret->cluster_failures = 0;
	ret->cluster_gpu_days = 0;
	for (size_t i = 0; i < s->n_jobs; i++) {
		ret->cluster_failures += failures(s->jobs[i]);
		ret->cluster_gpu_days += gpu_days(s->jobs[i]);
	}
	cluster = (1 + (double)ret->cluster_failures) /
		  (1 / PRIOR_PER_GPU_DAY + ret->cluster_gpu_days);
	ret->mttf_s = 86400 * (1 / cluster + ret->gpu_days) / (1 + (double)ret->failures) /
		      (double)job_gpus(j);
}

double interval_mttf_s(const struct state *s, const struct job *j)
{
	struct interval i;

	rates(s, j, &i);
	return i.mttf_s;
}

static void explain(struct interval *i, bool planned)
{
	if (i->seconds == MO_NONE_F) {
		i->text = mo_printf("every %lld iterations, %s: %s was measured yet",
				    (long long)i->iterations,
				    planned ? "as planned" : "to begin with",
				    i->saves < SAVES_MIN ? "no save" : "no iteration");
		return;
	}
	i->text =
		mo_printf("Daly: one save blocks %.3g s (mean of %lld), one failure in %.4g h "
			  "(job: %lld in %.3g GPU-days, cluster: %lld in %.3g): sqrt(2 x %.3g s x "
			  "%.4g s) = %.4g s, corrected %.4g s = %lld iterations of %.3g s; now "
			  "every %lld%s",
			  i->save_s, (long long)i->saves, i->mttf_s / 3600, (long long)i->failures,
			  i->gpu_days, (long long)i->cluster_failures, i->cluster_gpu_days,
			  i->save_s, i->mttf_s, sqrt(2 * i->save_s * i->mttf_s), i->seconds,
			  (long long)i->next, i->step_s, (long long)i->iterations,
			  i->next != i->iterations ? ", the new one from the next start on" : "");
}

bool interval_of(const struct state *s, const struct job *j, struct interval *ret)
{
	int64_t step_us = samples_step_us(j);

	assert(s && j && ret);
	if (!j->spec.recipe.checkpoint.automatic)
		return false;
	ret->iterations = ret->next =
		j->saves.every > 0 ? j->saves.every : j->spec.recipe.checkpoint.every;
	ret->saves = j->saves.n;
	rates(s, j, ret);
	if (j->saves.n >= SAVES_MIN)
		ret->save_s = (double)j->ledger[GPU_SAVE] / (double)job_gpus(j) / 1e6 /
			      (double)j->saves.n;
	if (step_us > 0)
		ret->step_s = (double)step_us / 1e6;
	if (j->saves.n >= SAVES_MIN && step_us > 0 && ret->save_s > 0) {
		ret->seconds = plan_daly_s(ret->save_s, ret->mttf_s);
		ret->next =
			(int64_t)MO_MIN(MO_MAX(llround(ret->seconds / ret->step_s), 1), 1000000000);
	}
	/* It began before the files of its engine had said how many steps there are. */
	if (ret->seconds == MO_NONE_F && recipe_leaves(&j->spec.recipe, "steps") &&
	    j->spec.recipe.steps > 0 && ret->next > j->spec.recipe.steps)
		ret->next = MO_MAX(j->spec.recipe.steps / 10, 1);
	explain(ret, j->spec.recipe.model && j->spec.recipe.gpu);
	return true;
}
