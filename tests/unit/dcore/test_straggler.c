/* A job that becomes slow, and the rank that makes it so: who is named and by what, and everything
 * that looks like it and is not. */
#include "tests/unit/dcore/world.h"

#include <math.h>
#include <string.h>

#include "daemon/core/state/heard.h"
#include "daemon/core/state/lemon.h"
#include "daemon/core/state/pace.h"
#include "daemon/core/update/samples.h"

#define RANKS 4
#define STEP 200.0

static struct world w;
static int64_t id;
static uint64_t chance_state;

static void gpu(size_t toy, size_t slot, double clock)
{
	w.toys[toy].sensors[slot].clock_mhz = clock;
}

static void begin_as(size_t nodes, int64_t ranks, int64_t pp)
{
	struct submit spec;

	chance_state = 1;
	world_init(&w, nodes, ranks / (int64_t)nodes);
	world_recipe(&spec, ranks);
	spec.recipe.steps = 100000;
	spec.recipe.hang = mo_strdup("off");
	spec.recipe.parallelism.tp = spec.recipe.parallelism.cp = spec.recipe.parallelism.ep = 1;
	spec.recipe.parallelism.pp = pp;
	spec.recipe.parallelism.dp = ranks / pp;
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	for (size_t i = 0; i < nodes; i++) {
		struct toy_step *s = world_toy_step(&w, i, id);

		w.toys[i].n_progress = (size_t)s->n_ranks;
		for (size_t k = 0; k < w.toys[i].n_progress; k++) {
			w.toys[i].progress[k] =
				(struct rank_progress){ .rank = s->first_rank + (int64_t)k,
							.iteration = MO_NONE,
							.step_ms = MO_NONE_F,
							.busy_ms = MO_NONE_F,
							.phase = PHASE_TRAIN };
			mo_desc_init(&gpu_sensors_desc,
				     MO_GROW(w.toys[i].sensors, w.toys[i].n_sensors));
			w.toys[i].sensors[k].slot = (int64_t)k;
			gpu(i, k, 2100);
		}
	}
}

static void begin(void)
{
	begin_as(2, RANKS, 1);
}

static void end(void)
{
	for (size_t i = 0; i < w.n_toys; i++)
		free(w.toys[i].sensors);
	world_done(&w);
}

static struct rank_progress *rank(int64_t k)
{
	size_t per = w.toys[0].n_progress;

	return &w.toys[(size_t)k / per].progress[(size_t)k % per];
}

/* One iteration a second, that takes the job so long and each rank what own says. */
static void iterate(int64_t i, double job_ms, const double *own)
{
	world_iteration(&w, 0, id, i);
	struct toy_step *s = world_toy_step(&w, 0, id);
	s->notes[s->n_notes - 1].sample->step_ms = job_ms;
	for (size_t t = 0, at = 0; t < w.n_toys; t++)
		for (size_t k = 0; k < w.toys[t].n_progress; k++, at++) {
			rank((int64_t)at)->iteration = i;
			rank((int64_t)at)->step_ms = own ? own[at] : MO_NONE_F;
		}
	world_run(&w, S);
}

/* A rank takes its own time so many times, of those that take STEP with some noise. slow: none
 * for -1. */
static void train(int64_t from, int64_t to, int64_t slow, double times)
{
	for (int64_t i = from; i <= to; i++) {
		double own[16];

		for (int64_t k = 0; k < 16; k++)
			own[k] = STEP * (k == slow ? times : 1) + (double)((i * 7 + k * 3) % 5);
		iterate(i, STEP * (slow < 0 ? 1 : times), own);
	}
}

static double chance(void)
{
	chance_state = chance_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(chance_state >> 11) / 9007199254740992.0;
}

/* Of a law without a variance, as steps of real runs are: now and then many times as long. */
static double tailed(void)
{
	return STEP * (1 + 0.02 * pow(1 - chance(), -0.9));
}

static void expect(size_t slower, size_t usual, size_t found, size_t cleared)
{
	assert_int_equal(world_events(&w, "pace.slower"), slower);
	assert_int_equal(world_events(&w, "pace.usual"), usual);
	assert_int_equal(world_events(&w, "straggler.found"), found);
	assert_int_equal(world_events(&w, "straggler.cleared"), cleared);
}

static void event_has(const char *type, const char *text)
{
	const struct state *s = core_state(w.core);

	for (size_t i = 0; i < s->n_events; i++)
		if (mo_streq(s->events[i].type, type) &&
		    (strstr(s->events[i].message, text) ||
		     (s->events[i].data && strstr(s->events[i].data, text))))
			return;
	fail_msg("no %s has %s", type, text);
}

