/* A job against its plan: what counts as a steady step, when it is measured, what is reported, and
 * which runs are kept to calibrate later plans. Every record is replayed by the world's shadow. */
#include "tests/unit/dcore/world.h"

#include <math.h>
#include <string.h>

#include "daemon/core/rules/plan_drift.h"
#include "daemon/core/state/anchor.h"
#include "daemon/core/state/shared_words.h"
#include "daemon/core/update/measured.h"

struct one {
	struct world w;
	int64_t id;
};

static int64_t submit(struct world *w, const char *model, const char *engine, double planned_s)
{
	struct submit spec;

	world_recipe(&spec, 2);
	mo_str_set(&spec.recipe.engine.kind, engine);
	mo_str_set(&spec.recipe.precision, "bf16");
	spec.recipe.model = mo_desc_new(&recipe_model_desc);
	spec.recipe.model->name = mo_strdup(model);
	if (planned_s > 0) {
		spec.promise = mo_desc_new(&promise_desc);
		*spec.promise = (struct promise){ .step_time_s = planned_s,
						  .memory_gb = 100,
						  .bubble = 0.086,
						  .error_pct = 20,
						  .anchors = 0 };
	}
	spec.recipe.engine.traits = mo_desc_new(&engine_traits_desc);
	int64_t id = world_submit(w, &spec);

	mo_desc_done(&submit_desc, &spec);
	assert_true(id > 0);
	return id;
}

static void begin(struct one *o, double planned_s)
{
	world_init(&o->w, 1, 2);
	o->id = submit(&o->w, "mixtral-8x22b", "megatron-lm", planned_s);
	world_run(&o->w, 2 * S);
}

static void step(struct world *w, int64_t id, int64_t iteration, double ms, double gb)
{
	struct note *n = world_note(w, 0, id, NOTE_SAMPLE);

	n->sample = mo_desc_new(&sample_desc);
	n->sample->iteration = iteration;
	n->sample->step_ms = ms;
	n->sample->mem_gb = gb;
}

static void steps(struct world *w, int64_t id, int64_t from, int64_t to, double ms)
{
	for (int64_t i = from; i <= to; i++)
		step(w, id, i, ms, 110);
	world_run(w, S);
}

static const struct job *job(const struct one *o)
{
	return world_job(&o->w, o->id);
}

static void view(const struct one *o, struct job_view *v)
{
	mo_desc_init(&job_view_desc, v);
	job_view(core_state(o->w.core), job(o), o->w.now, v);
}

/* Warm-up of nine seconds a step, evaluations of five, then 50 steady ones. */
static void steady_steps_are_measured(void **state)
{
	struct one o;
	struct job_view v;

	begin(&o, 1.0);
	steps(&o.w, o.id, 1, 10, 9000);
	steps(&o.w, o.id, 11, 40, 1100);
	for (int64_t i = 41; i <= 44; i++)
		step(&o.w, o.id, i, 5000, 110);
	steps(&o.w, o.id, 45, 63, 1100);
	assert_null(job(&o)->progress.measured); /* 49 */
	view(&o, &v);
	assert_true(v.plan->drift.step_time_s == MO_NONE_F && v.plan->within == -1);
	assert_non_null(strstr(v.plan->text, "after 50 steady steps"));
	mo_desc_done(&job_view_desc, &v);
	steps(&o.w, o.id, 64, 64, 1100);
	assert_non_null(job(&o)->progress.measured);
	assert_int_equal(job(&o)->progress.measured->steps, 50);
	assert_true(fabs(job(&o)->progress.measured->step_time_s - 1.1) < 1e-9);
	view(&o, &v);
	assert_true(fabs(v.plan->drift.step_time_s - 0.1) < 1e-9 &&
		    fabs(v.plan->drift.memory_gb - 0.1) < 1e-9);
	assert_true(v.plan->within == 1 && v.plan->actual.bubble == MO_NONE_F &&
		    v.plan->planned.bubble == 0.086);
	assert_non_null(strstr(v.plan->text, "step 1.1 s, planned 1 s (+10 %, within the 20 %"));
	assert_non_null(
		strstr(v.plan->text, "memory 110.0 GB, planned 100.0 GB (+10 %); 50 steady steps"));
	assert_string_equal(v.plan->bubble_note, "8.6 % planned; the run's is not known: engine "
						 "megatron-lm writes no pipeline dump");
	assert_null(v.plan->chosen);
	mo_desc_done(&job_view_desc, &v);
	assert_false(world_event_seen(&o.w, "plan.drift"));
	world_done(&o.w);
}

