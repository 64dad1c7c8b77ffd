/* What each rank does: by the words of its engine, by what moves while a hang is suspected, and
 * nothing that nobody can know. */
#include "tests/unit/dcore/world.h"

#include "daemon/core/rules/rank_doing.h"

#define MOVES INT64_MAX

static const struct toy_motion spins = { 0, 0, MOVES, MO_NONE, PROCESS_RUNS };

static int64_t start(struct world *w, bool tells_motion)
{
	struct submit spec;
	int64_t id;

	world_init(w, 2, 2);
	for (size_t i = 0; i < 2; i++) {
		w->toys[i].tells_motion = tells_motion;
		for (size_t k = 0; k < ELEMENTSOF(w->toys[i].moves); k++)
			w->toys[i].moves[k] = spins;
	}
	world_recipe(&spec, 4);
	spec.recipe.steps = 100000;
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(w, S);
	return id;
}

static void train(struct world *w, int64_t id, int64_t from, int64_t to)
{
	for (int64_t i = from; i <= to; i++) {
		world_iteration(w, 0, id, i);
		world_run(w, S);
	}
}

static void phase(struct world *w, int64_t id, int phase)
{
	world_note(w, 0, id, NOTE_PHASE)->phase = phase;
	world_run(w, S);
}

/* What the program of rank 3 says of itself. */
static void tells(struct world *w, int64_t iteration, int phase)
{
	w->toys[1].progress[0] = (struct rank_progress){ .rank = 3,
							 .iteration = iteration,
							 .step_ms = MO_NONE_F,
							 .phase = phase,
							 .busy_ms = MO_NONE_F };
	w->toys[1].n_progress = 1;
	world_run(w, S);
}

static void expect(const struct world *w, int64_t id, int others, int last)
{
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(rank_doing_of(core_state(w->core), world_job(w, id), i, w->now),
				 i < 3 ? others : last);
}

static void the_engine_says_what_its_ranks_do(void **state)
{
	static const int said[][2] = { { PHASE_INIT, RANK_IMPORTING },
				       { PHASE_LOAD, RANK_LOADING },
				       { PHASE_TRAIN, RANK_COMPILING } };
	static const int later[][2] = { { PHASE_SAVE, RANK_SAVING },
					{ PHASE_EVAL, RANK_EVALUATING },
					{ PHASE_TRAIN, RANK_STEPPING } };
	struct world w;
	int64_t id = start(&w, true);

	expect(&w, id, RANK_UNKNOWN, RANK_UNKNOWN);
	for (size_t i = 0; i < ELEMENTSOF(said); i++) {
		phase(&w, id, said[i][0]);
		expect(&w, id, said[i][1], said[i][1]);
	}
	train(&w, id, 1, 2);
	expect(&w, id, RANK_STEPPING, RANK_STEPPING);
	assert_false(world_why_says(&w, id, "ranks: "));
	for (size_t i = 0; i < ELEMENTSOF(later); i++) {
		phase(&w, id, later[i][0]);
		expect(&w, id, later[i][1], later[i][1]);
	}
	w.no_kill = true;
	world_exit(&w, 1, id, 3, 1, MO_NONE);
	world_beat(&w, 1);
	expect(&w, id, RANK_STEPPING, -1);
	world_done(&w);
}

/* Of a rank that tells no iterations only the start is its own: what it said once stays. */
static void a_rank_speaks_for_itself_while_it_is_heard(void **state)
{
	struct world w;
	int64_t id = start(&w, true);

	phase(&w, id, PHASE_TRAIN);
	tells(&w, MO_NONE, PHASE_LOAD);
	expect(&w, id, RANK_COMPILING, RANK_LOADING);
	train(&w, id, 1, 2);
	expect(&w, id, RANK_STEPPING, RANK_STEPPING);
	tells(&w, 2, PHASE_SAVE);
	expect(&w, id, RANK_STEPPING, RANK_SAVING);
	world_why_has(&w, id, "ranks: 3 stepping (0-2), 1 saving (3)");
	world_done(&w);
}

static void what_moves_says_it_while_a_hang_is_suspected(void **state)
{
	struct world w;
	int64_t id = start(&w, true);

	train(&w, id, 1, 25);
	w.toys[1].moves[1].state = PROCESS_STOPPED;
	w.toys[1].moves[1].cpu_at = w.now;
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->hang.stage, HANG_SUSPECTED);
	expect(&w, id, RANK_COLLECTIVE_STUCK, RANK_HOST_STUCK);
	world_why_has(&w, id, "ranks: 3 collective-stuck (0-2), 1 host-stuck (3)");
	w.toys[1].moves[1] = spins;
	train(&w, id, 26, 27);
	expect(&w, id, RANK_STEPPING, RANK_STEPPING);
	world_done(&w);
}

/* Neither by its last word, nor by what was judged before. */
static void of_a_silent_node_nothing_is_known(void **state)
{
	struct world w;
	int64_t id = start(&w, true);

	train(&w, id, 1, 25);
	w.toys[0].deaf = true;
	world_run(&w, 20 * S);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(rank_doing_of(core_state(w.core), world_job(&w, id), i, w.now),
				 i < 2 ? RANK_SILENT : RANK_STEPPING);
	world_done(&w);
}

static void an_older_agent_cannot_say_it(void **state)
{
	struct world w;
	int64_t id = start(&w, false);

	train(&w, id, 1, 25);
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->hang.stage, HANG_SUSPECTED);
	expect(&w, id, RANK_UNKNOWN, RANK_UNKNOWN);
	world_done(&w);
}

static void many_ranges_are_cut(void **state)
{
	struct world w;
	int64_t id;
	_cleanup_(mo_freep) char *text = NULL;

	world_init(&w, 2, 8);
	id = world_submit_running(&w, 16, 3);
	for (size_t i = 0; i < 8; i++)
		w.toys[1].progress[i] =
			(struct rank_progress){ .rank = 8 + (int64_t)i,
						.iteration = 3,
						.step_ms = MO_NONE_F,
						.phase = i % 2 ? PHASE_SAVE : PHASE_TRAIN,
						.busy_ms = MO_NONE_F };
	w.toys[1].n_progress = 8;
	world_run(&w, S);
	world_why_has(&w, id, "4 saving (9, 11, 13, 15)");
	world_why_has(&w, id, "12 stepping (0-8, 10, 12, 14)");
	for (size_t i = 0; i < 8; i++)
		world_iteration(&w, 0, id, 4 + (int64_t)i);
	w.toys[0].progress[0] = w.toys[1].progress[1];
	w.toys[0].progress[0].rank = 5;
	w.toys[0].n_progress = 1;
	world_run(&w, S);
	world_why_has(&w, id, "5 saving (5, 9, 11, 13, ...)");
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_engine_says_what_its_ranks_do),
		cmocka_unit_test(a_rank_speaks_for_itself_while_it_is_heard),
		cmocka_unit_test(what_moves_says_it_while_a_hang_is_suspected),
		cmocka_unit_test(of_a_silent_node_nothing_is_known),
		cmocka_unit_test(an_older_agent_cannot_say_it),
		cmocka_unit_test(many_ranges_are_cut),
	};
	return cmocka_run_group_tests_name("dcore/rank_doing", tests, NULL, NULL);
}
