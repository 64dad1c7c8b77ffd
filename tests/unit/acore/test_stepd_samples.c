/* What the supervisor of a step tells of its ranks' lines and saves. */
#include "tests/unit/acore/stepd_bed.h"

static void test_two_pieces_one_sample(void **state)
{
	struct bed *b = *state;

	run(b);
	sample(b, 0, 5, 2.5, MO_NONE_F);
	assert_string_equal(said(b), "");
	sample(b, 0, 5, 9.0, 0.25);
	b->now = stepd_core_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	assert_int_equal(b->out.n_effects, 1);
	assert_true(b->out.effects[0].note.sample->loss == 2.5);
	assert_true(b->out.effects[0].note.sample->grad_norm == 0.25);
	assert_string_equal(said(b), "note:sample@0=5");
	sample(b, 0, 5, 2.5, MO_NONE_F); /* a late third piece */
	b->now += 1000000;
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "");
	assert_true(stepd_core_deadline(b->core) == INT64_MAX);
	sample(b, 0, 6, 2.4, MO_NONE_F);
	sample(b, 0, 7, 2.3, MO_NONE_F);
	assert_string_equal(said(b), "note:sample@0=6");
	fact(b, SE_CHECKPOINT, 0, 7, "/c/7");
	assert_string_equal(said(b), "note:sample@0=7 note:checkpoint@0=7");
}

/* 20,000 at once are all reported; of a flood behind them one for each ms, and always the last
 * one. */
static void test_flood_of_samples(void **state)
{
	struct bed *b = *state;
	size_t reported = 0;
	int64_t left_out = 0;

	run(b);
	for (int64_t i = 1; i <= 120001; i++) {
		b->now += i > 20001 ? 100 : 0;
		sample(b, 0, i, 2.5, MO_NONE_F);
		reported += b->out.n_effects;
		for (size_t k = 0; k < b->out.n_effects; k++)
			left_out += MO_MAX(b->out.effects[k].note.left_out, 0);
		stepd_out_done(&b->out);
		if (i == 20001)
			assert_int_equal(reported, 20000);
	}
	if (reported < 29990 || reported > 30010)
		fail_msg("%zu samples reported", reported);
	assert_int_equal(stepd_core_left_out(b->core), 120000 - (int64_t)reported);
	b->now = stepd_core_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	left_out += MO_MAX(b->out.effects[0].note.left_out, 0);
	/* the notes say all of them, each once */
	assert_int_equal(left_out, stepd_core_left_out(b->core));
	assert_string_equal(said(b), "note:sample@0=120001");
	b->now += 10000000; /* quiet again: all are reported */
	for (int64_t i = 0; i < 4000; i++) {
		sample(b, 0, 200000 + i, 2.5, MO_NONE_F);
		assert_int_equal(b->out.n_effects, i > 0);
		stepd_out_done(&b->out);
	}
}

static size_t notes(struct bed *b)
{
	size_t n = b->out.n_effects;

	stepd_out_done(&b->out);
	return n;
}

/* One thing and then the other, as fast as it can: 5,000 are reported, then 100 a second, of long
 * texts fewer; and what is said once it is quiet again. */
static void test_flood_of_words(void **state)
{
	_cleanup_(mo_freep) char *path = mo_printf("/%01000d", 1);
	struct bed *b = *state;
	size_t reported = 0;

	run(b);
	for (int64_t i = 0; i < 10000; i++) {
		phase(b, 0, i % 2 ? PHASE_TRAIN : PHASE_SAVE);
		fact(b, SE_CHECKPOINT, 0, i % 2, "/c");
		fact(b, SE_SAVING, 0, i % 2, "/c");
		fact(b, SE_RESUMED, 0, i % 2, NULL);
		reported += notes(b);
	}
	assert_int_equal(reported, 5000);
	assert_in_range(stepd_core_words_left(b->core), 15000, 35000);
	b->now += 1000000;
	for (int64_t i = reported = 0; i < 1000; i++) {
		fact(b, SE_CHECKPOINT, 0, i % 2, path);
		reported += notes(b);
	}
	assert_int_equal(reported, 50);
	b->now += 1000000;
	phase(b, 0, PHASE_TRAIN);
	phase(b, 0, PHASE_SAVE);
	assert_in_range(notes(b), 1, 2);
	phase(b, 0, PHASE_SAVE);
	assert_int_equal(notes(b), 0);
}

