/* Whether a resumed attempt goes on with its data, by the samples that its engine says were
 * consumed. */
#include "tests/unit/dcore/saver.h"

#include <math.h>
#include <string.h>

#include "daemon/core/state/data_order.h"
#include "daemon/core/view/report.h"

#define BATCH 8

/* One line; MO_NONE: it does not say. */
static void line(struct saver *o, int64_t iteration, int64_t consumed, int64_t batch)
{
	struct note *n = world_note(&o->w, 0, o->id, NOTE_SAMPLE);

	n->sample = mo_desc_new(&sample_desc);
	n->sample->iteration = iteration;
	n->sample->loss = 2;
	n->sample->consumed_samples = consumed;
	n->sample->batch_samples = batch;
}

/* Lines of every so many iterations, of BATCH samples each, of which `lost` are not counted. */
static void lines(struct saver *o, int64_t from, int64_t to, int64_t every, int64_t lost)
{
	for (int64_t i = from; i <= to; i += every)
		line(o, i, BATCH * (i - lost), BATCH);
	saver_run(o, 1);
}

/* Attempt 1 saved 20, came to 25 and died; attempt 2 went on from there and said nothing yet. */
static void resumed(struct saver *o)
{
	saver_run(o, 2);
	lines(o, 1, 20, 1, 0);
	saver_save(o, 20);
	lines(o, 21, 25, 1, 0);
	saver_crash(o);
	saver_resumed(o, 2, 20);
	assert_null(saver_job(o)->progress.data_order);
}

static const struct data_order *known(struct saver *o, int kind, size_t orders, size_t moved)
{
	const struct data_order *d;

	saver_run(o, 1);
	d = saver_job(o)->progress.data_order;
	assert_non_null(d);
	assert_string_equal(data_order_names[d->kind], data_order_names[kind]);
	assert_int_equal(world_events(&o->w, "data.order"), orders);
	assert_int_equal(world_events(&o->w, "data.moved"), moved);
	assert_int_equal(world_why_says(&o->w, o->id, d->text), data_order_moved(d));
	assert_int_equal(saver_job(o)->state, JOB_RUNNING);
	return d;
}

static void says(const struct data_order *d, const char *words)
{
	if (!strstr(d->text, words))
		fail_msg("it says: %s", d->text);
}

static void it_goes_on(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;
	struct job_view v;
	struct report_view r;

	resumed(o);
	line(o, 21, 168, BATCH);
	d = known(o, DATA_CONTINUES, 1, 0);
	assert_true(d->attempt == 2 && d->resume == 20 && d->iteration == 21 && d->consumed == 168);
	assert_true(d->samples == MO_NONE && d->ended_by == 1);
	/* told once, and by every document */
	lines(o, 22, 30, 1, 0);
	known(o, DATA_CONTINUES, 1, 0);
	mo_desc_init(&job_view_desc, &v);
	job_view(core_state(o->w.core), saver_job(o), o->w.now, &v);
	assert_string_equal(v.data_order->text, d->text);
	mo_desc_done(&job_view_desc, &v);
	mo_desc_init(&report_view_desc, &r);
	job_report(core_state(o->w.core), saver_job(o), o->w.now, &r);
	assert_string_equal(r.data_order->text, d->text);
	mo_desc_done(&report_view_desc, &r);
	/* the next attempt is asked anew, about the checkpoint of this one */
	saver_save(o, 30);
	saver_crash(o);
	line(o, 31, 248, BATCH);
	d = known(o, DATA_CONTINUES, 2, 0);
	assert_true(d->attempt == 3 && d->resume == 30 && d->ended_by == 2);
}

/* Nobody says how large a batch is: the second line does, with the first. */
static void batches_are_reckoned(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	saver_run(o, 2);
	for (int64_t i = 1; i <= 20; i++)
		line(o, i, BATCH * i, MO_NONE);
	saver_run(o, 1);
	saver_save(o, 20);
	saver_crash(o);
	line(o, 21, 148, MO_NONE);
	saver_run(o, 1);
	assert_null(saver_job(o)->progress.data_order);
	line(o, 22, 156, MO_NONE);
	d = known(o, DATA_REPEATS, 0, 1);
	assert_true(d->begins == 140 && d->ended == 160 && d->samples == 20 && d->iteration == 22);
}

