/* See actual.h. A job is measured when its attempt has ACTUAL_STEPS steady steps and again each
 * time that it has gone twice as far, so a run of a million iterations costs twenty records. The
 * newest ANCHORS_STACK runs of a stack are kept, ANCHORS_MAX in all. A run far off its plan did
 * not run what was planned, so it is told and calibrates nothing. */
#include "daemon/core/rules/actual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/schedule.h"
#include "daemon/core/rules/turn.h"
#include "lib/base/buf.h"

#define WINDOW 512 /* newest samples that are looked at */
/* times the median, or the median times that: an evaluation, a hiccup, an iteration that was cut */
#define OUTLIER 1.5
#define FAR 4.0 /* times the promise, or the promise times that */

static const struct mo_field actual_numbers_fields[] = {
	MO_D(actual_numbers, step_time_s, MO_REAL, "seconds of an iteration; of drift the share"),
	MO_D(actual_numbers, memory_gb, MO_REAL, "memory of a GPU, 10^9 bytes; of drift the share"),
	MO_D(actual_numbers, bubble, MO_REAL,
	     "share of the step in which pipeline stages wait; of drift the share"),
};
static const struct mo_desc actual_numbers_desc = MO_DESC(actual_numbers, actual_numbers_fields);
static const struct mo_field actual_chosen_fields[] = {
	MO_D(actual_chosen, tp, MO_INT, "tensor parallel size"),
	MO_D(actual_chosen, pp, MO_INT, "pipeline parallel size"),
	MO_D(actual_chosen, vpp, MO_INT, "virtual pipeline stages of a GPU"),
	MO_D(actual_chosen, ep, MO_INT, "expert parallel size"),
	MO_D(actual_chosen, etp, MO_INT, "tensor parallel size of experts"),
	MO_D(actual_chosen, cp, MO_INT, "context parallel size"),
	MO_D(actual_chosen, dp, MO_INT, "data parallel size"),
	MO_D(actual_chosen, micro, MO_INT, "sequences of a micro batch"),
	MO_D(actual_chosen, sharding, MO_STR, "how parameters and optimizer are sharded"),
	MO_D(actual_chosen, schedule, MO_STR, "pipeline schedule"),
	MO_D(actual_chosen, recompute, MO_STR,
	     "what is computed again in the backward pass; null: as engine.args say"),
	MO_D(actual_chosen, pipeline_layout, MO_STR, "which layers a stage has"),
};
static const struct mo_desc actual_chosen_desc = MO_DESC(actual_chosen, actual_chosen_fields);
static const struct mo_field actual_fields[] = {
	MO_D_SUB(actual, chosen, MO_OPT, &actual_chosen_desc,
		 "what parallelism: auto became; null: the recipe gives the sizes"),
	MO_D_SUB(actual, planned, MO_STRUCT, &actual_numbers_desc,
		 "what the planner promised at the submit"),
	MO_D(actual, error_pct, MO_REAL, "how wrong the planner said it may be, percent"),
	MO_D(actual, anchors, MO_INT, "measured runs that calibrated the plan"),
	MO_D_SUB(actual, actual, MO_STRUCT, &actual_numbers_desc,
		 "what is measured; null until 50 steady steps"),
	MO_D_SUB(actual, drift, MO_STRUCT, &actual_numbers_desc, "actual / planned - 1"),
	MO_D(actual, steps, MO_INT, "steady steps that were measured"),
	MO_D(actual, iteration, MO_INT, "newest iteration of these"),
	MO_D(actual, attempt, MO_INT, "attempt that was measured"),
	MO_D(actual, measured_at, MO_TIME, "when it was measured"),
	MO_D(actual, within, MO_TRI, "step time is inside error_pct of the plan"),
	MO_D(actual, text, MO_STR, "the comparison in words"),
	MO_D(actual, bubble_note, MO_STR, "how the bubble is measured; null: none is planned"),
};
const struct mo_desc actual_desc = MO_DESC(actual, actual_fields);

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

	if (s->iteration <= MO_MAX(j->run.resume, 0) + ACTUAL_WARM_UP || s->step_ms == MO_NONE_F ||
	    !isfinite(s->step_ms) || s->step_ms <= 0)
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

bool actual_measure(const struct job *j, struct measured *ret)
{
	double ms[WINDOW], memory = MO_NONE_F;
	int64_t covers[WINDOW], at[WINDOW], steps = 0;
	size_t n = 0, kept = 0;

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
			ms[kept++] = j->progress.samples[at[i]].step_ms;
			steps += covers[i];
		}
	if (steps < ACTUAL_STEPS)
		return false;
	*ret = (struct measured){ .steps = steps,
				  .attempt = j->attempt,
				  .iteration = j->progress.iteration,
				  .step_time_s = median(ms, kept) / 1000,
				  .memory_gb = memory };
	return true;
}

static double drift(double actual, double planned)
{
	return actual == MO_NONE_F || planned == MO_NONE_F || planned <= 0 ? MO_NONE_F
									   : actual / planned - 1;
}

static bool within(const struct promise *p, const struct measured *m)
{
	return fabs(drift(m->step_time_s, p->step_time_s)) * 100 <= p->error_pct;
}

