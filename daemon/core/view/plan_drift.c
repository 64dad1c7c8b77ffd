/* See plan_drift.h. */
#include "daemon/core/view/plan_drift.h"

#include <string.h>

#include "daemon/core/rules/plan_drift.h"
#include "daemon/core/rules/schedule.h"

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

void plan_drift_of(const struct job *j, struct actual *ret)
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
				      p->step_time_s, p->memory_gb, PLAN_DRIFT_STEPS);
		return;
	}
	ret->actual = (struct actual_numbers){ m->step_time_s, m->memory_gb, MO_NONE_F };
	ret->drift =
		(struct actual_numbers){ plan_drift_ratio(m->step_time_s, p->step_time_s),
					 plan_drift_ratio(m->memory_gb, p->memory_gb), MO_NONE_F };
	ret->steps = m->steps;
	ret->iteration = m->iteration;
	ret->attempt = m->attempt;
	ret->measured_at = m->time;
	ret->within = plan_drift_within(p, m);
	ret->text = plan_drift_text(p, m);
}
