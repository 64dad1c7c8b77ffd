/* A node that its GPUs have cordoned comes back when they were tried; which failures doubt them. */
#include "tests/unit/dcore/saver.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define CANARY "gpu.canary"

/* n0 is cordoned by this check. */
static void cordoned(struct world *w, const char *check)
{
	world_init_telling(w, 2, 2);
	w->toys[0].doubts = true;
	world_finding(w, 0, check, CHECK_CRIT, ACTION_CORDON);
	world_run(w, S);
	assert_true(world_node(w, 0)->drain.done);
	world_finding(w, 0, check, CHECK_OK, 0);
	w->no_check = true;
}

static void found(struct world *w, size_t toy, int state, int action)
{
	struct node_health *h = w->toys[toy].health;

	world_finding(w, toy, CANARY, state, action);
	for (size_t i = 0; i < h->n_results; i++)
		if (mo_streq(h->results[i].check, CANARY))
			h->results[i].when = WHEN_DOUBT;
}

static bool drained(const struct world *w)
{
	return world_node(w, 0)->drain.asked;
}

static void it_comes_back_when_they_compute_right(void **state)
{
	struct world w;

	cordoned(&w, "gpu.ras_ue");
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_run(&w, 30 * S);
	assert_true(drained(&w));
	assert_true(w.toys[0].thorough);
	assert_int_equal(world_events(&w, "node.undrained"), 0);
	world_crash(&w);
	w.no_check = false;
	world_run(&w, 2 * S);
	assert_false(drained(&w));
	assert_int_equal(world_events(&w, "node.undrained"), 1);
	assert_int_equal(world_node(&w, 0)->drain.back, MO_NONE);
	world_done(&w);
}

static void it_stays_when_they_do_not(void **state)
{
	struct world w;

	cordoned(&w, CANARY);
	w.no_check = false;
	for (int round = 0; round < 2; round++) {
		/* an error of the program is no proof, and no pass */
		found(&w, 0, round ? CHECK_UNKNOWN : CHECK_CRIT, ACTION_CORDON);
		world_node_verb(&w, IN_UNDRAIN, 0, NULL);
		world_run(&w, 2 * S);
		assert_true(drained(&w));
		assert_int_equal(world_node(&w, 0)->drain.back, MO_NONE);
		assert_string_equal(world_node(&w, 0)->drain.held,
				    "gpu.canary 0000:9f:00.0: 2 uncorrectable errors");
	}
	world_node_verb(&w, IN_UNDRAIN, 0, "force");
	assert_false(drained(&w));
	assert_null(world_node(&w, 0)->drain.held);
	world_run(&w, S);
	assert_false(drained(&w));
	world_done(&w);
}

static void what_was_skipped_holds_nothing_up(void **state)
{
	struct world w;

	cordoned(&w, "klog.ras-fatal");
	w.no_check = false;
	found(&w, 0, CHECK_UNKNOWN, ACTION_REPORT);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_run(&w, 2 * S);
	assert_false(drained(&w));
	world_done(&w);
}

static void nobody_answers(void **state)
{
	struct world w;

	cordoned(&w, "gpu.ras_ue");
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_run(&w, 299 * S);
	assert_int_not_equal(world_node(&w, 0)->drain.back, MO_NONE);
	world_run(&w, 5 * S);
	assert_int_equal(world_node(&w, 0)->drain.back, MO_NONE);
	assert_true(drained(&w));
	assert_non_null(strstr(world_node(&w, 0)->drain.held, "not tried within 5 minutes"));
	world_done(&w);
}

static void other_cordons_and_agents_are_as_before(void **state)
{
	struct world w;

	cordoned(&w, "nic.state");
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	assert_false(drained(&w));
	world_done(&w);
	cordoned(&w, "gpu.ras_ue");
	w.toys[0].doubts = false;
	world_run(&w, S);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	assert_false(drained(&w));
	world_done(&w);
}

/* A node that could not be cordoned for want of room is when another comes back. */
static void there_is_room_for_the_next(void **state)
{
	struct world w;

	cordoned(&w, "gpu.ras_ue");
	world_finding(&w, 1, "gpu.pages_failed", CHECK_CRIT, ACTION_CORDON);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_run(&w, 2 * S);
	assert_false(world_node(&w, 1)->drain.asked);
	w.no_check = false;
	world_run(&w, 2 * S);
	assert_false(drained(&w));
	assert_true(world_node(&w, 1)->drain.asked);
	world_done(&w);
}

