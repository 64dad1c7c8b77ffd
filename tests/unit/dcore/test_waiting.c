/* What a job waits for: one code and one sentence, for whoever asks; numbers that change store
 * nothing. */
#include "tests/unit/dcore/saver.h"

#include <signal.h>
#include <string.h>

#include "lib/base/parse.h"

/* no number and no name that changes */
#define AHEAD "waits behind a job ahead of it in the queue"

static int64_t submit(struct world *w, int64_t gpus, int64_t priority)
{
	struct submit spec;
	int64_t id;

	world_recipe(&spec, gpus);
	spec.recipe.priority = priority;
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	return id;
}

static void a_queue_names_who_is_ahead(void **state)
{
	struct world w;
	int64_t big, behind, later;

	world_init(&w, 2, 4);
	submit(&w, 4, 50);
	submit(&w, 2, 50);
	submit(&w, 1, 50);
	big = submit(&w, 8, 50);
	behind = submit(&w, 1, 50);
	world_run(&w, 2 * S);
	world_waits(&w, big, WAITING_CAPACITY, "waits for 8 free GPUs",
		    "waits for 8 GPUs, 1 is free");
	world_waits(&w, behind, WAITING_BEHIND, AHEAD, "behind j-4, which needs 8 GPUs, 1 is free");
	world_why_has(&w, behind,
		      "j-4 (job) is queued, with priority 50: waits for 8 GPUs, 1 is free");
	later = submit(&w, 3, 50); /* judged alone: the queue was judged before */
	world_waits(&w, later, WAITING_BEHIND, AHEAD, "behind j-4, which needs 8 GPUs, 1 is free");
	world_done(&w);
}

static size_t reasons_stored(const struct world *w, int64_t id)
{
	size_t n = 0;

	for (size_t i = 0; i < w->out.n_records; i++)
		n += w->out.records[i].type == REC_JOB && w->out.records[i].job == id;
	return n;
}

static void a_number_that_changes_stores_nothing(void **state)
{
	struct world w;
	int64_t big, behind;
	size_t stored = 0;

	world_init(&w, 1, 4);
	submit(&w, 2, 50);
	submit(&w, 1, 50);
	big = submit(&w, 4, 50);
	behind = submit(&w, 1, 50);
	world_run(&w, 2 * S);
	world_waits(&w, behind, WAITING_BEHIND, AHEAD, "behind j-3, which needs 4 GPUs, 1 is free");
	world_verb(&w, IN_CANCEL, 2);
	for (int i = 0; i < 20 && world_job(&w, 2)->state != JOB_CANCELLED; i++) {
		world_run(&w, S / 10);
		stored += reasons_stored(&w, big) + reasons_stored(&w, behind);
	}
	assert_int_equal(world_job(&w, 2)->state, JOB_CANCELLED);
	world_waits(&w, big, WAITING_CAPACITY, "waits for 4 free GPUs",
		    "waits for 4 GPUs, 2 are free");
	world_waits(&w, behind, WAITING_BEHIND, AHEAD,
		    "behind j-3, which needs 4 GPUs, 2 are free");
	assert_int_equal(stored, 0);
	world_verb(&w, IN_CANCEL, big); /* then it is nobody's turn before its own */
	world_run(&w, S);
	assert_int_equal(world_job(&w, behind)->state, JOB_RUNNING);
	world_done(&w);
}

static void what_the_cluster_has_not(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id;

	world_init(&w, 2, 4);
	id = submit(&w, 9, 50);
	world_waits(&w, id, WAITING_TOO_LARGE, "needs 9 GPUs; the cluster has 8",
		    "needs 9 GPUs; the cluster has 8");
	world_recipe(&spec, 1);
	spec.recipe.gpu = mo_strdup("mi355x");
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_waits(&w, id, WAITING_TOO_LARGE,
		    "no node of the cluster would ever do: needs 1 GPUs of type mi355x; the "
		    "cluster has 0",
		    "no node of the cluster would ever do: needs 1 GPUs of type mi355x; the "
		    "cluster has 0");
	world_node_verb(&w, IN_DRAIN, 1, "idle");
	id = submit(&w, 8, 50);
	world_waits(&w, id, WAITING_NODES,
		    "needs 8 GPUs; only 4 of 8 are on nodes that take work now",
		    "needs 8 GPUs; only 4 of 8 are on nodes that take work now");
	world_why_has(&w, id, "node n1 takes no work: drained");
	id = submit(&w, 4, 50); /* none of them holds it up */
	assert_int_equal(world_job(&w, id)->state, JOB_STARTING);
	world_done(&w);
}