/* What is said of a bubble that nobody measured, and what `parallelism: auto` became. */
static void unknown_bubble_and_chosen_sizes(void **state)
{
	static const struct {
		const char *dumps, *arg;
		double bubble;
		const char *said;
		bool older;
	} rows[] = {
		{ "write_pipe", NULL, 0.25,
		  "25.0 % planned; the run's is not known: with write_pipe: true in engine.args it "
		  "dumps" },
		{ "write_pipe", "write_pipe", 0.25,
		  "25.0 % planned; the run dumps its pipeline at its end: moectl plan RECIPE "
		  "--pp-dump DIR measures it" },
		{ "write_pipe", "--write-pipe=true", 0.25, "with DIR here" },
		{ "write_pipe", "write", 0.25, "with write_pipe: true in engine.args it dumps" },
		{ NULL, NULL, 0.25, "engine megatron-lm writes no pipeline dump" },
		{ NULL, NULL, 0.25, "25.0 % planned; the run's is not known", true },
		{ "write_pipe", NULL, 0, NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct one o;
		struct job_view v;

		begin(&o, 1.0);
		struct submit *spec =
			(struct submit *)(uintptr_t)&job_find(core_state(o.w.core), o.id)->spec;

		words_own(spec);
		mo_str_set(&spec->engine.dump_key, rows[i].dumps);
		mo_str_set(&spec->engine.dump_in, rows[i].dumps ? "here" : NULL);
		if (rows[i].older) {
			mo_desc_free(&engine_traits_desc, spec->recipe.engine.traits);
			spec->recipe.engine.traits = NULL;
		}
		if (rows[i].arg)
			mo_str_set(&MO_ADD(&spec->recipe.engine, args, &kv_desc)->key, rows[i].arg);
		spec->promise->bubble = rows[i].bubble;
		spec->recipe.parallelism.automatic = i == 1;
		spec->recipe.parallelism.pp = 4;
		if (i == 1) {
			struct kv *layout = MO_ADD(&spec->recipe, features, &kv_desc);

			mo_str_set(&layout->key, "pipeline_layout");
			mo_str_set(&layout->value, "Et*2|t*2|t*2|t*1,L");
		}
		view(&o, &v);
		if (rows[i].said
			    ? !v.plan->bubble_note || !strstr(v.plan->bubble_note, rows[i].said)
			    : v.plan->bubble_note != NULL)
			fail_msg("row %zu: %s", i,
				 v.plan->bubble_note ? v.plan->bubble_note : "nothing");
		assert_true((v.plan->chosen != NULL) == (i == 1));
		if (i == 1) {
			assert_int_equal(v.plan->chosen->pp, 4);
			assert_string_equal(v.plan->chosen->pipeline_layout, "Et*2|t*2|t*2|t*1,L");
		}
		mo_desc_done(&job_view_desc, &v);
		/* of the shared engine, which the job does not free */
		mo_str_set(&spec->engine.dump_key, NULL);
		mo_str_set(&spec->engine.dump_in, NULL);
		world_done(&o.w);
	}
}

/* Measured again only when it has gone twice as far; reported once when it leaves the error bar. */
static void drift_is_reported_once(void **state)
{
	struct one o;

	begin(&o, 1.0);
	steps(&o.w, o.id, 1, 60, 1300);
	assert_true(world_event_seen(&o.w, "plan.drift"));
	assert_int_equal(job(&o)->progress.measured->iteration, 60);
	size_t events = 0;

	steps(&o.w, o.id, 61, 119, 1300);
	assert_int_equal(job(&o)->progress.measured->iteration, 60);
	steps(&o.w, o.id, 120, 400, 1300);
	assert_int_equal(job(&o)->progress.measured->iteration, 400);
	for (size_t i = 0; i < core_state(o.w.core)->n_events; i++)
		events += mo_streq(core_state(o.w.core)->events[i].type, "plan.drift");
	assert_int_equal(events, 1);
	world_crash(&o.w);
	assert_int_equal(job(&o)->progress.measured->iteration, 400);
	assert_int_equal(core_state(o.w.core)->n_anchors, 1);
	world_done(&o.w);
}

/* A save every tenth step, in the step behind it, does not count; nor does an attempt before it has
 * warmed up. */
static void saves_and_restarts_are_left_out(void **state)
{
	struct one o;
	struct measured m;
	size_t n;

	begin(&o, 1.0);
	struct job *j = (struct job *)(uintptr_t)job_find(core_state(o.w.core), o.id);

	for (int64_t i = 1; i <= 80; i++) {
		struct sample *s = MO_ADD(&j->progress, samples, &sample_desc);

		s->iteration = i;
		s->attempt = j->attempt;
		s->step_ms = i % 2 && i > 10 ? 1400 : 1000;
		if (i % 2 == 0)
			MO_ADD(j, checkpoints, &checkpoint_desc)->iteration = i;
	}
	j->progress.iteration = 80;
	assert_false(plan_drift_measure(j, &m)); /* each is beside a save */
	mo_vec_clear(&checkpoint_desc, (void **)&j->checkpoints, &j->n_checkpoints);
	assert_true(plan_drift_measure(j, &m));
	assert_int_equal(m.steps, 70);
	assert_true(fabs(m.step_time_s - 1.2) < 1e-9);
	n = j->progress.n_samples;
	j->attempt++;
	assert_false(plan_drift_measure(j, &m));
	j->progress.n_samples = n;
	j->attempt--;
	mo_vec_clear(&sample_desc, (void **)&j->progress.samples, &j->progress.n_samples);
	mo_desc_free(&measured_desc, j->progress.measured);
	j->progress.measured = NULL;
	j->progress.iteration = MO_NONE;
	world_done(&o.w);
}

static void run_one(struct world *w, const char *model, double ms)
{
	int64_t id = submit(w, model, "megatron-lm", 1.0);

	world_run(w, 3 * S);
	steps(w, id, 1, 60, ms);
	assert_non_null(world_job(w, id)->progress.measured);
	world_verb(w, IN_CANCEL, id);
	world_run(w, 5 * S);
	assert_true(job_state_final(world_job(w, id)->state));
}

/* The newest four of a stack; a run that is four times off did not run what was planned. */
static void anchors_are_kept_by_stack(void **state)
{
	struct world w;
	const struct state *s;

	world_init(&w, 1, 2);
	for (int i = 0; i < 6; i++)
		run_one(&w, "mixtral-8x22b", 1000 + i);
	run_one(&w, "llama3-8b", 1000);
	run_one(&w, "llama3-8b", 4100);
	run_one(&w, "llama3-8b", 200);
	s = core_state(w.core);
	assert_int_equal(s->n_anchors, 5);
	assert_int_equal(s->anchors[0].job, 3);
	assert_string_equal(s->anchors[4].model, "llama3-8b");
	assert_string_equal(s->anchors[4].software, "megatron-lm");
	assert_true(fabs(s->anchors[3].measured.step_time_s - 1.005) < 1e-9);
	world_crash(&w);
	assert_int_equal(core_state(w.core)->n_anchors, 5);
	world_done(&w);
}

static void another_version_retires_the_one_before(void **state)
{
	struct state s;

	mo_desc_init(&state_desc, &s);
	for (int i = 0; i < 3; i++) {
		struct anchor *a = MO_ADD(&s, anchors, &anchor_desc);

		a->gpu = mo_strdup("mi355x");
		a->model = mo_strdup(i == 1 ? "other" : "model");
		a->version = mo_strdup(i == 2 ? "7.1" : "7.0");
	}
	assert_false(anchor_current(&s, &s.anchors[0]));
	assert_true(anchor_current(&s, &s.anchors[1]));
	assert_true(anchor_current(&s, &s.anchors[2]));
	mo_desc_done(&state_desc, &s);
}

static void without_a_promise_nothing_is_said(void **state)
{
	struct one o;
	struct job_view v;

	begin(&o, 0);
	steps(&o.w, o.id, 1, 200, 1000);
	assert_null(job(&o)->progress.measured);
	view(&o, &v);
	assert_null(v.plan);
	mo_desc_done(&job_view_desc, &v);
	world_done(&o.w);
}

/* A job of these step times, one sample an iteration from the 11th on. */
static struct job *of_steps(const double *ms, size_t n)
{
	struct job *j = mo_desc_new(&job_desc);

	j->attempt = 1;
	j->run.resume = MO_NONE;
	for (size_t i = 0; i < n; i++) {
		struct sample *s = MO_ADD(&j->progress, samples, &sample_desc);

		s->iteration = j->progress.iteration = 11 + (int64_t)i;
		s->attempt = 1;
		s->step_ms = ms[i];
	}
	return j;
}

/* Steady steps of 50 of a second and extra ones of so many ms. */
static int64_t counted(double ms, size_t extra)
{
	double all[64];
	struct measured m = { 0 };

	for (size_t i = 0; i < 50 + extra; i++)
		all[i] = i < 50 ? 1000 : ms;
	struct job *j = of_steps(all, 50 + extra);
	int64_t ret = plan_drift_measure(j, &m) ? m.steps : 0;

	assert_true(m.step_time_s == 1);
	mo_desc_free(&job_desc, j);
	return ret;
}

static void what_stands_out_does_not_count(void **state)
{
	assert_int_equal(counted(1499, 5), 55);
	assert_int_equal(counted(1501, 5), 50);
	assert_int_equal(counted(668, 5), 55);
	assert_int_equal(counted(666, 5), 50);
}

/* Steps that count, of 60 of which some are changed by what the case says. */
static void what_counts(void **state)
{
	double ms[60];
	struct measured m;

	for (size_t i = 0; i < ELEMENTSOF(ms); i++)
		ms[i] = 1000;
	static const struct {
		int64_t steps;
		int phase;
		bool broken;
		int64_t resume, save;
		size_t stride;
	} cases[] = {
		{ .steps = 60 },
		{ .steps = 50, .phase = PHASE_EVAL },
		{ .steps = 50, .phase = PHASE_SAVE },
		{ .steps = 50, .broken = true },
		{ .steps = 50, .resume = 10 },
		{ .steps = 0, .resume = 11 },
		/* the step of a save and the one behind it */
		{ .steps = 58, .save = 40 },
		/* of two iterations a sample: it has its share of saves; the first stands for
		 * one */
		{ .steps = 119, .save = 40, .stride = 2 },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct job *j = of_steps(ms, ELEMENTSOF(ms));

		for (size_t k = 0; k < 10; k++) {
			j->progress.samples[k].phase =
				cases[i].phase ? cases[i].phase : j->progress.samples[k].phase;
			if (cases[i].broken)
				j->progress.samples[k].step_ms =
					(const double[]){ MO_NONE_F, 0, -1, NAN, INFINITY }[k % 5];
		}
		for (size_t k = 0; cases[i].stride && k < j->progress.n_samples; k++)
			j->progress.samples[k].iteration = 11 + (int64_t)(k * cases[i].stride);
		if (cases[i].resume)
			j->run.resume = cases[i].resume;
		if (cases[i].save)
			MO_ADD(j, checkpoints, &checkpoint_desc)->iteration = cases[i].save;
		bool said = plan_drift_measure(j, &m);

		if (said != (cases[i].steps > 0) || (said && m.steps != cases[i].steps))
			fail_msg("case %zu: %d steps", i, said ? (int)m.steps : 0);
		mo_desc_free(&job_desc, j);
	}
}

/* Measured with 60, 120 and 240 iterations of an attempt, and with 60 of the next. */
static void looked_at_when_twice_as_far(void **state)
{
	static const struct {
		int64_t to, seen;
	} rows[] = { { 59, 0 }, { 60, 60 }, { 119, 60 }, { 120, 120 }, { 239, 120 }, { 240, 240 } };
	struct one o;
	int64_t at = 1;

	begin(&o, 1.0);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		steps(&o.w, o.id, at, rows[i].to, 1000);
		at = rows[i].to + 1;
		assert_int_equal(job(&o)->progress.measured ? job(&o)->progress.measured->iteration
							    : 0,
				 rows[i].seen);
	}
	world_done(&o.w);
}