static void test_sample_before_exit(void **state)
{
	struct bed *b = *state;

	run(b);
	sample(b, 0, 1, 1.0, 1.0);
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "note:sample@0=1 note:exit@0=1/exited");
}

static void test_metrics_rank(void **state)
{
	struct bed *b = *state;
	struct rank_progress p;

	run(b);
	sample(b, 1, 3, 2.0, MO_NONE_F); /* not the first rank: progress only */
	b->now += 1000000;
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "");
	stepd_core_progress(b->core, 1, &p);
	assert_int_equal(p.rank, 1);
	assert_int_equal(p.iteration, 3);
	stepd_core_progress(b->core, 0, &p);
	assert_true(p.iteration == MO_NONE);
}

static void test_metrics_last(void **state)
{
	struct bed *b = *state;

	run(b);
	sample(b, 2, 3, 2.0, MO_NONE_F);
	sample(b, 3, 3, 2.0, MO_NONE_F);
	sample(b, 3, 4, 2.0, MO_NONE_F);
	assert_string_equal(said(b), "note:sample@3=3");
	sample(b, 9, 9, 2.0, MO_NONE_F); /* not of this node */
	assert_string_equal(said(b), "");
}

static void test_metrics_any(void **state)
{
	struct bed *b = *state;

	run(b);
	sample(b, 1, 3, 1.0, MO_NONE_F);
	sample(b, 0, 3, 2.0, 7.0); /* another rank's view of the same iteration */
	sample(b, 0, 4, 2.0, MO_NONE_F);
	assert_int_equal(b->out.n_effects, 1);
	assert_true(b->out.effects[0].note.sample->loss == 1.0);
	assert_true(b->out.effects[0].note.sample->grad_norm == MO_NONE_F);
	assert_string_equal(said(b), "note:sample@1=3");
	sample(b, 1, 3, 2.0, MO_NONE_F);
	sample(b, 1, 5, 2.0, MO_NONE_F);
	assert_string_equal(said(b), "note:sample@0=4");
}

static void test_sample_without_iteration(void **state)
{
	struct bed *b = *state;

	run(b);
	sample(b, 0, MO_NONE, 1.0, MO_NONE_F); /* of nothing known */
	assert_true(stepd_core_deadline(b->core) == INT64_MAX);
	sample(b, 0, 4, MO_NONE_F, 3.0);
	sample(b, 0, MO_NONE, 1.5, MO_NONE_F); /* of iteration 4 */
	b->now = stepd_core_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	assert_true(b->out.effects[0].note.sample->loss == 1.5);
	assert_string_equal(said(b), "note:sample@0=4");
}

static void test_phases_and_saves(void **state)
{
	struct bed *b = *state;

	run(b);
	phase(b, 1, PHASE_INIT);
	phase(b, 0, PHASE_INIT);
	phase(b, 1, PHASE_TRAIN); /* the step follows its lowest rank that says anything */
	assert_string_equal(said(b), "note:phase@1");
	simple(b, SE_READY, 0);
	assert_string_equal(said(b), "note:phase@0");
	fact(b, SE_BINDING, 1, MO_NONE, NULL);
	assert_string_equal(said(b), "note:binding@1");
	fact(b, SE_SAVING, 0, 20, NULL);
	fact(b, SE_SAVING, 1, 20, NULL);
	fact(b, SE_CHECKPOINT, 0, 20, "/c/iter_20");
	fact(b, SE_CHECKPOINT, 1, 20, NULL);
	fact(b, SE_SAVING, 0, 40, NULL);
	assert_string_equal(said(b), "note:saving@0=20 note:checkpoint@0=20 note:saving@0=40");
	fact(b, SE_RESUMED, 0, 60, NULL);
	fact(b, SE_RESUMED, 1, 60, NULL);
	assert_string_equal(said(b), "note:resumed@0=60");
	struct rank_progress p;
	stepd_core_progress(b->core, 1, &p);
	assert_int_equal(p.iteration, 60);
	assert_int_equal(p.phase, PHASE_TRAIN);
}

/* Where all saves go is reported once, before the first: no save begins there, and those that name
 * no place have it. */
