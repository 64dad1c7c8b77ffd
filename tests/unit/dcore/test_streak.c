/* Failures in a row: the pauses between attempts, how long it is tried, which nodes are avoided and
 * when it is the code. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

#include "daemon/core/rules/streak.h"
#include "daemon/core/view/why.h"
#include "daemon/core/view/why_view.h"

/* A job of two ranks that has trained, with the pauses of a recipe that says nothing of them. */
static int64_t job_on(struct world *w, size_t nodes, int64_t backoff_us)
{
	struct submit spec;
	int64_t id;

	world_init(w, nodes, 2);
	world_recipe(&spec, 2);
	spec.recipe.backoff_us = backoff_us;
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(w, S);
	world_iteration(w, 0, id, 1);
	world_run(w, S);
	return id;
}

static size_t node_of(const struct world *w, int64_t id)
{
	const struct job *j = world_job(w, id);

	assert_int_equal(j->run.n_places, 1);
	return (size_t)(j->run.places[0].node[1] - '0');
}

/* The rank dies of the signal; returns how long the next attempt waits, rounded to seconds, -1 for
 * none. */
static int64_t dies(struct world *w, int64_t id, int64_t sig)
{
	int64_t attempt = world_job(w, id)->attempt, at;

	world_exit(w, node_of(w, id), id, 1, MO_NONE, sig);
	for (size_t i = 0; i < w->n_toys; i++) {
		world_beat(w, i);
		world_beat(w, i);
	}
	at = w->now;
	while (world_job(w, id)->attempt == attempt && !job_state_final(world_job(w, id)->state) &&
	       w->now < at + 1000 * S)
		world_run(w, S / 2);
	if (world_job(w, id)->attempt == attempt)
		return -1;
	int64_t waited = (w->now - at) / S;

	world_run(w, S);
	return waited;
}

static void each_of_a_kind_waits_longer(void **state)
{
	static const int64_t pauses[] = { 0, 5, 15, 60, 300, 300 };
	struct world w;
	int64_t id = job_on(&w, 1, MO_NONE);

	for (size_t i = 0; i < ELEMENTSOF(pauses); i++)
		assert_int_equal(dies(&w, id, SIGKILL), pauses[i]);
	assert_false(job_state_final(world_job(&w, id)->state));
	/* another kind begins anew */
	assert_int_equal(dies(&w, id, SIGTERM), 0);
	assert_int_equal(dies(&w, id, SIGTERM), 5);
	world_done(&w);
}

static void the_recipe_shortens_it(void **state)
{
	static const int64_t pauses[] = { 0, 5, 7, 7 };
	struct world w;
	int64_t id = job_on(&w, 1, 7 * S);

	for (size_t i = 0; i < ELEMENTSOF(pauses); i++)
		assert_int_equal(dies(&w, id, SIGKILL), pauses[i]);
	world_done(&w);
	id = job_on(&w, 1, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dies(&w, id, SIGKILL), 0);
	world_done(&w);
}

/* One more iteration and one more checkpoint with each attempt is no reason to hurry. */
static void a_loop_that_gets_on_a_little_is_one(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, MO_NONE), waited = 0, began = w.now;

	for (int i = 0; i < 5; i++) {
		world_iteration(&w, 0, id, 10 + i);
		world_note(&w, 0, id, NOTE_CHECKPOINT)->iteration = 10 + i;
		world_run(&w, S);
		waited = dies(&w, id, SIGKILL);
	}
	assert_int_equal(waited, 300);
	assert_true(w.now - began > 380 * S);
	assert_false(job_state_final(world_job(&w, id)->state));
	world_done(&w);
}

static void what_trained_long_begins_anew(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, MO_NONE);

	for (int i = 0; i < 3; i++)
		dies(&w, id, SIGKILL);
	world_run(&w, STREAK_WON_US);
	assert_int_equal(dies(&w, id, SIGKILL), 60); /* long, but no iteration */
	world_run(&w, STREAK_WON_US);
	world_iteration(&w, 0, id, 100);
	world_run(&w, S);
	assert_int_equal(dies(&w, id, SIGKILL), 0);
	assert_int_equal(dies(&w, id, SIGKILL), 5);
	world_done(&w);
}

static void verdict_has(const struct world *w, int64_t id, const char *text)
{
	struct why_view v;

	mo_desc_init(&why_view_desc, &v);
	job_why(core_state(w->core), world_job(w, id), w->now, &v);
	if (!strstr(v.verdict, text))
		fail_msg("why does not say %s: %s", text, v.verdict);
	mo_desc_done(&why_view_desc, &v);
}

static void the_wait_is_told(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, MO_NONE);

	dies(&w, id, SIGKILL);
	for (int64_t i = 2; i <= 7; i++)
		world_iteration(&w, 0, id, i);
	world_run(&w, 200 * S);
	world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
	world_beat(&w, 0);
	world_beat(&w, 0);
	world_tick(&w, S);
	verdict_has(&w, id, "next attempt in 4 s: rank 1 on n0 died: signal 9 SIGKILL");
	verdict_has(&w, id,
		    "failure 2 of its kind in a row without a new checkpoint, 3 min and 6 "
		    "iterations "
		    "since the first; it is given up after 3, or 9 of any kind, and not before 1 h "
		    "of them");
	world_crash(&w); /* it is the state's */
	world_hello(&w, 0);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->attempt, 3);
	world_done(&w);
}