static void a_failure_is_reported_with_the_wait(void **state)
{
	struct submit spec;
	char until[32];
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	world_recipe(&spec, 1);
	spec.recipe.grace_us = 60 * S;
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, 2 * S);
	world_iteration(&w, 0, id, 3);
	world_run(&w, S);
	world_exit(&w, 0, id, 0, MO_NONE, SIGSEGV);
	world_run(&w, 5 * S);
	_cleanup_(mo_freep) char *text =
		mo_printf("not before %s (recovery.grace)",
			  mo_time_format(world_job(&w, id)->not_before, until));

	world_waits(&w, id, WAITING_GRACE, NULL, text);
	assert_non_null(strstr(world_job(&w, id)->reason, "died: "));
	world_crash(&w); /* it is found again by the next pass */
	world_waits(&w, id, WAITING_GRACE, NULL, text);
	world_hello(&w, 0);
	world_run(&w, 70 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

static void a_silent_node(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	id = world_submit_gpus(&w, 4);
	world_run(&w, 2 * S);
	world_iteration(&w, 0, id, 3);
	world_run(&w, S);
	w.toys[1].deaf = true;
	world_run(&w, 60 * S);
	world_waits(&w, id, WAITING_SILENT,
		    "node n1 is silent and no iteration advances: waiting for its agent, a new "
		    "boot, or "
		    "'moectl fence n1 --confirmed'",
		    "node n1 is silent and no iteration advances: waiting for its agent, a new "
		    "boot, or "
		    "'moectl fence n1 --confirmed'");
	world_next_has(&w, id, "moectl fence NODE --confirmed");
	world_done(&w);
}

static void ranks_that_are_not_proved_dead(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	w.no_kill = true;
	id = world_submit_gpus(&w, 4);
	world_run(&w, 2 * S);
	world_exit(&w, 0, id, 0, 1, 0);
	world_run(&w, 3 * S);
	world_waits(&w, id, WAITING_NOT_GONE, NULL,
		    "waits for proof that every rank is dead: attempt 1 on n0: being ended; and 1 "
		    "more");
	w.toys[1].deaf = true;
	w.no_kill = false;
	world_run(&w, 60 * S);
	world_waits(&w, id, WAITING_NOT_GONE, NULL,
		    "waits for proof that every rank is dead: attempt 1 on n1: the node is silent");
	world_verb(&w, IN_CANCEL, id);
	world_waits(&w, id, WAITING_NOT_GONE, NULL,
		    "waits for proof that every rank is dead: attempt 1 on n1: the node is silent");
	world_done(&w);
}

static void checks_after_a_failure(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 2, 2);
	w.no_check = true;
	id = world_submit_running(&w, 4, 5);
	world_exit(&w, 0, id, 0, MO_NONE, SIGBUS);
	world_run(&w, 3 * S);
	world_waits(&w, id, WAITING_CHECKS, "waits for on-failure checks of n0 and others",
		    "waits for on-failure checks of n0 and 1 more");
	world_why_has(&w, id, "node n1: not done yet");
	world_done(&w);
}

static void looking_for_checkpoints(void **state)
{
	struct saver *o = *state;

	o->w.no_scan = true;
	saver_run(o, 3);
	world_waits(&o->w, o->id, WAITING_SCAN, "looks for checkpoints in /ckpt from node n0",
		    "looks for checkpoints in /ckpt from node n0");
	o->w.no_scan = false;
	saver_run(o, 3);
	saver_resumed(o, 1, -1);
	struct waiting none;

	assert_false(waiting_of(core_state(o->w.core), saver_job(o), o->w.now, &none));
}

/* While it is looked at again, what was found before is still the reason. */
static void what_was_found_there(void **state)
{
	struct saver *o = *state;

	world_found(&o->w, 300, false);
	saver_run(o, 5);
	_cleanup_(mo_freep) char *said = mo_strdup(saver_job(o)->reason);

	assert_true(mo_starts_with(said, "every checkpoint in /ckpt is damaged"));
	world_waits(&o->w, o->id, WAITING_CHECKPOINT, said, said);
	o->w.no_scan = true;
	saver_run(o, 60);
	world_waits(&o->w, o->id, WAITING_CHECKPOINT, said, said);
}

