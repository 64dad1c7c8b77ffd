/* What a node's kernel and checks tell of a failure after it was judged. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

static struct world w;
static int64_t id;

/* A job of two ranks on n0, whose first attempt died without a word and runs again. */
static void failed(void)
{
	world_init_telling(&w, 3, 2);
	id = world_submit_running(&w, 2, 5);
	world_exit(&w, 0, id, 1, MO_NONE, SIGABRT);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n0");
}

static const struct incident *first(void)
{
	return &world_job(&w, id)->incidents[0];
}

/* It began `us` after the failure. */
static void finds(int state, const char *line, int64_t us)
{
	struct check_result *r;

	world_finding(&w, 0, "klog.x", state, ACTION_WARN);
	r = &w.toys[0].health->results[0];
	mo_strs_add(&r->evidence, &r->n_evidence, line);
	r->since = first()->time + us;
	world_beat(&w, 0);
}

static const char reset[] = "amdgpu 0000:9f:00.0: amdgpu: GPU reset begin! Source: 3";

/* What was done stays; the node is left. */
static void a_broken_node_is_left(void **state)
{
	failed();
	assert_string_equal(first()->class, "suspect");
	finds(CHECK_CRIT, reset, -S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(first()->class, "suspect");
	assert_string_equal(first()->action, "restart from the beginning as attempt 2");
	assert_true(first()->elsewhere);
	assert_int_equal(first()->n_later, 1);
	assert_int_equal(world_events(&w, "incident.later"), 1);
	assert_int_equal(world_cordoned(&w), 1);
	world_why_has(&w, id, "what was told of attempt 1 after its failure was taken for suspect");
	world_why_has(&w, id, "(node_fault)");
	world_exit(&w, 0, id, 1, MO_NONE, SIGABRT);
	world_run(&w, 3 * S);
	assert_string_not_equal(world_job(&w, id)->run.places[0].node, "n0");
	world_done(&w);
}

/* Code or hardware: it is said, and cordons nothing. */
static void what_proves_nothing_is_told(void **state)
{
	failed();
	finds(CHECK_WARN, "amdgpu 0000:9f:00.0: amdgpu: [gfxhub0] no-retry page fault", -S);
	assert_int_equal(first()->n_later, 1);
	assert_false(first()->elsewhere);
	assert_int_equal(world_cordoned(&w), 0);
	/* the same again is nothing new */
	w.toys[0].health->version++;
	world_beat(&w, 0);
	assert_int_equal(world_events(&w, "incident.later"), 1);
	world_done(&w);
}

static void what_is_not_of_it(void **state)
{
	/* of the attempt that runs there now */
	failed();
	finds(CHECK_WARN, reset, 3 * S);
	assert_int_equal(first()->n_later, 0);
	world_done(&w);
	/* long before */
	failed();
	finds(CHECK_WARN, reset, -200 * S);
	assert_int_equal(first()->n_later, 0);
	world_done(&w);
	/* says nothing of failures */
	failed();
	finds(CHECK_WARN, "usb 1-1: new high-speed USB device", -S);
	assert_int_equal(first()->n_later, 0);
	world_done(&w);
	/* known when it was judged: a node that is worse tells it */
	failed();
	finds(CHECK_WARN, reset, -S);
	assert_int_equal(first()->n_later, 1);
	world_exit(&w, 0, id, 1, MO_NONE, SIGABRT);
	world_run(&w, 3 * S);
	w.toys[0].health->version++;
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->incidents[1].n_later, 0);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broken_node_is_left),
		cmocka_unit_test(what_proves_nothing_is_told),
		cmocka_unit_test(what_is_not_of_it),
	};

	return cmocka_run_group_tests_name("dcore/later", tests, NULL, NULL);
}