/* A person does not wait. */
static void a_restart_by_hand_does_not_wait(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, MO_NONE);

	for (int i = 0; i < 4; i++)
		dies(&w, id, SIGKILL);
	world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
	world_beat(&w, 0);
	world_beat(&w, 0);
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->attempt, 5);
	world_verb(&w, IN_RESTART, id);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->attempt, 6);
	assert_int_equal(dies(&w, id, SIGKILL), 0);
	world_done(&w);
}

/* What time may mend is tried for an hour, however often. */
static void it_is_tried_for_an_hour(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, MO_NONE), began = w.now;

	while (!job_state_final(world_job(&w, id)->state) && w.now < began + 10000 * S)
		dies(&w, id, SIGKILL);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_true(w.now - began >= STREAK_PATIENCE_US);
	assert_true(w.now - began < STREAK_PATIENCE_US + 400 * S);
	assert_true(world_job(&w, id)->attempt > 10);
	assert_non_null(strstr(world_job(&w, id)->reason, "without a new checkpoint: signal 9"));
	world_done(&w);
}

static void the_second_on_a_node_goes_elsewhere(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 3, 0);
	size_t first = node_of(&w, id);

	dies(&w, id, SIGKILL);
	assert_int_equal(node_of(&w, id), first);
	dies(&w, id, SIGKILL);
	assert_int_not_equal(node_of(&w, id), first);
	assert_true(world_job(&w, id)->incidents[1].elsewhere);
	/* killed there too: that is no word about the code */
	world_iteration(&w, node_of(&w, id), id, 5);
	world_note(&w, node_of(&w, id), id, NOTE_CHECKPOINT)->iteration = 5;
	world_run(&w, S);
	assert_int_equal(dies(&w, id, SIGKILL), 0);
	assert_int_not_equal(node_of(&w, id), first);
	world_done(&w);
}

static void without_room_it_stays(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 2, 0), other = world_submit_gpus(&w, 2);

	world_run(&w, S);
	assert_int_equal(world_job(&w, other)->state, JOB_RUNNING);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dies(&w, id, SIGSEGV), 0);
	assert_int_equal(node_of(&w, id), 0);
	world_done(&w);
}

static void the_same_elsewhere_is_the_code(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 3, MO_NONE);

	assert_int_equal(dies(&w, id, SIGSEGV), 0);
	assert_int_equal(dies(&w, id, SIGSEGV), 5);
	assert_int_equal(node_of(&w, id), 1);
	assert_int_equal(dies(&w, id, SIGSEGV), -1);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_non_null(strstr(world_job(&w, id)->reason,
			       "signal 11 SIGSEGV on n1 as on n0 before: "
			       "it is the program or its data"));
	world_why_has(&w, id, "last words");
	world_done(&w);
	/* of another kind it is not the same */
	id = job_on(&w, 3, MO_NONE);
	dies(&w, id, SIGSEGV);
	dies(&w, id, SIGSEGV);
	assert_int_equal(dies(&w, id, SIGBUS), 0);
	assert_false(job_state_final(world_job(&w, id)->state));
	world_done(&w);
}

/* Also where no attempt was told to go elsewhere: each was placed on another node by itself. */
static void on_the_way_of_placement_too(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 2, MO_NONE);

	world_node_verb(&w, IN_DRAIN, 0, "idle");
	assert_int_equal(dies(&w, id, SIGSEGV), 0);
	assert_int_equal(node_of(&w, id), 1);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_node_verb(&w, IN_DRAIN, 1, "idle");
	assert_int_equal(dies(&w, id, SIGSEGV), 5);
	assert_int_equal(node_of(&w, id), 0);
	assert_false(world_job(&w, id)->incidents[1].elsewhere);
	assert_int_equal(dies(&w, id, SIGSEGV), -1);
	assert_non_null(
		strstr(world_job(&w, id)->reason, "signal 11 SIGSEGV on n0 as on n1 before: "));
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_a_kind_waits_longer),
		cmocka_unit_test(the_recipe_shortens_it),
		cmocka_unit_test(a_loop_that_gets_on_a_little_is_one),
		cmocka_unit_test(what_trained_long_begins_anew),
		cmocka_unit_test(the_wait_is_told),
		cmocka_unit_test(a_restart_by_hand_does_not_wait),
		cmocka_unit_test(it_is_tried_for_an_hour),
		cmocka_unit_test(the_second_on_a_node_goes_elsewhere),
		cmocka_unit_test(without_room_it_stays),
		cmocka_unit_test(the_same_elsewhere_is_the_code),
		cmocka_unit_test(on_the_way_of_placement_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