/* What was measured of the attempt before does not make the next one wait for twice as many. */
static void the_next_attempt_is_looked_at_anew(void **state)
{
	struct one o;

	begin(&o, 1.0);
	steps(&o.w, o.id, 1, 60, 1000);
	assert_int_equal(job(&o)->progress.measured->iteration, 60);
	job_find(core_state(o.w.core), o.id)->progress.measured->attempt--;
	steps(&o.w, o.id, 61, 61, 1000);
	assert_int_equal(job(&o)->progress.measured->iteration, 61);
	assert_int_equal(job(&o)->progress.measured->attempt, job(&o)->attempt);
	world_done(&o.w);
}

/* A plan says what fits at its worst. */
static void the_most_memory_counts(void **state)
{
	double ms[60];
	struct measured m;

	for (size_t i = 0; i < ELEMENTSOF(ms); i++)
		ms[i] = 1000;
	struct job *j = of_steps(ms, ELEMENTSOF(ms));

	for (size_t i = 0; i < j->progress.n_samples; i++)
		j->progress.samples[i].mem_gb = i == 30 ? 140 : i == 40 ? INFINITY : 100;
	assert_true(plan_drift_measure(j, &m));
	assert_true(m.memory_gb == 140);
	mo_desc_free(&job_desc, j);
}

