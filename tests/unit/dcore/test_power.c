/* Silent nodes and the site's fence_command: for whom it is asked, and what follows its answer. */
#include "tests/unit/dcore/world.h"

#define MINUTE (60 * S)

/* Four ranks on n0 and n1, two GPUs each, lease 20 s. */
static int64_t running(struct world *w, size_t nodes, const char *on_node_loss)
{
	struct submit spec;

	world_init(w, nodes, 2);
	w->core->config.powers_off = true;
	world_recipe(&spec, 4);
	mo_str_set(&spec.recipe.on_node_loss, on_node_loss);
	spec.recipe.lease_us = 20 * S;
	int64_t id = world_submit(w, &spec);

	mo_desc_done(&submit_desc, &spec);
	world_run(w, 3 * S);
	assert_int_equal(world_job(w, id)->state, JOB_RUNNING);
	world_iteration(w, 0, id, 1);
	world_run(w, S);
	return id;
}

static void says(struct world *w, size_t toy, const char *boot, bool off, const char *text)
{
	struct in_power power = { w->toys[toy].name, (char *)boot, off, (char *)text };

	world_step(w, &(struct core_input){ .type = IN_POWER, .power = &power });
}

static void what_is_off_is_dead(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, "spare");

	w.toys[1].deaf = true;
	world_run(&w, 19 * S);
	assert_int_equal(w.n_powers, 0);
	world_run(&w, 5 * S);
	assert_int_equal(w.n_powers, 1);
	assert_true(world_event_seen(&w, "node.power_asked"));
	world_run(&w, MINUTE);
	assert_int_equal(w.n_powers, 1); /* it is asked once, and waited for */
	assert_int_equal(world_job(&w, id)->attempt, 1);
	says(&w, 1, "boot-n1", true, "chassis power is off");
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(world_job(&w, id)->run.places[1].node, "n2");
	assert_true(world_event_seen(&w, "node.fenced"));
	/* it stays silent: nobody needs it any more */
	world_run(&w, MINUTE);
	assert_int_equal(w.n_powers, 1);
	w.toys[1].deaf = false;
	world_reboot(&w, 1);
	world_run(&w, 2 * S);
	assert_int_equal(world_node(&w, 1)->power.step, -1);
	world_done(&w);
}

static void a_job_that_waits_by_its_recipe_waits(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, "wait");

	w.toys[1].deaf = true;
	world_run(&w, 3 * MINUTE);
	assert_int_equal(w.n_powers, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

static void a_site_without_a_command_waits(void **state)
{
	struct world w;

	running(&w, 3, "spare");
	w.core->config.powers_off = false;
	w.toys[1].deaf = true;
	world_run(&w, 3 * MINUTE);
	assert_int_equal(w.n_powers, 0);
	world_done(&w);
}

/* Its agent alone is away. */
static void not_beside_a_job_that_advances(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, "spare");

	w.toys[1].deaf = true;
	for (int64_t i = 2; i < 30; i++) {
		world_iteration(&w, 0, id, i);
		world_run(&w, 3 * S);
	}
	assert_int_equal(w.n_powers, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	/* then it stands */
	world_run(&w, MINUTE);
	assert_int_equal(w.n_powers, 1);
	world_done(&w);
}

static void what_fails_is_asked_again_later(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, "spare");
	static const int64_t waits[] = { 1, 5 };

	w.toys[1].deaf = true;
	world_run(&w, MINUTE);
	for (size_t i = 0; i < ELEMENTSOF(waits); i++) {
		assert_int_equal(w.n_powers, i + 1);
		says(&w, 1, "boot-n1", false, "exit status 1: no route to the BMC");
		assert_int_equal(world_events(&w, "node.power_failed"), i + 1);
		world_run(&w, waits[i] * MINUTE - 2 * S);
		assert_int_equal(w.n_powers, i + 1);
		world_run(&w, 5 * S);
	}
	assert_int_equal(w.n_powers, 3);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_why_has(&w, id, "no route to the BMC");
	world_done(&w);
}

/* The answer comes late: it is heard again, or was booted. */
static void an_answer_about_another_time_is_none(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, "spare");

	w.toys[1].deaf = true;
	world_run(&w, MINUTE);
	assert_int_equal(w.n_powers, 1);
	says(&w, 1, "boot-before", true, "");
	assert_false(world_event_seen(&w, "node.fenced"));
	w.toys[1].deaf = false;
	world_run(&w, 2 * S);
	assert_int_equal(world_node(&w, 1)->state, NODE_UP);
	says(&w, 1, "boot-n1", true, "");
	world_run(&w, 3 * S);
	assert_false(world_event_seen(&w, "node.fenced"));
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* The network, or this controller: of 20 nodes three are silent. */
static void not_when_many_are_silent(void **state)
{
	struct world w;
	int64_t id = running(&w, 20, "spare");

	for (size_t i = 1; i < 4; i++)
		w.toys[i].deaf = true;
	world_run(&w, MINUTE);
	assert_int_equal(w.n_powers, 0);
	assert_int_equal(world_events(&w, "node.power_held"), 1);
	world_why_has(&w, id, "more than a tenth of all nodes");
	w.toys[3].deaf = false;
	world_run(&w, 3 * S);
	assert_int_equal(w.n_powers, 1);
	world_done(&w);
}

/* Its command ended with the controller that ran it. */
static void the_next_controller_asks_again(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, "spare");

	w.toys[1].deaf = true;
	world_run(&w, MINUTE);
	assert_int_equal(w.n_powers, 1);
	world_crash(&w);
	w.core->config.powers_off = true;
	world_run(&w, MINUTE);
	assert_int_equal(w.n_powers, 2);
	assert_int_equal(world_node(&w, 1)->power.tries, 1);
	says(&w, 1, "boot-n1", true, "");
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

/* A cancelled job waits for the proof as well. */
static void a_job_that_ends_is_held_up_too(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, "spare");

	w.toys[1].deaf = true;
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, MINUTE);
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING);
	assert_int_equal(w.n_powers, 1);
	says(&w, 1, "boot-n1", true, "");
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_off_is_dead),
		cmocka_unit_test(a_job_that_waits_by_its_recipe_waits),
		cmocka_unit_test(a_site_without_a_command_waits),
		cmocka_unit_test(not_beside_a_job_that_advances),
		cmocka_unit_test(what_fails_is_asked_again_later),
		cmocka_unit_test(an_answer_about_another_time_is_none),
		cmocka_unit_test(not_when_many_are_silent),
		cmocka_unit_test(the_next_controller_asks_again),
		cmocka_unit_test(a_job_that_ends_is_held_up_too),
	};

	return cmocka_run_group_tests_name("dcore/power", tests, NULL, NULL);
}
