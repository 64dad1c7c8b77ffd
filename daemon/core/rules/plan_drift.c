/* See actual.h. A job is measured when its attempt has PLAN_DRIFT_STEPS steady steps and again each
 * time that it has gone twice as far, so a run of a million iterations costs twenty records. The
 * newest ANCHORS_STACK runs of a stack are retained, ANCHORS_MAX in all. A run far off its plan did
 * not run what was planned, so it is reported and calibrates nothing. */
#include "daemon/core/rules/plan_drift.h"

#include <math.h>
#include <stdlib.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "lib/base/buf.h"

#define WINDOW 512 /* newest samples that count */
/* times the median, or the median times that: an evaluation, a hiccup, an iteration that was cut */
#define OUTLIER 1.5
#define FAR 4.0 /* times the promise, or the promise times that */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static bool holds_save(const struct job *j, int64_t from, int64_t to)
{
	for (size_t i = j->n_checkpoints; i > 0; i--)
		if (j->checkpoints[i - 1].iteration >= from &&
		    j->checkpoints[i - 1].iteration <= to)
			return true;
	return false;
}

/* Iterations that the sample stands for, 0 when it does not count. A sample of one iteration
 * that a save may have lengthened does not; one of many has its share of saves. */
static int64_t steady(const struct job *j, size_t at)
{
	const struct sample *s = &j->progress.samples[at],
			    *before = at > 0 && s[-1].attempt == s->attempt ? &s[-1] : NULL;
	int64_t covers = before ? s->iteration - before->iteration : 1;

	if (s->iteration <= MO_MAX(j->run.resume, 0) + PLAN_DRIFT_WARM_UP ||
	    s->step_ms == MO_NONE_F || !isfinite(s->step_ms) || s->step_ms <= 0)
		return 0;
	if (s->phase == PHASE_SAVE || s->phase == PHASE_EVAL ||
	    (covers == 1 && holds_save(j, s->iteration - 1, s->iteration)))
		return 0;
	return covers;
}

static bool near(double a, double b, double times)
{
	return a <= b * times && b <= a * times;
}

bool plan_drift_measure(const struct job *j, struct measured *ret)
{
	double ms[WINDOW], memory = MO_NONE_F;
	int64_t covers[WINDOW], at[WINDOW], steps = 0;
	size_t n = 0, retained = 0;

	for (size_t i = j->progress.n_samples;
	     i > 0 && n < WINDOW && j->progress.samples[i - 1].attempt == j->attempt; i--) {
		int64_t c = steady(j, i - 1);
		double gb = j->progress.samples[i - 1].mem_gb;

		if (gb != MO_NONE_F && isfinite(gb) && gb > 0)
			memory = MO_MAX(memory, gb);
		if (c == 0)
			continue;
		covers[n] = c;
		at[n] = (int64_t)i - 1;
		ms[n++] = j->progress.samples[i - 1].step_ms;
	}
	if (n == 0)
		return false;
	double middle = median(ms, n);

	for (size_t i = 0; i < n; i++)
		if (near(j->progress.samples[at[i]].step_ms, middle, OUTLIER)) {
			ms[retained++] = j->progress.samples[at[i]].step_ms;
			steps += covers[i];
		}
	if (steps < PLAN_DRIFT_STEPS)
		return false;
	*ret = (struct measured){ .steps = steps,
				  .attempt = j->attempt,
				  .iteration = j->progress.iteration,
				  .step_time_s = median(ms, retained) / 1000,
				  .memory_gb = memory };
	return true;
}

double plan_drift_ratio(double actual, double planned)
{
	return actual == MO_NONE_F || planned == MO_NONE_F || planned <= 0 ? MO_NONE_F
									   : actual / planned - 1;
}

bool plan_drift_within(const struct promise *p, const struct measured *m)
{
	return fabs(plan_drift_ratio(m->step_time_s, p->step_time_s)) * 100 <= p->error_pct;
}

char *plan_drift_text(const struct promise *p, const struct measured *m)
{
	struct mo_buf b = { 0 };
	bool inside = plan_drift_within(p, m);

	mo_buf_printf(&b,
		      "step %.3g s, planned %.3g s (%+.0f %%, %s the %.0f %% that plans may be "
		      "off)",
		      m->step_time_s, p->step_time_s,
		      plan_drift_ratio(m->step_time_s, p->step_time_s) * 100,
		      inside ? "within" : "beyond", p->error_pct);
	if (m->memory_gb != MO_NONE_F)
		mo_buf_printf(&b, "; memory %.1f GB, planned %.1f GB (%+.0f %%)", m->memory_gb,
			      p->memory_gb, plan_drift_ratio(m->memory_gb, p->memory_gb) * 100);
	mo_buf_printf(&b, "; %lld steady steps of attempt %lld", (long long)m->steps,
		      (long long)m->attempt);
	return mo_buf_take(&b);
}

static bool due(const struct job *j)
{
	int64_t start = MO_MAX(j->run.resume, 0), again = PLAN_DRIFT_WARM_UP + PLAN_DRIFT_STEPS;

	if (!j->spec.promise || j->progress.iteration == MO_NONE)
		return false;
	if (j->progress.measured && j->progress.measured->attempt == j->attempt)
		again = 2 * (j->progress.measured->iteration - start);
	return j->progress.iteration - start >= again;
}

static void tell(struct turn *t, int64_t id, bool was_inside)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct promise *p = j->spec.promise;
	struct mo_buf b = { 0 };

	if (plan_drift_within(p, j->progress.measured) || !was_inside)
		return;
	_cleanup_(mo_freep) char *text = plan_drift_text(p, j->progress.measured);

	data_real(&b, "step_time_s", j->progress.measured->step_time_s);
	data_real(&b, "planned_s", p->step_time_s);
	data_real(&b, "error_pct", p->error_pct);
	event_emit(t, EVENT_PLAN_DRIFT, id, NULL, MO_NONE, j->attempt, data_end(&b), "%s", text);
}

bool plan_drift_act(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	struct measured m;
	struct record r;

	if (!due(j) || !plan_drift_measure(j, &m))
		return false;
	bool was_inside =
		!j->progress.measured || plan_drift_within(j->spec.promise, j->progress.measured);

	record_init(&r, REC_MEASURED);
	r.job = id;
	m.time = t->now;
	r.measured->run = m;
	r.measured->calibrates = near(m.step_time_s, j->spec.promise->step_time_s, FAR);
	turn_emit(t, &r);
	tell(t, id, was_inside);
	return true;
}