static void it_begins_anew(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	resumed(o);
	line(o, 21, 8, BATCH);
	d = known(o, DATA_ANEW, 0, 1);
	assert_true(d->begins == 0 && d->ended == 160 && d->samples == 160);
	says(d, "attempt 2 begins its data anew and repeats 160 samples: 160 were consumed at "
		"iteration 20, as attempt 1 said, and iteration 21 says 8, which begins at 0");
	/* what follows is measured against what was so then */
	lines(o, 22, 30, 1, 20);
	saver_save(o, 30);
	saver_crash(o);
	line(o, 31, 88, BATCH);
	d = known(o, DATA_CONTINUES, 1, 1);
	assert_true(d->ended == 80 && d->ended_by == 2);
}

static void it_skips_what_nobody_asked_for(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	resumed(o);
	line(o, 21, 200, BATCH);
	d = known(o, DATA_SKIPS, 0, 1);
	assert_true(d->begins == 192 && d->samples == 32);
	says(d, "attempt 2 skips 32 samples");
}

static void it_says_nothing(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	resumed(o);
	line(o, 21, MO_NONE, MO_NONE);
	saver_run(o, 1);
	assert_null(saver_job(o)->progress.data_order); /* the rest of it may come */
	line(o, 22, MO_NONE, MO_NONE);
	d = known(o, DATA_UNKNOWN, 1, 0);
	says(d, "is not known: the engine does not say how many samples were consumed");
	line(o, 23, MO_NONE, MO_NONE);
	known(o, DATA_UNKNOWN, 1, 0);
	/* a late word counts */
	line(o, 24, 192, BATCH);
	known(o, DATA_CONTINUES, 2, 0);
}

static void nobody_said_before(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	saver_run(o, 2);
	for (int64_t i = 1; i <= 20; i++)
		line(o, i, MO_NONE, MO_NONE);
	saver_run(o, 1);
	saver_save(o, 20);
	saver_crash(o);
	line(o, 21, 168, BATCH);
	d = known(o, DATA_UNKNOWN, 1, 0);
	says(d, "no attempt before said how many samples were consumed there");
	assert_true(d->ended == MO_NONE && d->begins == 160);
}

/* Of 10 iterations one is printed, and the checkpoint lies between two of them. */
static void lines_are_sparse(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	lines(o, 10, 20, 10, 0);
	saver_save(o, 25);
	lines(o, 30, 30, 10, 0);
	saver_crash(o);
	saver_resumed(o, 2, 25);
	line(o, 30, 240, BATCH);
	known(o, DATA_CONTINUES, 1, 0);
}

/* The same, and it loses 5 iterations of them. */
static void sparse_lines_repeat(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	saver_run(o, 2);
	lines(o, 10, 20, 10, 0);
	saver_save(o, 25);
	saver_crash(o);
	saver_resumed(o, 2, 25);
	line(o, 30, 200, BATCH);
	d = known(o, DATA_REPEATS, 0, 1);
	assert_true(d->begins == 160 && d->ended == 200 && d->samples == 40);
}

/* Figures are samples: the batch is twice as large behind the checkpoint. */
static void the_batch_changes(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	resumed(o);
	line(o, 21, 176, 2 * BATCH);
	known(o, DATA_CONTINUES, 1, 0);
	/* where it changed cannot be seen from one line in ten */
	lines(o, 22, 22, 1, 0);
	saver_save(o, 22);
	saver_crash(o);
	line(o, 30, 300, 2 * BATCH);
	d = known(o, DATA_UNKNOWN, 2, 0);
	says(d, "the batch was of another size by the first iteration that told");
}

/* It ramps up from one line to the next; both attempts say the same of the next one. */
static void both_ramp_up(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	saver_run(o, 2);
	lines(o, 10, 20, 10, 0);
	saver_save(o, 20);
	line(o, 30, 250, 2 * BATCH);
	saver_run(o, 1);
	saver_crash(o);
	line(o, 30, 250, 2 * BATCH);
	d = known(o, DATA_CONTINUES, 1, 0);
	says(d, "250 samples were consumed through iteration 30 in it and in attempt 1");
}