static size_t drifts(const struct world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < core_state(w->core)->n_events; i++)
		n += mo_streq(core_state(w->core)->events[i].type, "plan.drift");
	return n;
}

/* The bar is 20 %: on either side, its edge inside. */
static void the_bar_of_drift(void **state)
{
	static const struct {
		double ms;
		bool reported;
	} rows[] = { { 1199, false }, { 1201, true }, { 801, false }, { 799, true } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct one o;
		struct job_view v;

		begin(&o, 1.0);
		steps(&o.w, o.id, 1, 60, rows[i].ms);
		view(&o, &v);
		assert_int_equal(v.plan->within, !rows[i].reported);
		mo_desc_done(&job_view_desc, &v);
		assert_int_equal(drifts(&o.w), rows[i].reported);
		world_done(&o.w);
	}
}

/* Four times its promise, or a quarter, still calibrates; more is reported and forgotten. */
static void far_runs_calibrate_nothing(void **state)
{
	static const struct {
		double ms;
		size_t retained;
	} rows[] = { { 3990, 1 }, { 4010, 0 }, { 251, 1 }, { 249, 0 } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct one o;

		begin(&o, 1.0);
		steps(&o.w, o.id, 1, 60, rows[i].ms);
		assert_int_equal(core_state(o.w.core)->n_anchors, rows[i].retained);
		assert_int_equal(drifts(&o.w), 1);
		world_done(&o.w);
	}
}

