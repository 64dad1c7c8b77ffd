/* What build/hangs found (tests/hangs): healthy pauses that were hangs, and hangs that were
 * none. */
#include "tests/unit/dcore/world.h"

#define MOVES INT64_MAX

static const struct toy_motion spins = { 0, 0, MOVES, MO_NONE, PROCESS_RUNS };

static void all_ranks(struct world *w, struct toy_motion m)
{
	for (size_t i = 0; i < w->n_toys; i++)
		for (size_t k = 0; k < ELEMENTSOF(w->toys[i].moves); k++)
			w->toys[i].moves[k] = m;
}

static int64_t start(struct world *w, int64_t percent)
{
	struct submit spec;
	int64_t id;

	world_init(w, 2, 2);
	w->core->config.hang_percent = percent;
	for (size_t i = 0; i < w->n_toys; i++)
		w->toys[i].tells_motion = true;
	all_ranks(w, spins);
	world_recipe(&spec, 4);
	spec.recipe.steps = 100000;
	spec.recipe.hang = mo_strdup("auto");
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(w, S);
	return id;
}

/* They wait for loaders, and these for a file system that stands for a minute. */
static void all_sleep_for_a_minute(void **state)
{
	struct world w;
	int64_t id = start(&w, 100);

	for (int64_t i = 1; i <= 25; i++) {
		world_iteration(&w, 0, id, i);
		world_run(&w, S);
	}
	all_ranks(&w, (struct toy_motion){ 0, 0, w.now, MO_NONE, PROCESS_RUNS });
	world_run(&w, 110 * S);
	assert_int_equal(world_events(&w, "hang.suspected"), 1);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	world_run(&w, 30 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 1);
	world_done(&w);
}

