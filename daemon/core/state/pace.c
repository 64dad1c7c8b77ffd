/* See pace.h. */
#include "daemon/core/state/pace.h"

#include <math.h>

#define MS_MAX 1e9     /* no iteration takes longer */
#define TRAINS_US 30e6 /* without an iteration it does not train, but for long ones */
#define LOOKED_AT 256  /* samples, until enough are found */

static const struct mo_field pace_fields[] = {
	MO_D(pace, attempt, MO_INT, "number of the attempt whose iterations were timed last"),
	MO_D(pace, judged, MO_INT, "newest iteration of it that was; MO_NONE: none"),
	MO_D(pace, n, MO_INT, "how many of its samples were"),
	MO_D(pace, gpus, MO_INT, "GPUs of the job when it was best"),
	MO_D(pace, best_ms, MO_REAL, "the least median of an iteration's time; MO_NONE_F: none"),
	MO_D(pace, spread_ms, MO_REAL, "how much iterations deviated from it"),
	MO_D(pace, best_at, MO_INT, "iteration at which it was reached"),
	MO_D(pace, now_ms, MO_REAL, "median of the newest iterations; MO_NONE_F: too few"),
	MO_D(pace, slow, MO_BOOL, "iterations take longer than they did"),
	MO_D(pace, since, MO_INT, "iteration at which the newest such episode began"),
	MO_D(pace, episodes, MO_INT, "how many there were"),
};
const struct mo_desc pace_desc = MO_DESC(pace, pace_fields);

bool pace_counts(const struct job *j, const struct sample *s)
{
	return s->attempt == j->attempt && (s->phase == PHASE_NONE || s->phase == PHASE_TRAIN) &&
	       s->step_ms != MO_NONE_F && isfinite(s->step_ms) && s->step_ms > 0 &&
	       s->step_ms <= MS_MAX;
}

size_t pace_window(const struct job *j, double *ret_ms, int64_t *ret_iterations)
{
	const struct job_progress *p = &j->progress;
	size_t n = 0;

	for (size_t i = p->n_samples, seen = 0; i > 0 && n < PACE_WINDOW && seen < LOOKED_AT;
	     seen++) {
		const struct sample *s = &p->samples[--i];

		if (s->attempt != j->attempt)
			break;
		if (!pace_counts(j, s))
			continue;
		ret_ms[n] = s->step_ms;
		ret_iterations[n++] = s->iteration;
	}
	return n;
}

bool pace_slow(const struct job *j)
{
	const struct pace *p = j->progress.pace;

	return p && p->slow && p->attempt == j->attempt;
}

bool pace_usual(const struct job *j)
{
	const struct pace *p = j->progress.pace;

	return p && !p->slow && p->attempt == j->attempt && p->now_ms != MO_NONE_F;
}

bool pace_trains(const struct job *j, int64_t progress_at, int64_t now)
{
	const struct pace *p = j->progress.pace;
	double ms = p && p->attempt == j->attempt && p->now_ms != MO_NONE_F ? p->now_ms : 0;

	return j->progress.iteration != MO_NONE &&
	       (double)(now - progress_at) <= MO_MAX(2e3 * ms, TRAINS_US);
}

double pace_lost_pct(const struct job *j)
{
	const struct pace *p = j->progress.pace;

	return pace_slow(j) ? 100 * (p->now_ms - p->best_ms) / p->now_ms : 0;
}

char *pace_text(const struct job *j)
{
	const struct pace *p = j->progress.pace;

	return mo_printf("an iteration takes %.4g ms since iteration %lld, where %.4g ms was "
			 "usual: %.0f %% more",
			 p->now_ms, (long long)p->since, p->best_ms,
			 100 * (p->now_ms - p->best_ms) / p->best_ms);
}
