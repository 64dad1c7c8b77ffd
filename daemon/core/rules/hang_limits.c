/* See hang_limits.h. */
#include "daemon/core/rules/hang_limits.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/util.h"

#define SEC 1000000LL
/* Slow starts and saves that were none of a hang: 13 minutes for a data set, 24 for a restore; a
 * first save that took 13 times the next one. */
#define START_US (1800 * SEC)
#define FIRST_STEP_US (900 * SEC)
#define SAVE_US (1800 * SEC)
#define EVAL_US (3600 * SEC)
#define TWO_US (30 * SEC)
#define ONE_US (60 * SEC)
#define WRITTEN_US (900 * SEC)
#define WINDOW 512                    /* steps of which the times count */
#define GAP_MAX_US (30 * 86400 * SEC) /* no gap of a clock that jumped is longer */

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Between an iteration that was reported and the next one: what passed, or what the engine says
 * that a step took, whichever is more. */
static int64_t gap_of(const struct sample *s)
{
	int64_t gap = MO_MAX(s->time - s[-1].time, 0);

	if (s->step_ms != MO_NONE_F && isfinite(s->step_ms) && s->step_ms > 0)
		gap = MO_MAX(gap, (int64_t)(MO_MIN(s->step_ms, 1e9) * 1000));
	return MO_MIN(gap, GAP_MAX_US);
}

/* False: too few of this attempt. */
static bool steps_of(const struct job *j, int64_t *ret_p99, int64_t *ret_longest)
{
	const struct job_progress *p = &j->progress;
	int64_t gaps[WINDOW];
	size_t n = 0;

	for (size_t i = p->n_samples; i > 1 && n < WINDOW; i--) {
		const struct sample *s = &p->samples[i - 1];

		if (s->attempt != j->attempt || s[-1].attempt != j->attempt)
			break;
		gaps[n++] = gap_of(s);
	}
	if (n < HANG_STEPS_MIN)
		return false;
	qsort(gaps, n, sizeof(*gaps), ascending);
	*ret_p99 = gaps[n - 1 - n / 100];
	*ret_longest = gaps[n - 1];
	return true;
}

static struct hang_limits fixed(int64_t us, int64_t percent)
{
	int64_t suspect = us / 100 * percent;

	return (struct hang_limits){ .suspect = suspect,
				     .two = 2 * suspect,
				     .one = 2 * suspect,
				     .written = 2 * suspect,
				     .slow = 2 * suspect,
				     .p99 = MO_NONE };
}

struct hang_limits hang_limits_of(const struct job *j, int64_t percent)
{
	const struct job_progress *p = &j->progress;
	bool last = j->spec.recipe.steps != MO_NONE && p->iteration != MO_NONE &&
		    p->iteration >= j->spec.recipe.steps;
	int64_t p99 = MO_NONE, longest = 0;
	struct hang_limits l;

	if (p->phase == PHASE_EVAL)
		return fixed(EVAL_US, percent);
	if (p->phase == PHASE_SAVE || last) /* what follows the last iteration saves */
		return fixed(SAVE_US, percent);
	if (p->iteration == MO_NONE || p->phase == PHASE_LOAD || p->phase == PHASE_INIT) {
		l = fixed(p->phase == PHASE_TRAIN ? FIRST_STEP_US : START_US, percent);
		l.busy = true;
		return l;
	}
	if (!steps_of(j, &p99, &longest)) {
		/* others than the first may compile too */
		l = fixed(FIRST_STEP_US, percent);
		l.busy = true;
		return l;
	}
	l = (struct hang_limits){ .p99 = p99 };
	l.suspect = MO_MAX(3 * p99, HANG_SUSPECT_US / 100 * percent);
	l.two = MO_MAX(MO_MAX(5 * p99, 2 * longest), TWO_US / 100 * percent);
	l.one = MO_MAX(MO_MAX(8 * p99, 2 * longest), ONE_US / 100 * percent);
	l.written = MO_MAX(l.one, WRITTEN_US / 100 * percent);
	l.slow = MO_MAX(l.one, 2 * SAVE_US / 100 * percent);
	return l;
}
