/* A rank that is found by what it does: what agents tell becomes a verdict, what follows from it,
 * and what does not. */
#include "tests/unit/dcore/world.h"

#define STEP 200.0
#define MINUTE (60 * S)
#define RANKS 4

static struct world w;
static int64_t id;
static int64_t iteration;
static int64_t minute;
static double own_ms; /* of rank 3, where it and rank 0 tell; 0: nobody does */

static void begin(const char *straggler)
{
	struct submit spec;

	iteration = minute = 0;
	own_ms = 0;
	world_init(&w, 3, 2);
	world_recipe(&spec, RANKS);
	spec.recipe.steps = 100000;
	spec.recipe.hang = mo_strdup("off");
	spec.recipe.straggler = mo_strdup(straggler);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.stop_grace_us = 10 * S;
	spec.engine.layout.announced_is_complete = true;
	mo_strs_add(&spec.engine.resume, &spec.engine.n_resume, "--load={iteration}");
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, 5 * S);
}

/* One of ranks tells of an iteration, as often as it comes: 5 in a minute stand for all. */
static void iterate(double ms)
{
	for (int i = 0; i < 5; i++) {
		struct toy_step *s = world_toy_step(&w, 0, id);

		world_iteration(&w, 0, id, ++iteration);
		s->notes[s->n_notes - 1].sample->step_ms = ms;
		w.toys[0].progress[0] = (struct rank_progress){ .rank = s->first_rank,
								.iteration = iteration,
								.step_ms = MO_NONE_F,
								.busy_ms = MO_NONE_F,
								.phase = PHASE_TRAIN };
		w.toys[0].n_progress = 1;
		if (own_ms > 0) {
			w.toys[1].progress[0] = w.toys[0].progress[0];
			w.toys[1].progress[0].rank = 3;
			w.toys[1].progress[0].step_ms = own_ms;
			w.toys[0].progress[0].step_ms = STEP;
			w.toys[1].n_progress = 1;
		}
		world_run(&w, MINUTE / 5);
	}
}

static struct rank_activity *of(int64_t rank)
{
	return &w.toys[rank / 2].activity[rank % 2];
}

/* Minutes of which each rank tells: slow waits for a processor (delay), its GPU is idle so long. */
static void train(int64_t minutes, double ms, int64_t slow, double delay, double idle)
{
	for (int64_t i = 0; i < minutes; i++) {
		minute++;
		for (int64_t k = 0; k < RANKS; k++)
			*of(k) = (struct rank_activity){ .rank = k,
							 .window = minute,
							 .cpu_pct = 100,
							 .delay_pct = k == slow ? delay : 0.1,
							 .busy_pct = k == slow ? 99 - idle : 99,
							 .mem_pct = 60 + (double)k / 10,
							 .power_w = 680 };
		w.toys[0].n_activity = w.toys[1].n_activity = 2;
		iterate(ms);
	}
}

static void expect(size_t found, size_t cleared)
{
	assert_int_equal(world_events(&w, "straggler.found"), found);
	assert_int_equal(world_events(&w, "straggler.cleared"), cleared);
}

static void save(void)
{
	struct note *n = world_note(&w, 0, id, NOTE_CHECKPOINT);

	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
	world_found(&w, iteration, true);
	world_run(&w, 10 * S);
}

static const struct job *job(void)
{
	return world_job(&w, id);
}

static void two_sources_name_a_rank(void **state)
{
	begin("report");
	train(10, STEP, -1, 0, 0);
	expect(0, 0);
	train(3, STEP, 3, 60, 30);
	expect(0, 0); /* not yet for long enough */
	train(4, STEP, 3, 60, 30);
	expect(1, 0);
	assert_int_equal(job()->straggler.rank, 3);
	assert_int_equal(job()->straggler.sign, SIGN_PROCESSOR);
	assert_false(job()->straggler.alone);
	assert_int_equal(job()->straggler.n_found, 1);
	assert_true(job()->straggler.lost_pct > 29 && job()->straggler.lost_pct < 31);
	world_why_has(&w, id, "by the activity of its processes, rank 3 on n1");
	world_why_has(&w, id, "its GPU is busy 69 % of the time (its peers: a median of 99)");
	world_crash(&w);
	assert_int_equal(job()->straggler.rank, 3);
	world_run(&w, S);
	train(9, STEP, -1, 0, 0);
	expect(1, 1);
	world_done(&w);
}