/* Steps of 40 s, whose lines come 27 at once: each time after 18 minutes. */
static void lines_that_come_together(void **state)
{
	struct world w;
	int64_t id = start(&w, 100);

	world_run(&w, 27 * 40 * S);
	for (int64_t i = 1; i <= 27; i++) {
		world_iteration(&w, 0, id, i);
		world_toy_step(&w, 0, id)
			->notes[world_toy_step(&w, 0, id)->n_notes - 1]
			.sample->step_ms = 40000;
	}
	world_run(&w, 27 * 40 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	world_iteration(&w, 0, id, 28);
	world_run(&w, 10 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

static void line(struct world *w, int64_t id, int64_t iteration, int64_t time)
{
	struct toy_step *s = world_toy_step(w, 1, id);

	world_iteration(w, 1, id, iteration);
	s->notes[s->n_notes - 1].time = time;
	world_run(w, S);
}

/* Rank 0 says what the job does now, the last rank prints iterations: on two nodes, whose beats
 * pass each other. */
static void a_line_that_comes_behind_the_word(int kind, int phase)
{
	struct world w;
	int64_t id = start(&w, 100), said;
	struct note *n;

	for (int64_t i = 1; i <= 25; i++)
		line(&w, id, i, w.now);
	said = w.now;
	n = world_note(&w, 0, id, kind);
	n->time = said;
	n->phase = phase;
	n->iteration = kind == NOTE_SAVING ? 26 : MO_NONE;
	world_run(&w, S);
	line(&w, id, 26, said - S / 100);
	assert_int_equal(world_job(&w, id)->progress.iteration, 26);
	all_ranks(&w, (struct toy_motion){ 0, 0, w.now, MO_NONE, PROCESS_RUNS });
	world_run(&w, 29 * 60 * S);
	assert_int_equal(world_events(&w, "hang.suspected"), 0);
	line(&w, id, 27, w.now);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_TRAIN);
	world_done(&w);
}

static void a_line_that_comes_behind_the_save(void **state)
{
	a_line_that_comes_behind_the_word(NOTE_SAVING, PHASE_NONE);
}

static void a_line_that_comes_behind_the_evaluation(void **state)
{
	a_line_that_comes_behind_the_word(NOTE_PHASE, PHASE_EVAL);
}

static void word(struct world *w, size_t toy, int64_t id, int kind, int phase, int64_t rank)
{
	struct note *n = world_note(w, toy, id, kind);

	n->phase = phase;
	n->rank = rank;
	n->time = w->now;
	n->iteration = kind == NOTE_SAVING || kind == NOTE_CHECKPOINT ? 25 : MO_NONE;
	world_run(w, S);
}

static const struct {
	int kind, phase, is;
} pauses[] = { { NOTE_SAVING, PHASE_NONE, PHASE_SAVE },
	       { NOTE_PHASE, PHASE_SAVE, PHASE_SAVE },
	       { NOTE_PHASE, PHASE_EVAL, PHASE_EVAL } };

/* A node that was cut off as training began tells of that while another saves or evaluates. */
static void words_of_the_start_that_come_late(void **state)
{
	static const int old[] = { PHASE_INIT, PHASE_LOAD, PHASE_TRAIN };

	for (size_t i = 0; i < ELEMENTSOF(pauses) * ELEMENTSOF(old); i++) {
		int is = pauses[i % 3].is;
		struct world w;
		int64_t id = start(&w, 100);

		for (int64_t k = 1; k <= 25; k++)
			line(&w, id, k, w.now);
		word(&w, 0, id, pauses[i % 3].kind, pauses[i % 3].phase, 0);
		word(&w, 1, id, NOTE_PHASE, old[i / 3], 2);
		assert_int_equal(world_job(&w, id)->progress.phase, is);
		all_ranks(&w, (struct toy_motion){ 0, 0, w.now, MO_NONE, PROCESS_RUNS });
		world_run(&w, 28 * 60 * S);
		assert_int_equal(world_events(&w, "hang.suspected"), 0);
		word(&w, 0, id, NOTE_PHASE, PHASE_TRAIN, 0);
		assert_int_equal(world_job(&w, id)->progress.phase, PHASE_TRAIN);
		world_done(&w);
	}
}

static int64_t start_and_train(struct world *w)
{
	int64_t id = start(w, 100);

	for (int64_t i = 1; i <= 25; i++)
		line(w, id, i, w->now);
	return id;
}

/* A node that was cut off since before an evaluation tells of all of it while another pauses. */
static void words_of_an_evaluation_that_come_late(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(pauses); i++) {
		struct world w;
		int64_t id = start_and_train(&w);

		word(&w, 0, id, pauses[i].kind, pauses[i].phase, 0);
		word(&w, 1, id, NOTE_PHASE, PHASE_EVAL, 2);
		word(&w, 1, id, NOTE_PHASE, PHASE_TRAIN, 2);
		assert_int_equal(world_job(&w, id)->progress.phase, pauses[i].is);
		assert_int_equal(world_job(&w, id)->saves.n, pauses[i].is == PHASE_SAVE);
		all_ranks(&w, (struct toy_motion){ 0, 0, w.now, MO_NONE, PROCESS_RUNS });
		world_run(&w, 28 * 60 * S);
		assert_int_equal(world_events(&w, "hang.suspected"), 0);
		word(&w, 0, id, NOTE_PHASE, PHASE_TRAIN, 0);
		assert_int_equal(world_job(&w, id)->progress.phase, PHASE_TRAIN);
		world_done(&w);
	}
}

static void save_word(struct world *w, size_t toy, int64_t id, int kind, int64_t iteration)
{
	struct note *n = world_note(w, toy, id, kind);

	n->rank = (int64_t)toy * 2;
	n->time = w->now;
	n->iteration = iteration;
	world_run(w, S);
}

/* A node that was cut off since before an earlier save tells of its end, or of all of it, while
 * another one saves. began: NOTE_PHASE: it says nothing of the begin. */
static void words_of_an_earlier_save_that_come_late(void **state)
{
	static const int began[] = { NOTE_PHASE, NOTE_SAVING };

	for (size_t i = 0; i < ELEMENTSOF(began); i++) {
		struct world w;
		int64_t id = start_and_train(&w);

		save_word(&w, 0, id, NOTE_SAVING, 25);
		if (began[i] == NOTE_SAVING)
			save_word(&w, 1, id, NOTE_SAVING, 20);
		save_word(&w, 1, id, NOTE_CHECKPOINT, 20);
		assert_int_equal(world_job(&w, id)->progress.phase, PHASE_SAVE);
		assert_int_equal(world_job(&w, id)->saves.n, 1);
		all_ranks(&w, (struct toy_motion){ 0, 0, w.now, MO_NONE, PROCESS_RUNS });
		world_run(&w, 28 * 60 * S);
		assert_int_equal(world_events(&w, "hang.suspected"), 0);
		save_word(&w, 1, id, NOTE_CHECKPOINT, 25);
		assert_int_equal(world_job(&w, id)->progress.phase, PHASE_TRAIN);
		world_done(&w);
	}
}

/* An evaluation follows a save, and another node tells of it sooner. */
static void a_save_that_ends_behind_an_evaluation(void **state)
{
	struct world w;
	int64_t id = start_and_train(&w);

	word(&w, 0, id, NOTE_SAVING, PHASE_NONE, 0);
	word(&w, 1, id, NOTE_PHASE, PHASE_EVAL, 2);
	word(&w, 0, id, NOTE_CHECKPOINT, PHASE_NONE, 0);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_EVAL);
	word(&w, 0, id, NOTE_SAVING, PHASE_NONE, 0);
	word(&w, 0, id, NOTE_CHECKPOINT, PHASE_NONE, 0);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_EVAL);
	word(&w, 0, id, NOTE_PHASE, PHASE_TRAIN, 0);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_EVAL);
	word(&w, 1, id, NOTE_PHASE, PHASE_TRAIN, 2);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_TRAIN);
	world_done(&w);
}