/* An anchor has the version of ROCm that its node reported; an upgrade retires the stack's former
 * ones and no others. */
static void anchors_know_their_version(void **state)
{
	struct world w;
	const struct state *s;

	world_init(&w, 1, 2);
	w.toys[0].health = mo_desc_new(&node_health_desc);
	w.toys[0].health->version = 1;
	struct stack_item *rocm = MO_ADD(w.toys[0].health, stack, &stack_item_desc);

	rocm->key = mo_strdup("rocm");
	rocm->value = mo_strdup("7.0.1");
	world_run(&w, 5 * S);
	run_one(&w, "mixtral-8x22b", 1000);
	run_one(&w, "llama3-8b", 1000);
	mo_str_set(&w.toys[0].health->stack[0].value, "7.1.0");
	w.toys[0].health->version++;
	world_run(&w, 5 * S);
	run_one(&w, "mixtral-8x22b", 1000);
	s = core_state(w.core);
	assert_int_equal(s->n_anchors, 3);
	assert_string_equal(s->anchors[0].version, "7.0.1");
	assert_string_equal(s->anchors[2].version, "7.1.0");
	assert_false(anchor_current(s, &s->anchors[0]));
	assert_true(anchor_current(s, &s->anchors[1]));
	assert_true(anchor_current(s, &s->anchors[2]));
	world_done(&w);
}

/* 64 anchors in all: the oldest goes. */
static void the_oldest_of_all_goes(void **state)
{
	struct core c = { 0 };
	struct measured m = { .step_time_s = 1, .steps = 50 };
	struct record r;

	mo_desc_init(&state_desc, &c.owned);
	struct job *j = MO_INSERT(&c.owned, jobs, c.owned.n_jobs, &job_desc);

	j->spec.recipe.model = mo_desc_new(&recipe_model_desc);
	record_init(&r, REC_MEASURED);
	r.measured->run = m;
	r.measured->calibrates = true;
	for (int64_t i = 1; i <= 66; i++) {
		_cleanup_(mo_freep) char *model = mo_printf("model-%d", (int)i);

		r.job = j->id = i;
		mo_str_set(&j->spec.recipe.model->name, model);
		assert_int_equal(update_measured(&c, &r), 0);
		assert_int_equal(c.owned.n_anchors, MO_MIN(i, 64));
	}
	mo_desc_done(&record_desc, &r);
	assert_string_equal(c.owned.anchors[0].model, "model-3");
	assert_string_equal(c.owned.anchors[63].model, "model-66");
	mo_desc_done(&state_desc, &c.owned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady_steps_are_measured),
		cmocka_unit_test(unknown_bubble_and_chosen_sizes),
		cmocka_unit_test(drift_is_reported_once),
		cmocka_unit_test(saves_and_restarts_are_left_out),
		cmocka_unit_test(anchors_are_kept_by_stack),
		cmocka_unit_test(another_version_retires_the_one_before),
		cmocka_unit_test(without_a_promise_nothing_is_said),
		cmocka_unit_test(what_stands_out_does_not_count),
		cmocka_unit_test(what_counts),
		cmocka_unit_test(looked_at_when_twice_as_far),
		cmocka_unit_test(the_next_attempt_is_looked_at_anew),
		cmocka_unit_test(the_most_memory_counts),
		cmocka_unit_test(the_bar_of_drift),
		cmocka_unit_test(far_runs_calibrate_nothing),
		cmocka_unit_test(anchors_know_their_version),
		cmocka_unit_test(the_oldest_of_all_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