static void test_where_saves_go(void **state)
{
	struct bed *b = *state;

	run(b);
	fact(b, SE_SAVING, 0, MO_NONE, "/c/titan-9");
	fact(b, SE_SAVING, 1, MO_NONE, "/c/titan-9");
	assert_string_equal(said(b), "");
	sample(b, 0, 57, 1.0, MO_NONE_F);
	b->now = stepd_core_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	(void)said(b);
	fact(b, SE_SAVING, 0, MO_NONE, NULL);
	assert_string_equal(b->out.effects[0].note.path, "/c/titan-9");
	assert_string_equal(said(b), "note:saving@0=57");
	fact(b, SE_CHECKPOINT, 0, 57, "/c/titan-9/step-57");
	assert_string_equal(b->out.effects[0].note.path, "/c/titan-9/step-57");
	assert_string_equal(said(b), "note:checkpoint@0=57");
	fact(b, SE_CHECKPOINT, 0, 60, NULL);
	assert_string_equal(b->out.effects[0].note.path, "/c/titan-9");
	assert_string_equal(said(b), "note:checkpoint@0=60");
	fact(b, SE_SAVING, 0, MO_NONE, "/c/titan-9/step-61"); /* a script that names each */
	assert_string_equal(said(b), "note:saving@0=61");
	fact(b, SE_CHECKPOINT, 0, 61, NULL);
	assert_null(b->out.effects[0].note.path);
	assert_string_equal(said(b), "note:checkpoint@0=61");
}

/* One note for each of two places of a save, whichever rank prints it again. */
static void test_a_save_beside(void **state)
{
	struct bed *b = *state;

	run(b);
	fact(b, SE_SAVING, 0, 20, "/a/global_step20");
	assert_string_equal(said(b), "note:saving@0=20");
	fact(b, SE_SAVING, 1, 20, "/a/global_step20");
	fact(b, SE_SAVING, 1, 20, NULL);
	assert_string_equal(said(b), "");
	fact(b, SE_SAVING, 0, 20, "/b/global_step20");
	assert_string_equal(b->out.effects[0].note.path, "/b/global_step20");
	assert_string_equal(said(b), "note:saving@0=20");
	fact(b, SE_SAVING, 1, 20, "/a/global_step20");
	fact(b, SE_SAVING, 1, 20, "/b/global_step20");
	assert_string_equal(said(b), "");
}

/* A script's own line may name a place relative to a directory that only it knows. */
static void test_a_relative_place_is_none(void **state)
{
	struct bed *b = *state;

	run(b);
	fact(b, SE_SAVING, 0, MO_NONE, "out/step-20");
	fact(b, SE_CHECKPOINT, 0, 20, NULL);
	assert_null(b->out.effects[0].note.path);
	assert_string_equal(said(b), "note:checkpoint@0=20");
}

static void test_progress_never_goes_back(void **state)
{
	struct bed *b = *state;
	struct rank_progress p;

	run(b);
	sample(b, 0, 5, 1.0, MO_NONE_F);
	sample(b, 0, 4, 1.0, MO_NONE_F);
	stepd_core_progress(b->core, 0, &p);
	assert_int_equal(p.iteration, 5);
	simple(b, SE_KILL, MO_NONE);
	exited(b, 0, MO_NONE, SIGKILL);
	assert_string_equal(said(b), "kill note:sample@0=5 note:exit@0=5/killed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEP_TEST(test_two_pieces_one_sample),
		STEP_TEST(test_sample_before_exit),
		STEP_TEST(test_flood_of_samples),
		STEP_TEST(test_flood_of_words),
		STEP_TEST(test_metrics_rank),
		cmocka_unit_test_setup_teardown(test_metrics_last, setup_last, teardown),
		cmocka_unit_test_setup_teardown(test_metrics_any, setup_any, teardown),
		STEP_TEST(test_sample_without_iteration),
		STEP_TEST(test_phases_and_saves),
		STEP_TEST(test_where_saves_go),
		STEP_TEST(test_a_save_beside),
		STEP_TEST(test_a_relative_place_is_none),
		STEP_TEST(test_progress_never_goes_back),
	};

	return cmocka_run_group_tests_name("acore/step_samples", tests, NULL, NULL);
}