static void a_rank_of_half_the_speed_is_named(void **state)
{
	begin();
	train(1, 60, -1, 1);
	expect(0, 0, 0, 0);
	train(61, 68, 3, 2);
	expect(0, 0, 0, 0); /* not yet half of the window */
	train(69, 90, 3, 2);
	expect(1, 0, 1, 0);
	assert_int_equal(world_job(&w, id)->straggler.rank, 3);
	event_has("straggler.found", "rank 3 on n1");
	event_has("straggler.found", "the job loses 50 % of its time by it");
	event_has("straggler.found", "\"dp\":3");
	event_has("pace.slower", "since iteration 61, where");
	world_why_has(&w, id, "rank 3 on n1");
	world_why_has(&w, id, "the median of 4 ranks of its pipeline stage is");
	assert_int_equal(world_job(&w, id)->straggler.n_found, 1);
	assert_string_equal(world_job(&w, id)->straggler.found[0].node, "n1");
	world_crash(&w);
	assert_int_equal(world_job(&w, id)->straggler.rank, 3);
	train(91, 150, -1, 1);
	expect(1, 1, 1, 1);
	assert_int_equal(world_job(&w, id)->straggler.rank, MO_NONE);
	assert_int_equal(world_job(&w, id)->straggler.n_found, 1);
	end();
}

static double own_times(size_t rank)
{
	return rank_own_times_of(core_state(w.core), world_job(&w, id), rank);
}

/* Step times that hold the waiting are alike; what of them was none is not. */
static void what_was_no_waiting_counts_before_the_step(void **state)
{
	double step[RANKS] = { 2 * STEP, 2 * STEP, 2 * STEP, 2 * STEP };

	begin();
	for (int64_t i = 1; i <= 60; i++) {
		for (int64_t k = 0; k < RANKS; k++)
			rank(k)->busy_ms = k == 1 ? 2 * STEP : STEP;
		iterate(i, 2 * STEP, step);
	}
	expect(0, 0, 1, 0);
	assert_int_equal(world_job(&w, id)->straggler.rank, 1);
	end();
}

/* Agents of before know no more than the step, which holds the waiting: their ranks are not held
 * against those that tell what of it was none, and one whose agent is another from now on begins
 * anew. */
static void whole_steps_are_not_held_against_parts(void **state)
{
	const double step[RANKS] = { 2 * STEP, 2 * STEP, 2 * STEP, 2 * STEP };

	begin();
	for (int64_t i = 1; i <= 60; i++) {
		for (int64_t k = 0; k < RANKS; k++)
			rank(k)->busy_ms = k == 1 ? MO_NONE_F : STEP;
		iterate(i, 2 * STEP, step);
	}
	expect(0, 0, 0, 0);
	assert_true(own_times(0) == 1 && own_times(1) == 1);
	for (int64_t i = 61; i <= 120; i++) {
		rank(0)->busy_ms = i <= 90 ? MO_NONE_F : STEP;
		rank(1)->busy_ms = STEP;
		iterate(i, 2 * STEP, step);
		assert_true(own_times(0) == MO_NONE_F || own_times(0) == 1);
		assert_true(own_times(1) == MO_NONE_F || own_times(1) == 1);
	}
	expect(0, 0, 0, 0);
	assert_true(own_times(1) == 1);
	end();
}

/* Steps of nothing, of more than there is, and of no number: nothing is said of anybody. */
static void times_that_cannot_be_say_nothing(void **state)
{
	static const double evil[] = { 1e308, 1e10, INFINITY, NAN, -1 };

	for (size_t e = 0; e < ELEMENTSOF(evil); e++) {
		const double step[RANKS] = { 0, evil[e], 0, 0 };

		begin();
		for (int64_t i = 1; i <= 60; i++)
			iterate(i, STEP, step);
		expect(0, 0, 0, 0);
		end();
	}
}

/* From the first iteration on: its peers say it, not the job's past. */
static void one_that_was_always_slow_is_named_too(void **state)
{
	begin();
	train(1, 60, 2, 1.4);
	expect(0, 0, 1, 0);
	assert_int_equal(world_job(&w, id)->straggler.rank, 2);
	end();
}

static void a_job_that_is_slower_blames_nobody(void **state)
{
	double all[RANKS];

	begin();
	train(1, 60, -1, 1);
	for (int64_t i = 61; i <= 100; i++) {
		for (size_t k = 0; k < RANKS; k++)
			all[k] = 1.5 * STEP;
		iterate(i, 1.5 * STEP, all);
	}
	expect(1, 0, 0, 0);
	world_why_has(&w, id, "no rank stands out");
	world_why_has(&w, id, "of 4 ranks 4 tell what a step takes them");
	train(101, 140, -1, 1);
	expect(1, 1, 0, 0);
	end();
}

