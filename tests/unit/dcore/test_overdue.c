/* `why` of a running job of which something is overdue never says that there is nothing to do. */
#include "tests/unit/dcore/world.h"

#include "daemon/core/state/progress.h"

static int64_t trained(struct world *w, size_t nodes)
{
	int64_t id;

	world_init(w, nodes, 2);
	id = world_submit_gpus(w, (int64_t)nodes * 2);
	for (size_t i = 0; i < nodes; i++)
		world_beat(w, i);
	for (int64_t i = 1; i <= 20; i++) {
		world_tick(w, S);
		for (size_t k = 0; k < nodes; k++) {
			if (k == 0)
				world_iteration(w, 0, id, i);
			world_beat(w, k);
		}
	}
	assert_int_equal(world_job(w, id)->state, JOB_RUNNING);
	world_next_has(w, id, "nothing to do");
	return id;
}

static void an_iteration_that_does_not_come(void **state)
{
	struct world w;
	int64_t id = trained(&w, 1);

	world_run(&w, STALL_MIN_US);
	world_next_has(&w, id, "nothing to do");
	world_run(&w, 65 * S);
	world_why_has(&w, id, "iteration 21 is overdue by 65 s");
	world_next_has(&w, id, "moectl ranks j-1");
	world_iteration(&w, 0, id, 21);
	world_beat(&w, 0);
	world_next_has(&w, id, "nothing to do");
	world_done(&w);
}

/* Until its first iteration a job that has trained recovers: its attempt is under way by then. */
static void a_restart_that_does_not_iterate(void **state)
{
	struct world w;
	int64_t id = trained(&w, 1);

	world_exit(&w, 0, id, 0, MO_NONE, 9);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	world_next_has(&w, id, "it runs again with its first iteration");
	world_run(&w, 620 * S);
	world_why_has(&w, id, "iteration 1 is overdue by");
	world_next_has(&w, id, "moectl ranks j-1");
	world_toy_step(&w, 0, id)->hung = true;
	world_beat(&w, 0);
	world_next_has(&w, id, "its supervisor on n0 does not answer");
	world_done(&w);
}

/* A save has no time of its own; but it ends. */
static void a_save_takes_long(void **state)
{
	struct world w;
	int64_t id = trained(&w, 1);

	world_note(&w, 0, id, NOTE_SAVING)->iteration = 20;
	world_beat(&w, 0);
	world_run(&w, 300 * S);
	world_next_has(&w, id, "nothing to do");
	world_run(&w, 400 * S);
	world_why_has(&w, id, "is overdue");
	world_done(&w);
}

static void a_rank_that_ended_while_others_stand(void **state)
{
	struct world w;
	int64_t id = trained(&w, 2);

	world_exit(&w, 1, id, 2, 0, 0);
	world_beat(&w, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_why_has(&w, id, "rank 2 on n1 ended with code 0, and 3 of 4 ranks run on");
	world_next_has(&w, id, "300 s");
	world_done(&w);
}

/* At once when the agent says so; the process is named by what is known. */
static void a_supervisor_that_does_not_answer(void **state)
{
	struct world w;
	int64_t id = trained(&w, 1);

	world_toy_step(&w, 0, id)->hung = true;
	world_beat(&w, 0);
	world_next_has(&w, id, "its supervisor on n0 does not answer");
	world_next_has(&w, id, "kill -CONT");
	world_toy_step(&w, 0, id)->hung = false;
	world_iteration(&w, 0, id, 21);
	world_beat(&w, 0);
	world_next_has(&w, id, "nothing to do");
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_iteration_that_does_not_come),
		cmocka_unit_test(a_restart_that_does_not_iterate),
		cmocka_unit_test(a_save_takes_long),
		cmocka_unit_test(a_rank_that_ended_while_others_stand),
		cmocka_unit_test(a_supervisor_that_does_not_answer),
	};

	return cmocka_run_group_tests_name("overdue", tests, NULL, NULL);
}