/* The controller began anew: a job of 2 GPUs waits, and no node was heard yet. */
static int64_t begun_anew(struct world *w, size_t n_nodes)
{
	int64_t id;

	world_init(w, n_nodes, 2);
	world_run(w, S);
	world_crash(w);
	id = submit(w, 2, 50);
	assert_int_equal(world_job(w, id)->run.n_places, 0);
	return id;
}

static void the_first_nodes_to_come_back_get_nothing_before_the_others(void **state)
{
	struct world w;
	int64_t id = begun_anew(&w, 3);

	world_waits(&w, id, WAITING_UNHEARD, NULL,
		    "the controller has just started: 3 nodes that were up are not heard yet");
	assert_null(world_job(&w, id)->reason); /* every start would store one for each job */
	world_hello(&w, 2);
	world_hello(&w, 1);
	world_waits(&w, id, WAITING_UNHEARD, NULL,
		    "the controller has just started: 1 node that was up is not heard yet");
	world_why_has(&w, id, "node n0: its agent says hello by itself, or it is suspect soon");
	world_hello(&w, 0);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n0");
	world_done(&w);
}

static void what_the_whole_fleet_lacks_is_said_at_once(void **state)
{
	struct world w;
	int64_t id = begun_anew(&w, 3), large = submit(&w, 8, 60);

	world_waits(&w, large, WAITING_TOO_LARGE, NULL, "needs 8 GPUs; the cluster has 6");
	world_waits(&w, id, WAITING_UNHEARD, NULL,
		    "the controller has just started: 3 nodes that were up are not heard yet");
	world_done(&w);
}

static void a_node_that_stays_away_is_waited_for_until_it_is_suspect(void **state)
{
	struct world w;
	int64_t id = begun_anew(&w, 2), began = w.now;

	w.toys[0].deaf = true;
	while (w.now < began + core_config_default.suspect_us - S / 10) {
		assert_int_equal(world_job(&w, id)->run.n_places, 0);
		world_run(&w, S / 10);
	}
	world_run(&w, S / 2);
	assert_int_equal(world_node(&w, 0)->state, NODE_SUSPECT);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n1");
	world_done(&w);
}

static void nodes_that_would_take_no_work_are_not_waited_for(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 3, 2);
	w.toys[2].deaf = true;
	world_run(&w, 20 * S);
	world_node_verb(&w, IN_DRAIN, 1, "idle");
	world_crash(&w);
	id = submit(&w, 2, 50);
	world_waits(&w, id, WAITING_UNHEARD, NULL,
		    "the controller has just started: 1 node that was up is not heard yet");
	world_hello(&w, 0);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n0");
	world_done(&w);
}

/* The rows are in the order of the codes, and each says what to do. */
static void every_code_has_its_row(void **state)
{
	for (int i = 0; i < _WAITING_N; i++) {
		assert_true(waiting_code_names[i] && *waiting_code_names[i]);
		assert_non_null(waiting_kinds[i].sentence);
		assert_non_null(waiting_kinds[i].next);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(waiting_code_names[i], waiting_code_names[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_names_who_is_ahead),
		cmocka_unit_test(a_number_that_changes_stores_nothing),
		cmocka_unit_test(what_the_cluster_has_not),
		cmocka_unit_test(a_failure_is_reported_with_the_wait),
		cmocka_unit_test(a_silent_node),
		cmocka_unit_test(ranks_that_are_not_proved_dead),
		cmocka_unit_test(checks_after_a_failure),
		cmocka_unit_test_setup_teardown(looking_for_checkpoints, saver_setup,
						saver_teardown),
		cmocka_unit_test_setup_teardown(what_was_found_there, saver_setup, saver_teardown),
		cmocka_unit_test(the_first_nodes_to_come_back_get_nothing_before_the_others),
		cmocka_unit_test(what_the_whole_fleet_lacks_is_said_at_once),
		cmocka_unit_test(a_node_that_stays_away_is_waited_for_until_it_is_suspect),
		cmocka_unit_test(nodes_that_would_take_no_work_are_not_waited_for),
		cmocka_unit_test(every_code_has_its_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