/* Of two that differ nobody knows which one is right; where half is slow neither. */
static void few_and_many_are_not_blamed(void **state)
{
	double own[RANKS] = { STEP, STEP, 2 * STEP, 2 * STEP };

	begin_as(2, 2, 1);
	train(1, 80, 1, 2);
	expect(0, 0, 0, 0);
	end();
	begin();
	for (int64_t i = 1; i <= 80; i++)
		iterate(i, 2 * STEP, own);
	expect(0, 0, 0, 0);
	end();
	/* nor where three of eight are: experts that more tokens go to */
	begin_as(2, 8, 1);
	for (int64_t i = 1; i <= 80; i++) {
		double eight[8];

		for (size_t k = 0; k < 8; k++)
			eight[k] = STEP * (k < 3 ? 1.5 : 1) + (double)k / 10;
		iterate(i, 2 * STEP, eight);
	}
	expect(0, 0, 0, 0);
	end();
}

/* The last stage has the loss, and one rank of it is slow among its own. */
static void stages_differ(void **state)
{
	double own[8];

	begin_as(2, 8, 2);
	for (int64_t i = 1; i <= 120; i++) {
		for (size_t k = 0; k < 8; k++)
			own[k] = STEP * (k < 4 ? 1 : 1.6) + (double)((i + (int64_t)k) % 3);
		if (i > 60)
			own[6] *= 1.3;
		iterate(i, 2.2 * STEP, own);
		if (i == 60)
			expect(0, 0, 0, 0);
	}
	expect(0, 0, 1, 0);
	event_has("straggler.found", "rank 6 on n1 (pp 1, dp 2)");
	end();
}

static void noise_pauses_and_beginnings_are_no_stragglers(void **state)
{
	double own[RANKS];

	begin();
	for (int64_t i = 1; i <= 600; i++) {
		double most = 0;

		for (size_t k = 0; k < RANKS; k++) {
			own[k] = tailed();
			if (i <= 6 || (i % 50 == 0 && k == 0))
				own[k] *= 40; /* compiles; rank 0 saves, or evaluates */
			most = MO_MAX(most, own[k]);
		}
		if (i == 300)
			own[2] *= 100;
		iterate(i, most, own);
	}
	expect(0, 0, 0, 0);
	end();
}

static void a_slow_clock_is_named_while_the_job_is_slow(void **state)
{
	begin();
	for (int64_t i = 1; i <= 60; i++)
		iterate(i, STEP, NULL);
	gpu(1, 0, 1200);
	for (int64_t i = 61; i <= 180; i++)
		iterate(i, STEP, NULL);
	expect(0, 0, 0, 0); /* a clock alone makes nobody slow */
	for (int64_t i = 181; i <= 230; i++)
		iterate(i, 1.5 * STEP, NULL);
	expect(1, 0, 0, 0); /* nor one moment of it */
	for (int64_t i = 231; i <= 270; i++)
		iterate(i, 1.5 * STEP, NULL);
	expect(1, 0, 1, 0);
	event_has("straggler.found", "the GPU of rank 2 on n1 (dp 2) runs at 1200 MHz");
	world_why_has(&w, id, "its GPU 0: 1200 MHz");
	for (int64_t i = 271; i <= 310; i++)
		iterate(i, STEP, NULL);
	expect(1, 1, 1, 1);
	end();
}

static void slow_clocks_of_half_are_nobodys(void **state)
{
	begin();
	for (int64_t i = 1; i <= 60; i++)
		iterate(i, STEP, NULL);
	gpu(1, 0, 1200);
	gpu(1, 1, 1200);
	for (int64_t i = 61; i <= 220; i++)
		iterate(i, 1.5 * STEP, NULL);
	expect(1, 0, 0, 0);
	world_why_has(&w, id, "of 4 ranks 0 tell what a step takes them");
	end();
}

/* What was found does not go with the attempt, what holds now does. */
static void the_next_attempt_begins_anew(void **state)
{
	begin();
	train(1, 60, -1, 1);
	train(61, 90, 3, 2);
	expect(1, 0, 1, 0);
	for (size_t i = 0; i < w.n_toys; i++)
		w.toys[i].n_progress = 0;
	world_exit(&w, 0, id, 0, 1, MO_NONE);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->straggler.rank, MO_NONE);
	assert_int_equal(world_job(&w, id)->straggler.n_found, 1);
	assert_false(pace_slow(world_job(&w, id)));
	expect(1, 0, 1, 0);
	end();
}

