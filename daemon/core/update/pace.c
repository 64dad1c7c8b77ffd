/* See pace.h. */
#include "daemon/core/update/pace.h"

#include <string.h>

#include "daemon/core/state/robust.h"
#include "lib/base/assert.h"

#define DEVIATIONS 4.0 /* the best median of many is below the true one, another above it */

static struct pace *pace_get(struct job *j)
{
	struct pace *p = j->progress.pace;

	if (!p) {
		p = j->progress.pace = mo_desc_new(&pace_desc);
		p->episodes = 0;
	}
	if (p->attempt != j->attempt) {
		p->attempt = j->attempt;
		p->judged = MO_NONE;
		p->n = 0;
		p->now_ms = MO_NONE_F;
		p->slow = false;
	}
	if (p->gpus != job_gpus(j)) {
		p->gpus = job_gpus(j);
		p->best_ms = p->spread_ms = MO_NONE_F;
		p->best_at = MO_NONE;
	}
	return p;
}

/* Where the iterations that are slow now began: behind it three of four are nearer to what is so
 * now than to the best. ms and iterations: the newest first. */
static int64_t began(const struct pace *p, const double *ms, const int64_t *iterations, size_t n)
{
	double half = (p->best_ms + p->now_ms) / 2;
	int64_t since = iterations[0];
	size_t above = 0;

	for (size_t i = 0; i < n; i++) {
		above += ms[i] > half;
		if (ms[i] > half && above * 4 >= (i + 1) * 3)
			since = iterations[i];
	}
	return since;
}

/* Only of windows that do not overlap: the least of many would be far below the true one. */
static void best(struct pace *p, double spread)
{
	if ((p->n - PACE_SETTLE) % PACE_WINDOW ||
	    (p->best_ms != MO_NONE_F && p->now_ms >= p->best_ms))
		return;
	p->best_ms = p->now_ms;
	p->spread_ms = spread;
	p->best_at = p->judged;
}

void pace_sample(struct job *j, size_t at)
{
	const struct sample *s = &j->progress.samples[at];
	double ms[PACE_WINDOW], sorted[PACE_WINDOW], spread;
	int64_t iterations[PACE_WINDOW];
	struct pace *p;
	size_t n;

	/* one that comes late, or of what is killed, says nothing of now */
	if (at + 1 != j->progress.n_samples || j->failure.decided || !pace_counts(j, s))
		return;
	p = pace_get(j);
	if (p->judged != MO_NONE && s->iteration <= p->judged)
		return;
	p->judged = s->iteration;
	p->n++;
	n = pace_window(j, ms, iterations);
	if (p->n < PACE_SETTLE + PACE_WINDOW || n < PACE_WINDOW)
		return;
	memcpy(sorted, ms, sizeof(sorted));
	p->now_ms = robust_median(sorted, n);
	spread = robust_sigma(sorted, n, p->now_ms);
	best(p, spread);
	if (p->best_ms == MO_NONE_F)
		return;
	if (p->slow) {
		p->slow = p->now_ms >= PACE_USUAL * p->best_ms;
		return;
	}
	if (p->now_ms < PACE_SLOWER * p->best_ms ||
	    p->now_ms - p->best_ms < DEVIATIONS * MO_MAX(p->spread_ms, spread))
		return;
	p->slow = true;
	p->since = began(p, ms, iterations, n);
	p->episodes++;
	mo_assert(p->since <= p->judged);
}