/* A window of 20 to 29: the engine trains 21 with the data behind it. */
static void a_window_is_left_out(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	saver_skips(o, 1, "{iterations}");
	saver_run(o, 2);
	lines(o, 1, 20, 1, 0);
	saver_save(o, 20);
	for (int64_t i = 21; i < 30; i++) {
		struct note *n = world_note(&o->w, 0, o->id, NOTE_SAMPLE);

		n->sample = mo_desc_new(&sample_desc);
		n->sample->iteration = i;
		n->sample->loss = i < 25 ? 2 : NAN;
	}
	saver_run(o, 4);
	saver_resumed(o, 2, 20);
	line(o, 21, 8 * (20 + 9 + 1), BATCH);
	d = known(o, DATA_LEFT_OUT, 1, 0);
	assert_int_equal(d->samples, 72);
	says(d, "leaves out 72 samples as recovery.loss_spike.skip asks");
	/* the next one leaves out one iteration more than that */
	saver_crash(o);
	line(o, 21, 8 * (20 + 11 + 1), BATCH);
	known(o, DATA_SKIPS, 1, 1);
	/* and one counts its iterations, as Megatron does */
	saver_crash(o);
	line(o, 30, 240, BATCH);
	known(o, DATA_CONTINUES, 2, 1);
}

static void figures_do_not_fit(void **state)
{
	struct saver *o = *state;
	const struct data_order *d;

	resumed(o);
	line(o, 21, 8, INT64_MAX / 2);
	d = known(o, DATA_UNKNOWN, 1, 0);
	says(d, "its lines say fewer samples than its iterations take");
	saver_crash(o);
	line(o, 1LL << 50, 8, INT64_MAX / 2);
	d = known(o, DATA_UNKNOWN, 2, 0);
	says(d, "its lines do not say how many samples an iteration takes");
}

static void an_attempt_begins_afresh(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	lines(o, 1, 5, 1, 0);
	saver_crash(o);
	saver_resumed(o, 2, -1);
	lines(o, 1, 5, 1, 0);
	assert_null(saver_job(o)->progress.data_order);
	assert_int_equal(world_events(&o->w, "data.order"), 0);
}

/* What a node is sent: values that agents of before do not know stand apart. */
static void a_launch_has_them_apart(void **state)
{
	struct saver *o = *state;
	const struct launch *l = NULL;
	const struct toy *t = &o->w.toys[0];
	struct submit spec;
	struct line_rule *rule;
	struct kv *pair;

	world_recipe(&spec, 1);
	rule = MO_ADD(&spec.engine, rules, &line_rule_desc);
	rule->kind = LINE_SAMPLE;
	rule->begin = mo_strdup("(?<iteration>\\d+)");
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[][2] = { { "consumed samples", "consumed_samples" },
							{ "lm loss", "loss" },
							{ "global batch size", "batch_samples" } };

		pair = MO_ADD(rule, fields, &kv_desc);
		pair->key = mo_strdup(names[i][0]);
		pair->value = mo_strdup(names[i][1]);
	}
	world_done(&o->w);
	world_init(&o->w, 1, 2);
	o->id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
	saver_run(o, 1);
	for (size_t i = 0; i < t->n_log; i++)
		l = t->log[i].launch ? t->log[i].launch : l;
	assert_true(l && l->n_rules == 1);
	assert_int_equal(l->rules[0].n_fields, 1);
	assert_string_equal(l->rules[0].fields[0].value, "loss");
	assert_int_equal(l->rules[0].n_data_fields, 2);
}

#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(it_goes_on),
		T(batches_are_reckoned),
		T(it_begins_anew),
		T(it_skips_what_nobody_asked_for),
		T(it_says_nothing),
		T(nobody_said_before),
		T(lines_are_sparse),
		T(sparse_lines_repeat),
		T(the_batch_changes),
		T(both_ramp_up),
		T(a_window_is_left_out),
		T(figures_do_not_fit),
		T(an_attempt_begins_afresh),
		T(a_launch_has_them_apart),
	};

	return cmocka_run_group_tests_name("dcore/data_order", tests, NULL, NULL);
}
