/* What an input costs grows with what it changes, not with how many nodes there are: passes over
 * nodes and jobs count whom they look at (core.looked). */
#include "tests/unit/dcore/world_inner.h"

#include <stdio.h>

#include "daemon/core/state/live.h"

#define FEW 4
#define MANY MAX_NODES

/* Of one beat of each of so many nodes, and of the ticks between them. */
static int64_t beats(size_t n)
{
	struct world w;
	int64_t before;

	world_init(&w, n, 1);
	world_run(&w, 3 * S);
	before = w.core->looked;
	world_run(&w, 5 * S);
	before = w.core->looked - before;
	world_done(&w);
	return before;
}

static void beats_look_at_nobody_else(void **state)
{
	assert_int_equal(beats(FEW), 0);
	assert_int_equal(beats(MANY), 0);
}

/* The agents of all of them begin anew. */
static int64_t hellos(size_t n)
{
	struct world w;
	int64_t before;

	world_init(&w, n, 1);
	world_run(&w, 3 * S);
	before = w.core->looked;
	for (size_t i = 0; i < n; i++) {
		snprintf(w.toys[i].instance, sizeof(w.toys[i].instance), "again-%zu", i);
		w.toys[i].beat = 0;
		world_hello(&w, i);
		world_beat(&w, i);
		assert_string_equal(world_node(&w, i)->agent.instance, w.toys[i].instance);
	}
	before = w.core->looked - before;
	world_done(&w);
	return before;
}

static void hellos_look_at_nobody_else(void **state)
{
	assert_int_equal(hellos(FEW), 0);
	assert_int_equal(hellos(MANY), 0);
}

/* One of them: twice, as it becomes suspect, and down. */
static int64_t silence(size_t n)
{
	struct world w;
	int64_t before;

	world_init(&w, n, 1);
	world_run(&w, 3 * S);
	before = w.core->looked;
	w.toys[1].deaf = true;
	world_run(&w, 20 * S);
	assert_int_equal(world_node(&w, 1)->state, NODE_DOWN);
	before = w.core->looked - before;
	world_done(&w);
	return before;
}

static void silence_looks_at_who_is_silent(void **state)
{
	assert_int_equal(silence(FEW), 2);
	assert_int_equal(silence(MANY), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beats_look_at_nobody_else),
		cmocka_unit_test(hellos_look_at_nobody_else),
		cmocka_unit_test(silence_looks_at_who_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