/* One source and the job's pace: it is said, and nothing follows, for the node neither. */
static void one_source_moves_nobody(void **state)
{
	begin("drain");
	train(12, STEP, -1, 0, 0);
	train(10, 1.5 * STEP, 3, 0, 30);
	expect(1, 0);
	assert_int_equal(job()->straggler.sign, SIGN_IDLE);
	assert_true(job()->straggler.alone);
	assert_int_equal(job()->straggler.n_found, 0);
	world_why_has(&w, id, "by the activity of its GPU, rank 3 on n1");
	world_why_has(&w, id, "before the job became slower 99 % of the time");
	world_why_has(&w, id, "nothing follows by itself");
	save();
	assert_int_equal(job()->attempt, 1);
	assert_int_equal(world_cordoned(&w), 0);
	train(8, STEP, 3, 0, 30);
	expect(1, 1); /* the job is as fast as it was: nobody is waited for */
	world_done(&w);
}

/* Its own past is one source, and is told sooner: two that agree take its place. */
static void two_sources_count_more_than_its_past(void **state)
{
	begin("drain");
	own_ms = STEP;
	train(12, STEP, -1, 0, 0);
	own_ms = 1.5 * STEP;
	train(5, 1.5 * STEP, -1, 0, 0);
	expect(1, 0);
	assert_int_equal(job()->straggler.sign, SIGN_OWN);
	assert_int_equal(job()->straggler.rank, 3);
	save();
	assert_int_equal(job()->attempt, 1);
	train(8, 1.5 * STEP, 3, 0, 30); /* one more alone says nothing new */
	expect(1, 0);
	train(12, 1.5 * STEP, 3, 60, 30);
	expect(2, 0);
	assert_int_equal(job()->straggler.sign, SIGN_PROCESSOR);
	assert_false(job()->straggler.alone);
	save();
	assert_int_equal(job()->attempt, 2);
	world_done(&w);
}

/* As it was seen on GPUs that two ranks share each: all are busy alike, whoever is late. */
static void one_that_nothing_confirms_is_a_hint(void **state)
{
	begin("drain");
	train(12, STEP, -1, 0, 0);
	assert_false(world_why_says(&w, id, "stands out"));
	train(10, 2 * STEP, 3, 60, 0);
	expect(0, 0);
	world_why_has(&w, id, "the job is slower than it was; no rank stands out");
	world_why_has(&w, id, "rank 3 on n1");
	world_why_has(&w, id,
		      "stands out by one reading, which is not enough: its processes wait for a "
		      "processor 60 % of the time (its peers: a median of 0)");
	assert_false(world_why_says(&w, id, "theirs are alike")); /* of the one that tells */
	save();
	assert_int_equal(job()->attempt, 1);
	world_done(&w);
}

static void two_sources_do_where_that_is_asked(void **state)
{
	begin("drain");
	train(12, STEP, -1, 0, 0);
	train(12, 1.5 * STEP, 3, 60, 30);
	expect(1, 0);
	save();
	assert_int_equal(job()->attempt, 2);
	assert_int_equal(world_events(&w, "straggler.left"), 1);
	world_done(&w);
}

/* It saves, or one rank evaluates: nobody iterates, and who works is no straggler. */
static void what_is_no_training_does_not_count(void **state)
{
	begin("report");
	train(10, STEP, -1, 0, 0);
	for (int i = 0; i < 10; i++) {
		minute++;
		for (int64_t k = 0; k < RANKS; k++) {
			of(k)->window = minute;
			of(k)->delay_pct = k == 3 ? 60 : 0;
			of(k)->busy_pct = k == 3 ? 60 : 99;
		}
		world_run(&w, MINUTE);
	}
	expect(0, 0);
	world_done(&w);
}

/* Agents of before, and ranks that are none of the step. */
static void nothing_is_made_of_nothing(void **state)
{
	begin("report");
	for (int i = 0; i < 20; i++)
		iterate(STEP);
	w.toys[0].n_activity = 1;
	for (int i = 0; i < 20; i++) {
		static const int64_t none[] = { -1, 2, 99, MO_NONE };

		*of(0) = (struct rank_activity){ .rank = none[i % 4], .window = i + 1 };
		iterate(1.5 * STEP);
	}
	expect(0, 0);
	world_why_has(&w, id, "of 0 it is known what they do with processors, of 0 what with GPUs");
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sources_name_a_rank),
		cmocka_unit_test(one_source_moves_nobody),
		cmocka_unit_test(two_sources_count_more_than_its_past),
		cmocka_unit_test(one_that_nothing_confirms_is_a_hint),
		cmocka_unit_test(two_sources_do_where_that_is_asked),
		cmocka_unit_test(what_is_no_training_does_not_count),
		cmocka_unit_test(nothing_is_made_of_nothing),
	};

	return cmocka_run_group_tests_name("dcore/straggler_activity", tests, NULL, NULL);
}