/* What never met real GPUs holds a node up no more than it would cordon it. */
static void while_it_is_new(void **state)
{
	struct world w;
	struct node_health *h;

	cordoned(&w, "klog.ras-fatal");
	w.no_check = false;
	found(&w, 0, CHECK_CRIT, ACTION_CORDON);
	h = w.toys[0].health;
	h->results[h->n_results - 1].unproven = true;
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_run(&w, 2 * S);
	assert_false(drained(&w));
	world_done(&w);
}

/* Rank 3, on n1 of three, dies so; its checks are not made yet. */
static int64_t failed(struct world *w, int64_t sig)
{
	int64_t id;

	world_init_telling(w, 3, 2);
	for (size_t i = 0; i < 3; i++)
		w->toys[i].doubts = true;
	id = world_submit_running(w, 4, 3);
	w->no_check = true;
	world_exit(w, 1, id, 3, 0, sig);
	world_run(w, 5 * S);
	assert_int_equal(world_job(w, id)->attempt, 1);
	assert_true(world_count(w, 0, CMD_CHECK) > 0 && world_count(w, 1, CMD_CHECK) > 0);
	return id;
}

static void where_a_rank_broke_they_are_tried(void **state)
{
	struct world w;
	int64_t id = failed(&w, SIGSEGV);
	const struct incident *inc = world_job(&w, id)->incidents;

	assert_string_equal(inc->class, "suspect");
	assert_true(w.toys[1].thorough);
	assert_false(w.toys[0].thorough);
	world_crash(&w);
	w.toys[1].thorough = false;
	world_run(&w, 2 * S);
	assert_true(w.toys[1].thorough);
	found(&w, 1, CHECK_CRIT, ACTION_CORDON);
	w.no_check = false;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_null(place_of(world_job(&w, id), "n1"));
	assert_string_equal(world_node(&w, 1)->drain.cordon, "gpu.canary 0000:9f:00.0");
	inc = world_job(&w, id)->incidents;
	assert_string_equal(inc->evidence[inc->n_evidence - 1],
			    "n1: gpu.canary 0000:9f:00.0: 2 uncorrectable errors (crit)");
	world_done(&w);
}

/* The programs take longer than other checks, and are waited for longer. */
static void a_doubt_is_waited_for_longer(void **state)
{
	struct world w;
	int64_t id = failed(&w, SIGSEGV);
	const struct incident *inc;

	world_why_has(&w, id, "they take 120 s at most");
	world_run(&w, 110 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_run(&w, 10 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	inc = world_job(&w, id)->incidents;
	assert_non_null(strstr(inc->evidence[inc->n_evidence - 1], "were not done within 120 s"));
	world_done(&w);
}

static void other_failures_doubt_no_gpu(void **state)
{
	struct world w;

	failed(&w, SIGKILL);
	assert_false(w.toys[0].thorough || w.toys[1].thorough);
	world_done(&w);
}

/* A loss is everybody's: each GPU may have made the NaN. */
static void nan_doubts_all(void **state)
{
	_cleanup_(mo_freep) void *setup = NULL;
	struct saver *o;

	saver_setup(&setup);
	o = setup;
	world_tells(&o->w, 0);
	o->w.toys[0].doubts = true;
	saver_run(o, 2);
	for (int64_t i = 1; i < 20; i++) {
		struct note *n = world_note(&o->w, 0, o->id, NOTE_SAMPLE);

		n->sample = mo_desc_new(&sample_desc);
		n->sample->iteration = i;
		n->sample->loss = i < 10 ? 2.0 : NAN;
	}
	o->w.no_check = true;
	saver_run(o, 5);
	assert_string_equal(saver_job(o)->incidents[0].class, "numerical");
	assert_null(saver_job(o)->checks.doubted);
	assert_true(o->w.toys[0].thorough);
	world_done(&o->w);
}

static void ranks_are_left(void **state)
{
	struct world w;

	world_init_telling(&w, 2, 2);
	w.toys[0].doubts = true;
	world_submit_running(&w, 4, 3);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	assert_true(drained(&w));
	assert_int_equal(world_node(&w, 0)->drain.back, MO_NONE);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_back_when_they_compute_right),
		cmocka_unit_test(it_stays_when_they_do_not),
		cmocka_unit_test(what_was_skipped_holds_nothing_up),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(other_cordons_and_agents_are_as_before),
		cmocka_unit_test(there_is_room_for_the_next),
		cmocka_unit_test(while_it_is_new),
		cmocka_unit_test(ranks_are_left),
		cmocka_unit_test(where_a_rank_broke_they_are_tried),
		cmocka_unit_test(a_doubt_is_waited_for_longer),
		cmocka_unit_test(other_failures_doubt_no_gpu),
		cmocka_unit_test(nan_doubts_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
