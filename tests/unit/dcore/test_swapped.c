/* Two records of the log have changed places. What stands in a store is what was decided, in that
 * order; one that was put together by hand may be anything. It is refused, which the shell tells by
 * name, or what it makes holds together: nothing is taken half. */
#include "tests/unit/dcore/world.h"

#include "daemon/core/update/check.h"

static struct state before; /* the log begins with it */

static struct core *core_before(void)
{
	struct core *c = core_new(&core_config_default);
	struct state copy;

	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, &before);
	core_load(c, &copy);
	mo_desc_done(&state_desc, &copy);
	return c;
}

/* Two jobs on two nodes: they train, one rank fails, one job is stopped, a node is drained. */
static void write_log(struct record_log *log)
{
	struct world w;

	world_init(&w, 2, 4);
	mo_desc_init(&state_desc, &before);
	mo_desc_copy(&state_desc, &before, core_state(w.core));
	w.log = log;
	world_submit_running(&w, 6, 3);
	world_submit_gpus(&w, 1);
	world_run(&w, 2 * S);
	world_exit(&w, 0, 1, 1, 7, MO_NONE);
	world_run(&w, 4 * S);
	world_node_verb(&w, IN_DRAIN, 1, "now");
	world_run(&w, 4 * S);
	world_node_verb(&w, IN_UNDRAIN, 1, NULL);
	world_run(&w, 2 * S);
	world_verb(&w, IN_CANCEL, 2);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, 1)->attempt, 3);
	assert_int_equal(world_job(&w, 2)->state, JOB_CANCELLED);
	world_done(&w);
}

/* Whether it was taken to its end, with the record at `at` after the next one; SIZE_MAX: as it
 * is. */
static bool replay(const struct record_log *log, size_t at)
{
	_cleanup_(core_freep) struct core *c = core_before();
	_cleanup_(mo_freep) char *wrong = NULL;

	for (size_t i = 0; i < log->n_items; i++) {
		size_t from = i == at ? i + 1 : at != SIZE_MAX && i == at + 1 ? at : i;

		if (core_update(c, &log->items[from]) < 0)
			return false;
	}
	wrong = state_check(c);
	if (wrong)
		fail_msg("record %zu (%s) after the next one: %s", at,
			 record_type_names[log->items[at].type], wrong);
	return true;
}

static void test_two_records_swapped(void **state)
{
	struct record_log log = { 0 };
	size_t n_refused = 0;

	write_log(&log);
	assert_true(log.n_items > 40);
	assert_true(replay(&log, SIZE_MAX));
	for (size_t i = 0; i + 1 < log.n_items; i++)
		n_refused += !replay(&log, i);
	assert_true(n_refused > 0); /* a place before its job, say */
	mo_vec_clear(&record_desc, (void **)&log.items, &log.n_items);
	mo_desc_done(&state_desc, &before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_records_swapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