/* Of two nodes that are as good the next job gets the other one. */
static void its_node_is_taken_last(void **state)
{
	struct node_failure *failures = NULL;
	size_t n = 0;

	begin();
	train(1, 60, -1, 1);
	train(61, 90, 0, 2);
	train(91, 140, -1, 1);
	train(141, 170, 0, 2);
	expect(2, 1, 2, 1);
	/* of one attempt it counts once */
	assert_true(lemon_of(core_state(w.core), world_node(&w, 0), w.now, &failures, &n) < 1.01);
	assert_int_equal(n, 2);
	mo_vec_clear(&node_failure_desc, (void **)&failures, &n);
	assert_true(lemon_of(core_state(w.core), world_node(&w, 1), w.now, &failures, &n) == 0);
	for (size_t i = 0; i < w.n_toys; i++)
		w.toys[i].n_progress = 0;
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, 5 * S);
	id = world_submit_gpus(&w, 2);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->run.n_places, 1);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n1");
	end();
}

/* ---- a rank's own history ---- */

/* Two of a stage, of which one becomes slower than it was: that is said, and nothing follows. */
static void one_of_two_is_held_against_its_past(void **state)
{
	begin_as(2, RANKS, 2);
	train(1, 60, -1, 1);
	train(61, 68, 3, 1.5);
	expect(0, 0, 0, 0);
	train(69, 100, 3, 1.5);
	expect(1, 0, 1, 0);
	assert_int_equal(world_job(&w, id)->straggler.rank, 3);
	assert_int_equal(world_job(&w, id)->straggler.sign, SIGN_OWN);
	assert_true(world_job(&w, id)->straggler.alone);
	assert_int_equal(world_job(&w, id)->straggler.n_found, 0);
	event_has("straggler.found", "rank 3 on n1 (pp 1, dp 1) takes 302 ms of its own for a");
	event_has("straggler.found", "step, where it took 202 ms before");
	event_has("straggler.found", "\"sign\":\"own\"");
	world_why_has(&w, id,
		      "too few ranks of its pipeline stage tell what a step takes them (2)");
	world_why_has(&w, id, "of all 4 that tell, 1 became slower than before");
	world_why_has(&w, id, "against its own past: 1.5 times the 202 ms");
	world_why_has(&w, id, "that is one source of it: nothing follows by itself");
	world_crash(&w);
	train(101, 150, -1, 1);
	expect(1, 1, 1, 1);
	end();
}

static void of_two_ranks_one_that_changed_is_known(void **state)
{
	begin_as(2, 2, 1);
	train(1, 60, -1, 1);
	train(61, 100, 0, 1.3);
	expect(1, 0, 1, 0);
	assert_int_equal(world_job(&w, id)->straggler.rank, 0);
	/* its own time is as before, while the job's is not: it is over */
	for (int64_t i = 101; i <= 140; i++)
		iterate(i, 1.3 * STEP, (double[]){ STEP, STEP });
	expect(1, 0, 1, 1);
	end();
}

/* More for all (a longer batch), for half of them, or for the one that tells: it is the job. And
 * what nobody waits for makes no job slow. */
static void what_others_do_too_is_the_jobs(void **state)
{
	static const double slow[][RANKS] = {
		{ 1.5, 1.5, 1.5, 1.5 }, { 1.5, 1, 1, 1.5 }, { 1, 1, 1.15, 1.5 },
		{ 1, 1, 1, 1.15 },      { 0, 0, 1.5, 0 },
	};

	for (size_t c = 0; c < ELEMENTSOF(slow); c++) {
		begin_as(2, RANKS, 2);
		for (int64_t i = 1; i <= 110; i++) {
			double own[RANKS];

			for (size_t k = 0; k < RANKS; k++)
				own[k] = slow[c][k] == 0 ? MO_NONE_F
							 : STEP * (i > 60 ? slow[c][k] : 1);
			iterate(i, STEP * (i > 60 ? 1.5 : 1), own);
		}
		expect(1, 0, 0, 0);
		end();
	}
	begin_as(2, RANKS, 2);
	for (int64_t i = 1; i <= 110; i++)
		iterate(i, 2 * STEP, (double[]){ STEP, STEP, STEP, STEP * (i > 60 ? 1.5 : 1) });
	expect(0, 0, 0, 0);
	end();
}