/* Another rank of the same node says of its start what was read late. */
static void a_word_of_another_rank_of_the_node(void **state)
{
	struct world w;
	int64_t id = start_and_train(&w);

	word(&w, 0, id, NOTE_SAVING, PHASE_NONE, 0);
	word(&w, 0, id, NOTE_PHASE, PHASE_TRAIN, 1);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_SAVE);
	world_done(&w);
}

/* Whatever was said before it and not ended is over. */
static void a_line_ends_the_pauses_of_all(void **state)
{
	struct world w;
	int64_t id = start_and_train(&w);

	word(&w, 0, id, NOTE_SAVING, PHASE_NONE, 0);
	word(&w, 1, id, NOTE_PHASE, PHASE_EVAL, 2);
	line(&w, id, 26, w.now);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_TRAIN);
	word(&w, 1, id, NOTE_PHASE, PHASE_EVAL, 2);
	word(&w, 1, id, NOTE_PHASE, PHASE_TRAIN, 2);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_TRAIN);
	world_done(&w);
}

/* The save is of an iteration whose line comes behind the word of an evaluation of before. */
static void an_old_word_keeps_what_the_save_is_of(void **state)
{
	struct world w;
	int64_t id = start(&w, 100);

	for (int64_t i = 1; i <= 24; i++)
		line(&w, id, i, w.now);
	word(&w, 0, id, NOTE_SAVING, PHASE_NONE, 0);
	word(&w, 1, id, NOTE_PHASE, PHASE_EVAL, 2);
	line(&w, id, 25, w.now + 60 * S);
	assert_int_equal(world_job(&w, id)->progress.iteration, 25);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_EVAL);
	world_done(&w);
}

/* What trains on beside a save is behind it. */
static void a_save_beside_the_steps(void **state)
{
	struct world w;
	int64_t id = start(&w, 100), said;
	struct note *n;

	for (int64_t i = 1; i <= 25; i++)
		line(&w, id, i, w.now);
	said = w.now;
	n = world_note(&w, 0, id, NOTE_SAVING);
	n->time = said;
	n->iteration = 25;
	world_run(&w, S);
	line(&w, id, 26, said + S / 10);
	assert_int_equal(world_job(&w, id)->progress.phase, PHASE_TRAIN);
	world_done(&w);
}

/* A tenth of the times: nothing but processors for 24 minutes. Then who sleeps stands out. */
static void a_start_that_spins_for_ever(void **state)
{
	struct world w;
	int64_t id = start(&w, 10);

	world_note(&w, 0, id, NOTE_PHASE)->phase = PHASE_INIT;
	w.toys[1].moves[0].cpu_at = w.now;
	world_run(&w, 22 * 60 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	world_run(&w, 8 * 60 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 1);
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 2);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sleep_for_a_minute),
		cmocka_unit_test(lines_that_come_together),
		cmocka_unit_test(a_line_that_comes_behind_the_save),
		cmocka_unit_test(a_line_that_comes_behind_the_evaluation),
		cmocka_unit_test(words_of_the_start_that_come_late),
		cmocka_unit_test(words_of_an_evaluation_that_come_late),
		cmocka_unit_test(words_of_an_earlier_save_that_come_late),
		cmocka_unit_test(a_save_that_ends_behind_an_evaluation),
		cmocka_unit_test(a_word_of_another_rank_of_the_node),
		cmocka_unit_test(a_line_ends_the_pauses_of_all),
		cmocka_unit_test(an_old_word_keeps_what_the_save_is_of),
		cmocka_unit_test(a_save_beside_the_steps),
		cmocka_unit_test(a_start_that_spins_for_ever),
	};

	return cmocka_run_group_tests_name("hang pauses", tests, NULL, NULL);
}
