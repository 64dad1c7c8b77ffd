/* Checks after a failure: which nodes are asked, how long is waited for them, and what ends the
 * wait. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

static int64_t failed_job(struct world *w)
{
	world_init_telling(w, 3, 2);
	return world_submit_running(w, 4, 3);
}

static void nodes_are_checked_after_a_failure(void **state)
{
	struct world w;
	int64_t id = failed_job(&w), other;
	const struct incident *inc;

	w.no_check = true;
	world_exit(&w, 1, id, 3, 0, SIGKILL);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_true(world_count(&w, 0, CMD_CHECK) > 0 && world_count(&w, 1, CMD_CHECK) > 0);
	assert_int_equal(world_count(&w, 2, CMD_CHECK), 0);
	world_why_has(&w, id, "node n1: not done yet");
	other = world_submit_gpus(&w, 6); /* what the job will get is kept for it */
	world_crash(&w);
	world_run(&w, S);
	assert_int_equal(world_job(&w, other)->state, JOB_QUEUED);
	world_verb(&w, IN_CANCEL, other);
	world_finding(&w, 1, "gpu.ras_ue", CHECK_CRIT, ACTION_WARN);
	w.no_check = false;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_null(place_of(world_job(&w, id), "n1"));
	inc = &world_job(&w, id)->incidents[0];
	assert_string_equal(inc->evidence[inc->n_evidence - 1],
			    "n1: gpu.ras_ue 0000:9f:00.0: 2 uncorrectable errors (crit)");
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->checks.n_nodes, 0);
	world_done(&w);
}

/* An agent forgets an order that is repeated no more; that it was done still counts. */
static void the_slowest_node_is_waited_for(void **state)
{
	struct world w;
	int64_t id = failed_job(&w);

	world_exit(&w, 1, id, 3, 0, SIGKILL);
	world_beat(&w, 1);
	world_beat(&w, 0);
	world_beat(&w, 0);
	w.no_check = true; /* n0 made its checks, n1 does not for a while */
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_run(&w, 10 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_int_equal(world_job(&w, id)->checks.n_nodes, 1);
	assert_int_equal(w.toys[0].health->n_checked, 0);
	assert_int_equal(world_job(&w, id)->checks.n_done, 1);
	world_why_has(&w, id, "node n0: checked");
	world_crash(&w);
	world_run(&w, S);
	assert_false(core_commands_due(w.core, "n0"));
	w.no_check = false;
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->checks.n_done, 0);
	world_done(&w);
}

static void checks_are_not_waited_for_for_ever(void **state)
{
	struct world w;
	int64_t id = failed_job(&w);
	const struct incident *inc;

	w.no_check = true;
	world_exit(&w, 1, id, 3, 0, SIGKILL);
	world_run(&w, 58 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	inc = &world_job(&w, id)->incidents[0];
	assert_non_null(strstr(inc->evidence[inc->n_evidence - 1], "were not done within 60 s"));
	world_done(&w);
}

static void a_node_that_cannot_answer_is_not_waited_for(void **state)
{
	struct world w;
	int64_t id = failed_job(&w);

	w.no_check = true;
	world_exit(&w, 1, id, 3, 0, SIGKILL);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->checks.n_nodes, 2);
	world_reboot(&w, 0);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->checks.n_nodes, 1);
	w.toys[1].deaf = true;
	world_run(&w, 12 * S); /* n1 is down */
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_null(place_of(world_job(&w, id), "n1"));
	world_done(&w);
}

static void a_wait_for_checks_ends_with_the_job(void **state)
{
	struct world w;
	int64_t id = failed_job(&w);

	w.no_check = true;
	world_exit(&w, 1, id, 3, 0, SIGKILL);
	world_run(&w, S);
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	assert_int_equal(world_job(&w, id)->checks.n_nodes, 0);
	assert_false(core_commands_due(w.core, "n1"));
	world_done(&w);
}

static void a_user_error_checks_and_cordons_nothing(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 2, 2);
	id = world_submit_gpus(&w, 4);
	world_run(&w, S);
	world_exit(&w, 0, id, 0, 1, 0); /* before the first iteration */
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_string_equal(world_job(&w, id)->incidents[0].class, "user_error");
	assert_int_equal(world_count(&w, 0, CMD_CHECK) + world_count(&w, 1, CMD_CHECK), 0);
	assert_int_equal(world_cordoned(&w), 0);
	world_done(&w);
}

static void without_checks_nothing_waits(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	id = world_submit_gpus(&w, 2);
	world_run(&w, S);
	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_checked_after_a_failure),
		cmocka_unit_test(the_slowest_node_is_waited_for),
		cmocka_unit_test(checks_are_not_waited_for_for_ever),
		cmocka_unit_test(a_node_that_cannot_answer_is_not_waited_for),
		cmocka_unit_test(a_wait_for_checks_ends_with_the_job),
		cmocka_unit_test(a_user_error_checks_and_cordons_nothing),
		cmocka_unit_test(without_checks_nothing_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
