/* A step that is stopped where it runs, and a machine that goes down in order: planned stops, no
 * failures. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

#include "daemon/core/state/lemon.h"

static int64_t running(struct world *w)
{
	world_init(w, 3, 2);
	return world_submit_running(w, 4, 4);
}

/* The step there was stopped, not by moectl; the next beat tells. */
static void ordered_to_end(struct world *w, size_t toy, int64_t id)
{
	world_note(w, toy, id, NOTE_STOPPING)->text = mo_strdup("its supervisor was told to end");
}

/* Nothing of it counts: as a failure, against the node, or in the restarts. */
static void no_failure(struct world *w, int64_t id, int64_t attempt)
{
	double scores[MAX_NODES];

	lemon_scores(core_state(w->core), w->now, scores);
	assert_true(scores[0] == 0 && scores[1] == 0 && scores[2] == 0);
	assert_int_equal(world_job(w, id)->attempt, attempt);
	assert_int_equal(world_job(w, id)->restarts, 0);
	assert_int_equal(world_job(w, id)->n_incidents, 0);
	assert_int_equal(world_job(w, id)->streak.cycles, 0);
}

static void the_rest_is_stopped_as_planned_and_starts_again(void **state)
{
	struct world w;
	int64_t id = running(&w);

	ordered_to_end(&w, 1, id);
	world_beat(&w, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING);
	assert_non_null(strstr(world_job(&w, id)->reason, "stopped there, not by moectl"));
	assert_true(world_event_seen(&w, "step.stopped_outside"));
	world_beat(&w, 0);
	assert_true(world_count(&w, 0, CMD_STOP) >= 1); /* the ranks elsewhere may save, too */
	assert_int_equal(world_count(&w, 0, CMD_KILL) + world_count(&w, 1, CMD_KILL), 0);
	world_crash(&w);
	world_run(&w, 3 * S);
	no_failure(&w, id, 2);
	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

/* A supervisor of an earlier version only says that its ranks were stopped: nobody waits 300 s for
 * the others. */
static void ranks_that_were_stopped_by_nobody_here(void **state)
{
	struct world w;
	int64_t id = running(&w);

	world_exit(&w, 1, id, 2, 0, 0);
	mo_str_set(&world_toy_step(&w, 1, id)->notes[world_toy_step(&w, 1, id)->n_notes - 1].cause,
		   "stopped");
	world_beat(&w, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING);
	world_run(&w, 3 * S);
	no_failure(&w, id, 2);
	world_done(&w);
}

/* The word of the stopped step is late: what its peers ended with is reported first. */
static void an_echo_that_is_reported_first(void **state)
{
	struct world w;
	int64_t id = running(&w);

	world_exit(&w, 0, id, 0, 1, 0);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	ordered_to_end(&w, 1, id);
	world_run(&w, 3 * S);
	no_failure(&w, id, 2);
	world_done(&w);
}

/* The controller heard nothing of an attempt that followed a failure until all of it was over. */
static void its_whole_end_is_reported_at_once(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	id = world_submit_running(&w, 2, 1);
	world_exit(&w, 0, id, 0, 0, SIGSEGV);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	ordered_to_end(&w, 0, id);
	for (int64_t rank = 0; rank < 2; rank++) {
		world_exit(&w, 0, id, rank, 128 + SIGTERM, 0);
		mo_str_set(&world_toy_step(&w, 0, id)
				    ->notes[world_toy_step(&w, 0, id)->n_notes - 1]
				    .cause,
			   "stopped");
	}
	world_note(&w, 0, id, NOTE_GONE);
	world_beat(&w, 0);
	world_run(&w, S);
	assert_true(world_event_seen(&w, "job.stopping"));
	assert_int_equal(world_job(&w, id)->attempt, 3);
	assert_int_equal(world_job(&w, id)->restarts, 1);
	assert_int_equal(world_job(&w, id)->n_incidents, 1);
	world_done(&w);
}

/* A rank that dies of itself at the same time is a failure all the same. */
static void a_death_of_its_own_stays_one(void **state)
{
	struct world w;
	int64_t id = running(&w);

	world_exit(&w, 0, id, 0, 0, SIGSEGV);
	world_beat(&w, 0);
	ordered_to_end(&w, 1, id);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->restarts, 1);
	assert_int_equal(world_job(&w, id)->n_incidents, 1);
	world_done(&w);
}

static void a_planned_reboot_is_no_fault_of_the_node(void **state)
{
	struct world w;
	int64_t id = running(&w);

	w.toys[1].leaving = true;
	world_beat(&w, 1);
	assert_true(world_event_seen(&w, "node.leaving"));
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING);
	world_run(&w, 3 * S);
	no_failure(&w, id, 2);
	/* not where it would be stopped again */
	assert_null(place_of(world_job(&w, id), "n1"));
	assert_non_null(place_of(world_job(&w, id), "n2"));
	world_crash(&w);
	world_run(&w, S);
	assert_true(world_node(&w, 1)->boot.leaving);
	w.toys[1].leaving = false;
	world_reboot(&w, 1);
	world_run(&w, S);
	assert_false(world_node(&w, 1)->boot.leaving);
	no_failure(&w, id, 2);
	world_done(&w);
}

/* The machine was off before its last word came: the boot id is the proof, and still no fault,
 * because it had said that it goes. */
static void gone_before_its_ranks_were_reported_gone(void **state)
{
	struct world w;
	int64_t id = running(&w);

	w.no_kill = true;
	w.toys[1].leaving = true;
	world_beat(&w, 1);
	w.toys[1].deaf = true;
	world_run(&w, 30 * S);
	/* silence proves nothing, as ever */
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING);
	w.no_kill = false;
	w.toys[1].deaf = w.toys[1].leaving = false;
	world_reboot(&w, 1);
	world_run(&w, 5 * S);
	no_failure(&w, id, world_job(&w, id)->attempt);
	world_done(&w);
}

/* Launched there before anybody knew that the machine goes down, where systemd starts nothing any
 * more. */
static void refused_by_a_machine_that_goes_down(void **state)
{
	struct world w;

	world_init(&w, 3, 2);
	int64_t id = world_submit_gpus(&w, 4);
	world_run(&w, S / 10);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	mo_str_set(&world_note(&w, 1, id, NOTE_REFUSED)->cause, "start");
	world_note(&w, 1, id, NOTE_GONE);
	w.toys[1].leaving = true;
	world_beat(&w, 1);
	world_run(&w, 3 * S);
	no_failure(&w, id, 2);
	assert_null(place_of(world_job(&w, id), "n1"));
	world_done(&w);
}

static void a_shutdown_that_is_given_up(void **state)
{
	struct world w;

	world_init(&w, 1, 4);
	w.toys[0].leaving = true;
	world_beat(&w, 0);
	int64_t id = world_submit_gpus(&w, 4);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	world_why_has(&w, id, "its machine is going down");
	w.toys[0].leaving = false;
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rest_is_stopped_as_planned_and_starts_again),
		cmocka_unit_test(ranks_that_were_stopped_by_nobody_here),
		cmocka_unit_test(an_echo_that_is_reported_first),
		cmocka_unit_test(its_whole_end_is_reported_at_once),
		cmocka_unit_test(a_death_of_its_own_stays_one),
		cmocka_unit_test(a_planned_reboot_is_no_fault_of_the_node),
		cmocka_unit_test(gone_before_its_ranks_were_reported_gone),
		cmocka_unit_test(refused_by_a_machine_that_goes_down),
		cmocka_unit_test(a_shutdown_that_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
