/* See progress.h. */
#include "daemon/core/state/progress.h"

#include <math.h>

#include "lib/base/assert.h"

int64_t samples_step_us(const struct job *j)
{
	double ms[SAMPLES_RECENT];
	size_t n = 0;

	mo_assert(j->progress.samples || j->progress.n_samples == 0);
	for (size_t i = j->progress.n_samples;
	     i > 0 && n < SAMPLES_RECENT &&
	     j->progress.samples[i - 1].attempt ==
		     j->progress.samples[j->progress.n_samples - 1].attempt;
	     i--) {
		double v = j->progress.samples[i - 1].step_ms;
		size_t at = n;

		if (v == MO_NONE_F || !isfinite(v) || v < 0 || v > 1e9)
			continue;
		for (n++; at > 0 && ms[at - 1] > v; at--)
			ms[at] = ms[at - 1];
		ms[at] = v;
	}
	return n ? (int64_t)(ms[n / 2] * 1000.0) : 0;
}

int64_t progress_limit_us(const struct job *j, int64_t n)
{
	double limit = (double)STALL_STEPS * (double)samples_step_us(j) * (double)n;

	return limit > 1e15 ? (int64_t)1e15 : MO_MAX(STALL_MIN_US, (int64_t)limit);
}

int64_t progress_explains_us(const struct job *j, int64_t n)
{
	return j->progress.iteration == MO_NONE || j->progress.phase == PHASE_EVAL ||
			       samples_step_us(j) == 0
		       ? INT64_MAX
		       : progress_limit_us(j, n);
}

int64_t ledger_held(const int64_t *ledger)
{
	int64_t sum = 0;

	for (int i = 0; i < _GPU_CATEGORY_N; i++)
		sum += i == GPU_QUEUE || i == GPU_IDLE ? 0 : ledger[i];
	return sum;
}

int64_t ledger_until(const struct job *j, int64_t moment, int64_t ret[_GPU_CATEGORY_N])
{
	const struct ledger_mark *m = NULL;

	for (size_t i = 0; i < j->n_ledger_marks && (!m || j->ledger_marks[i].at <= moment); i++)
		m = j->ledger_marks[i].n_us ? &j->ledger_marks[i] : m;
	for (size_t i = 0; i < _GPU_CATEGORY_N; i++)
		ret[i] = m && i < m->n_us ? m->us[i] : 0;
	return m ? m->at : j->created_at;
}

static int training(const struct job *j)
{
	switch (j->progress.phase) {
	case PHASE_LOAD: return GPU_LOAD;
	case PHASE_SAVE: return GPU_SAVE;
	case PHASE_TRAIN:
	case PHASE_EVAL: return -1;
	default: return GPU_INIT;
	}
}

int ledger_category(const struct job *j)
{
	switch (j->state) {
	case JOB_QUEUED: return j->image.waits ? GPU_IMAGE : GPU_QUEUE;
	case JOB_PAUSED: return GPU_IDLE;
	case JOB_STOPPING: return GPU_DRAIN;
	case JOB_RECOVERING:
		if (j->failure.waiting_node || j->failure.decided)
			return GPU_DETECT;
		if (j->run.n_places == 0)
			return j->image.waits ? GPU_IMAGE : GPU_LAUNCH;
		break;
	default: break;
	}
	if (j->progress.iteration == MO_NONE && j->counts.started < (int64_t)j->run.n_places &&
	    j->progress.phase == PHASE_NONE)
		return GPU_LAUNCH;
	return training(j);
}
