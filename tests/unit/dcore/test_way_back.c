/* A node that its GPUs have cordoned comes back when they were tried; which failures doubt them. */
#include "tests/unit/dcore/world.h"

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

static void found(struct world *w, int state, int action)
{
	struct node_health *h = w->toys[0].health;

	world_finding(w, 0, CANARY, state, action);
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
		found(&w, round ? CHECK_UNKNOWN : CHECK_CRIT, ACTION_CORDON);
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
	found(&w, CHECK_UNKNOWN, ACTION_REPORT);
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
		cmocka_unit_test(ranks_are_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