/* Peers name it; its past is evidence beside them, where it was another. */
static void the_past_of_one_that_peers_name(void **state)
{
	begin();
	train(1, 60, -1, 1);
	train(61, 90, 3, 2);
	expect(1, 0, 1, 0);
	assert_int_equal(world_job(&w, id)->straggler.sign, SIGN_STEP);
	event_has("straggler.found", "\"own_times\":");
	world_why_has(&w, id, "against its own past: ");
	assert_true(rank_own_times_of(core_state(w.core), world_job(&w, id), 3) > 1.9);
	assert_true(rank_own_times_of(core_state(w.core), world_job(&w, id), 2) < 1.05);
	end();
}

/* Small jobs as they are: long tails, a beginning that compiles, rank 0 that saves and evaluates,
 * batches that grow, a job that becomes slower as a whole, one rank that becomes warmer. */
static void small_jobs_that_are_well_name_nobody(void **state)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		int64_t ranks = seed % 3 ? 4 : 2;

		begin_as(2, ranks, ranks / 2);
		chance_state = seed;
		for (int64_t i = 1; i <= 300; i++) {
			double own[RANKS], most = 0,
					   more = (i > 100 ? 1 + 0.1 * (double)(i / 100) : 1) *
						  (seed % 2 && i > 200 ? 1.4 : 1);

			for (int64_t k = 0; k < ranks; k++) {
				own[k] = tailed() * more;
				if (k == 1)
					own[k] *= 1 + 0.08 * (double)i / 300;
				if (i <= 6 || (i % 50 == 0 && k == 0))
					own[k] *= 40;
				most = MO_MAX(most, own[k]);
			}
			iterate(i, most, own);
		}
		assert_int_equal(world_events(&w, "straggler.found"), 0);
		end();
	}
}

/* ---- the job's own history alone ---- */

static void times(struct job *j, int64_t from, int64_t to, double ms, int phase)
{
	for (int64_t i = from; i <= to; i++) {
		struct sample s;

		mo_desc_init(&sample_desc, &s);
		s.iteration = i;
		s.step_ms = ms + (double)(i % 3);
		s.phase = phase;
		samples_add(j, &s, j->attempt, i * S);
	}
}

static void history_is_of_as_many_gpus(void **state)
{
	struct job *j = mo_desc_new(&job_desc);

	j->attempt = 1;
	j->spec.recipe.gpus = 8;
	times(j, 1, 8, 9000, PHASE_TRAIN); /* compiles */
	times(j, 9, 60, 100, PHASE_TRAIN);
	assert_true(j->progress.pace->best_ms < 103 && !pace_slow(j));
	times(j, 61, 61, 5000, PHASE_TRAIN);
	times(j, 62, 100, 400, PHASE_EVAL);
	assert_false(pace_slow(j));
	/* the next attempt is held against it */
	j->attempt = 2;
	times(j, 61, 120, 140, PHASE_NONE);
	assert_true(pace_slow(j));
	assert_int_equal(j->progress.pace->episodes, 1);
	/* of half the GPUs it is another job */
	j->attempt = 3;
	j->spec.recipe.gpus = 4;
	times(j, 121, 200, 200, PHASE_TRAIN);
	assert_false(pace_slow(j));
	assert_true(j->progress.pace->best_ms > 190);
	/* iterations that are repeated, or come late, are not timed again */
	times(j, 150, 200, 900, PHASE_TRAIN);
	assert_false(pace_slow(j));
	mo_desc_free(&job_desc, j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_of_half_the_speed_is_named),
		cmocka_unit_test(what_was_no_waiting_counts_before_the_step),
		cmocka_unit_test(whole_steps_are_not_held_against_parts),
		cmocka_unit_test(one_that_was_always_slow_is_named_too),
		cmocka_unit_test(a_job_that_is_slower_blames_nobody),
		cmocka_unit_test(few_and_many_are_not_blamed),
		cmocka_unit_test(stages_differ),
		cmocka_unit_test(noise_pauses_and_beginnings_are_no_stragglers),
		cmocka_unit_test(a_slow_clock_is_named_while_the_job_is_slow),
		cmocka_unit_test(slow_clocks_of_half_are_nobodys),
		cmocka_unit_test(the_next_attempt_begins_anew),
		cmocka_unit_test(times_that_cannot_be_say_nothing),
		cmocka_unit_test(its_node_is_taken_last),
		cmocka_unit_test(one_of_two_is_held_against_its_past),
		cmocka_unit_test(of_two_ranks_one_that_changed_is_known),
		cmocka_unit_test(what_others_do_too_is_the_jobs),
		cmocka_unit_test(the_past_of_one_that_peers_name),
		cmocka_unit_test(small_jobs_that_are_well_name_nobody),
		cmocka_unit_test(history_is_of_as_many_gpus),
	};

	return cmocka_run_group_tests_name("dcore/straggler", tests, NULL, NULL);
}
