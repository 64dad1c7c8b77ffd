/* A GPU that two failures name is cordoned with its node, and tried before that comes back. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

static const char hang[] = "HW Exception by GPU node-4 (Agent handle: 0x5) reason :GPU Hang";

/* A job of two ranks on n0 whose rank on this GPU dies with that line; it goes on elsewhere. */
static int64_t fails(struct world *w, int64_t rank, const char *line)
{
	int64_t id = world_submit_running(w, 2, 5);
	struct toy_step *s;

	assert_non_null(place_of(world_job(w, id), "n0"));
	world_exit(w, 0, id, rank, MO_NONE, SIGABRT);
	s = world_toy_step(w, 0, id);
	mo_strs_add(&s->notes[s->n_notes - 1].tail, &s->notes[s->n_notes - 1].n_tail, line);
	world_run(w, 3 * S);
	assert_true(world_job(w, id)->n_incidents == 1);
	world_verb(w, IN_CANCEL, id);
	world_run(w, 3 * S);
	return id;
}

/* Only n0 gets jobs: the other one is drained. */
static void begin(struct world *w)
{
	world_init(w, 2, 2);
	w->toys[0].addresses = true;
	world_tells(w, 0);
	world_node_verb(w, IN_DRAIN, 1, "now");
	world_run(w, 2 * S);
}

static bool drained(const struct world *w)
{
	return world_node(w, 0)->drain.asked;
}

static bool said(const struct world *w, const char *text)
{
	const struct state *s = core_state(w->core);

	for (size_t i = 0; i < s->n_events; i++)
		if (strstr(s->events[i].message, text))
			return true;
	return false;
}

static void the_second_cordons(void **state)
{
	struct world w;

	begin(&w);
	fails(&w, 1, hang);
	assert_false(drained(&w));
	fails(&w, 1, hang);
	assert_true(drained(&w));
	assert_non_null(strstr(world_node(&w, 0)->drain.reason,
			       "GPU 0000:91:00.0 is named by two failures: by attempt 1 of j-1"));
	assert_non_null(strstr(world_node(&w, 0)->drain.reason, hang));
	world_done(&w);
}

/* Who gave it back knows of the two: it takes two more, and they are not those. */
static void given_back_it_begins_anew(void **state)
{
	struct world w;

	begin(&w);
	fails(&w, 1, hang);
	fails(&w, 1, hang);
	assert_true(drained(&w));
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_run(&w, 3 * S);
	assert_false(drained(&w));
	assert_true(said(&w, "node n0 takes work again; what cordoned it counts no more against "
			     "its GPUs: failure j-2: GPU 0000:91:00.0 is named by two failures: "
			     "by attempt 1 of j-1"));
	fails(&w, 1, hang);
	assert_false(drained(&w));
	world_crash(&w);
	world_run(&w, 5 * S);
	fails(&w, 1, hang);
	assert_true(drained(&w));
	assert_non_null(strstr(world_node(&w, 0)->drain.reason, "by attempt 1 of j-3"));
	world_done(&w);
}

/* A drain of another reason says nothing of the GPU. */
static void another_drain_forgives_nothing(void **state)
{
	struct world w;

	begin(&w);
	fails(&w, 1, hang);
	world_node_verb(&w, IN_DRAIN, 0, "now");
	world_run(&w, 2 * S);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_run(&w, 2 * S);
	fails(&w, 1, hang);
	assert_true(drained(&w));
	world_done(&w);
}

static void another_device_does_not(void **state)
{
	struct world w;

	begin(&w);
	fails(&w, 0, hang);
	fails(&w, 1, hang);
	assert_false(drained(&w));
	world_done(&w);
}

/* Code or hardware: what may be the program's names no device. */
static void what_may_be_the_programs_does_not(void **state)
{
	struct world w;

	begin(&w);
	for (int i = 0; i < 2; i++)
		fails(&w, 1, "Memory access fault by GPU node-2. Reason: Page not present");
	assert_false(drained(&w));
	world_done(&w);
}

static void long_ago_is_over(void **state)
{
	struct world w;

	begin(&w);
	fails(&w, 1, hang);
	w.core->config.history_us = S;
	world_run(&w, 5 * S);
	fails(&w, 1, hang);
	assert_false(drained(&w));
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_cordons),
		cmocka_unit_test(given_back_it_begins_anew),
		cmocka_unit_test(another_drain_forgives_nothing),
		cmocka_unit_test(another_device_does_not),
		cmocka_unit_test(what_may_be_the_programs_does_not),
		cmocka_unit_test(long_ago_is_over),
	};

	return cmocka_run_group_tests_name("dcore/device", tests, NULL, NULL);
}
