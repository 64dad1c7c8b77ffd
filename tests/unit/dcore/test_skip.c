/* Data that are left out when the loss goes bad: which, how often, and by which words of the
 * command. */
#include "tests/unit/dcore/saver.h"

#include <math.h>
#include <string.h>

static void losses(struct saver *o, int64_t from, int64_t to, double value)
{
	for (int64_t i = from; i < to; i++) {
		struct note *n = world_note(&o->w, 0, o->id, NOTE_SAMPLE);

		n->sample = mo_desc_new(&sample_desc);
		n->sample->iteration = i;
		n->sample->loss = isfinite(value) ? value + 0.01 * (double)(i % 5) : value;
	}
	saver_run(o, 1);
}

/* Its loss is good up to there, with a checkpoint at `saved`. */
static void trained(struct saver *o, int64_t from, int64_t saved, int64_t to)
{
	losses(o, from, saved + 1, 2.0);
	saver_save(o, saved);
	losses(o, saved + 1, to + 1, 2.0);
}

/* The words of the newest launch behind the checkpoint's. */
static char *left_out(const struct saver *o)
{
	const struct toy *t = &o->w.toys[0];
	const struct launch *l = NULL;
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < t->n_log; i++)
		l = t->log[i].launch ? t->log[i].launch : l;
	assert_non_null(l);
	for (size_t i = 2; l && i < l->n_argv; i++)
		mo_buf_printf(&b, " %s", l->argv[i]);
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

static void command_has(const struct saver *o, const char *words)
{
	_cleanup_(mo_freep) char *all = left_out(o);

	assert_string_equal(all, words);
}

static void skips(const struct saver *o, size_t i, int64_t first, int64_t last)
{
	assert_true(i < saver_job(o)->n_skips);
	assert_int_equal(saver_job(o)->skips[i].first, first);
	assert_int_equal(saver_job(o)->skips[i].last, last);
}

/* From the checkpoint through the last bad one, in every attempt from then on. */
static void a_window_is_left_out(void **state)
{
	struct saver *o = *state;

	saver_skips(o, 2, "{iterations}");
	saver_run(o, 2);
	trained(o, 1, 20, 24);
	losses(o, 25, 30, NAN);
	saver_run(o, 4);
	saver_resumed(o, 2, 20);
	assert_int_equal(saver_job(o)->n_skips, 1);
	skips(o, 0, 20, 29);
	command_has(o, " --skip 20 21 22 23 24 25 26 27 28 29");
	assert_int_equal(world_events(&o->w, "loss.skip"), 1);
	world_why_has(&o->w, o->id, "iterations 20 to 29, after attempt 1");
	/* another kind of failure takes nothing more, and forgets nothing */
	losses(o, 30, 40, 2.0);
	saver_crash(o);
	saver_resumed(o, 3, 20);
	assert_int_equal(saver_job(o)->n_skips, 1);
	command_has(o, " --skip 20 21 22 23 24 25 26 27 28 29");
}

/* It is told as it is stored: each window counts, then the job stops. */
static void so_many_and_then_it_stops(void **state)
{
	struct saver *o = *state;
	struct job_view v;

	saver_skips(o, 2, "[{iterations}]");
	saver_run(o, 2);
	trained(o, 1, 20, 24);
	losses(o, 25, 30, NAN);
	saver_run(o, 4);
	trained(o, 30, 50, 51);
	losses(o, 52, 57, NAN);
	saver_run(o, 4);
	saver_resumed(o, 3, 50);
	skips(o, 1, 50, 56);
	command_has(o, " --skip [20,21,22,23,24,25,26,27,28,29,50,51,52,53,54,55,56]");
	mo_desc_init(&job_view_desc, &v);
	job_view(core_state(o->w.core), saver_job(o), o->w.now, &v);
	assert_int_equal(v.n_skips, 2);
	mo_desc_done(&job_view_desc, &v);
	trained(o, 57, 70, 71);
	losses(o, 72, 77, NAN);
	saver_run(o, 4);
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_int_equal(saver_job(o)->n_skips, 2);
	assert_non_null(strstr(saver_job(o)->reason, "2 windows of data are left out already "
						     "(recovery.loss_spike.skip)"));
}

/* Of a long way since the checkpoint only what is near. */
static void a_margin_before_the_first_bad_one(void **state)
{
	struct saver *o = *state;

	saver_skips(o, 1, "{iterations}");
	saver_run(o, 2);
	trained(o, 1, 20, 300);
	losses(o, 301, 306, NAN);
	saver_run(o, 4);
	saver_resumed(o, 2, 20);
	skips(o, 0, 300 + 1 - SKIP_MARGIN, 305);
}

/* An engine that ends by itself says no bad loss: the iteration that it did not finish. */
static void the_engine_ends_itself(void **state)
{
	struct saver *o = *state;
	struct toy_step *s;

	saver_skips(o, 1, "{iterations}");
	saver_run(o, 2);
	trained(o, 1, 20, 24);
	for (int64_t attempt = 2; attempt <= 3; attempt++) {
		world_exit(&o->w, 0, o->id, 0, 1, 0);
		s = world_toy_step(&o->w, 0, o->id);
		mo_strs_add(&s->notes[s->n_notes - 1].tail, &s->notes[s->n_notes - 1].n_tail,
			    "RuntimeError: found NaN in local forward loss calculation");
		saver_run(o, 10);
		if (attempt == 3)
			break;
		saver_resumed(o, 2, 20);
		skips(o, 0, 20, 25);
		losses(o, 26, 30, 2.0);
	}
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_non_null(strstr(saver_job(o)->reason, "1 window of data is left out already"));
}

static void nobody_asked_for_it(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	trained(o, 1, 20, 24);
	losses(o, 25, 30, NAN);
	saver_run(o, 4);
	saver_resumed(o, 2, 20);
	assert_int_equal(saver_job(o)->n_skips, 0);
	command_has(o, "");
	assert_int_equal(world_events(&o->w, "loss.skip"), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_window_is_left_out),
		T(so_many_and_then_it_stops),
		T(a_margin_before_the_first_bad_one),
		T(the_engine_ends_itself),
		T(nobody_asked_for_it),
	};

	return cmocka_run_group_tests_name("dcore/skip", tests, NULL, NULL);
}