static char *describe(const struct promise *p, const struct measured *m)
{
	struct mo_buf b = { 0 };
	bool inside = within(p, m);

	mo_buf_printf(&b,
		      "step %.3g s, planned %.3g s (%+.0f %%, %s the %.0f %% that plans may be "
		      "off)",
		      m->step_time_s, p->step_time_s, drift(m->step_time_s, p->step_time_s) * 100,
		      inside ? "within" : "beyond", p->error_pct);
	if (m->memory_gb != MO_NONE_F)
		mo_buf_printf(&b, "; memory %.1f GB, planned %.1f GB (%+.0f %%)", m->memory_gb,
			      p->memory_gb, drift(m->memory_gb, p->memory_gb) * 100);
	mo_buf_printf(&b, "; %lld steady steps of attempt %lld", (long long)m->steps,
		      (long long)m->attempt);
	return mo_buf_take(&b);
}

static struct actual_chosen *chosen_of(const struct recipe *r)
{
	const struct recipe_parallelism *p = &r->parallelism;

	if (!p->automatic)
		return NULL;
	struct actual_chosen *c = mo_desc_new(&actual_chosen_desc);

	*c = (struct actual_chosen){ p->tp,
				     p->pp,
				     p->vpp,
				     p->ep,
				     p->etp,
				     p->cp,
				     p->dp,
				     r->micro,
				     mo_strdup(p->sharding),
				     mo_strdup(p->schedule),
				     mo_strdup(r->recompute),
				     NULL };
	for (size_t i = 0; i < r->n_features; i++)
		if (mo_streq(r->features[i].key, "pipeline_layout") &&
		    !mo_streq(r->features[i].value, "auto"))
			mo_str_set(&c->pipeline_layout, r->features[i].value);
	return c;
}

/* Is the word the flag, or begins with it? Dashes in front and '-' for '_' make no difference. */
static bool begins_as(const char *word, const char *flag)
{
	word += strspn(word, "-");
	while (*flag && (*word == '-' ? '_' : *word) == (*flag == '-' ? '_' : *flag)) {
		word++;
		flag++;
	}
	return !*flag;
}

static bool asks_dump(const struct recipe_engine *e, const char *flag)
{
	for (size_t i = 0; i < e->n_args; i++)
		if (e->args[i].key && begins_as(e->args[i].key, flag))
			return true;
	return false;
}

static char *bubble_note(const struct job *j)
{
	const struct recipe_engine *e = &j->spec.recipe.engine;
	const char *key = j->spec.engine.dump_key, *in = j->spec.engine.dump_in;
	double percent = j->spec.promise->bubble * 100;

	if (j->spec.promise->bubble == MO_NONE_F || j->spec.promise->bubble <= 0)
		return NULL;
	if (!key && !e->traits) /* of an older version, which kept nothing of it */
		return mo_printf("%.1f %% planned; the run's is not known", percent);
	if (!key)
		return mo_printf("%.1f %% planned; the run's is not known: engine %s writes no "
				 "pipeline dump",
				 percent, e->kind);
	if (!asks_dump(e, key))
		return mo_printf("%.1f %% planned; the run's is not known: with %s: true in "
				 "engine.args it dumps its pipeline at its end, and moectl plan "
				 "RECIPE --pp-dump DIR measures that",
				 percent, key);
	return mo_printf("%.1f %% planned; the run dumps its pipeline at its end: moectl plan "
			 "RECIPE --pp-dump DIR measures it, with DIR %s",
			 percent, in);
}

void actual_of(const struct job *j, struct actual *ret)
{
	const struct promise *p = j->spec.promise;
	const struct measured *m = j->progress.measured;

	ret->chosen = chosen_of(&j->spec.recipe);
	ret->bubble_note = bubble_note(j);

	ret->planned = (struct actual_numbers){ p->step_time_s, p->memory_gb, p->bubble };
	ret->error_pct = p->error_pct;
	ret->anchors = p->anchors;
	if (!m) {
		ret->text = mo_printf("step %.3g s, memory %.1f GB planned; set against the run "
				      "after %d steady steps",
				      p->step_time_s, p->memory_gb, ACTUAL_STEPS);
		return;
	}
	ret->actual = (struct actual_numbers){ m->step_time_s, m->memory_gb, MO_NONE_F };
	ret->drift = (struct actual_numbers){ drift(m->step_time_s, p->step_time_s),
					      drift(m->memory_gb, p->memory_gb), MO_NONE_F };
	ret->steps = m->steps;
	ret->iteration = m->iteration;
	ret->attempt = m->attempt;
	ret->measured_at = m->time;
	ret->within = within(p, m);
	ret->text = describe(p, m);
}

static bool due(const struct job *j)
{
	int64_t start = MO_MAX(j->run.resume, 0), again = ACTUAL_WARM_UP + ACTUAL_STEPS;

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

	if (within(p, j->progress.measured) || !was_inside)
		return;
	_cleanup_(mo_freep) char *text = describe(p, j->progress.measured);

	data_real(&b, "step_time_s", j->progress.measured->step_time_s);
	data_real(&b, "planned_s", p->step_time_s);
	data_real(&b, "error_pct", p->error_pct);
	event_emit(t, EVENT_PLAN_DRIFT, id, NULL, MO_NONE, j->attempt, data_end(&b), "%s", text);
}

bool actual_act(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	struct measured m;
	struct record r;

	if (!due(j) || !actual_measure(j, &m))
		return false;
	bool was_inside = !j->progress.measured || within(j->spec.promise, j->progress.measured);

	record_init(&r, REC_MEASURED);
	r.job = id;
	m.time = t->now;
	r.measured->run = m;
	r.measured->calibrates = near(m.step_time_s, j->spec.promise->step_time_s, FAR);
	turn_emit(t, &r);
	tell(t, id, was_inside);
	return true;
}
