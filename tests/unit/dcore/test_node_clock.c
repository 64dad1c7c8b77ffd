/* What a node's clock says, in core time: from messages that are late, of clocks that drift, stand
 * and begin anew. */
#include "tests/unit/dcore/world.h"
#include "tests/unit/dcore/world_inner.h"

#include "daemon/core/state/heard.h"
#include "daemon/core/state/node_clock.h"

#define US 1LL
#define MS (1000 * US)
#define AT (1000 * S)

/* The clock says `clock` when it is `now`, in a message that takes so long. */
static void hear(struct node_clock *c, int64_t clock, int64_t now, int64_t way)
{
	node_clock_hear(c, clock * 1000, now + way);
}

static void is_at(const struct node_clock *c, int64_t clock, int64_t now)
{
	int64_t error = -1, at = node_clock_at(c, clock * 1000, &error);

	assert_true(at != MO_NONE);
	assert_true(error >= 0 && at - error <= now && now <= at + error);
}

static void few_messages_say_nothing(void **state)
{
	struct node_clock c = { 0 };
	int64_t error;

	for (int i = 0; i < 4; i++) {
		assert_true(node_clock_at(&c, 7 * S * 1000, &error) == MO_NONE);
		hear(&c, (7 + i) * S, AT + i * S, i ? MS : 9 * S);
	}
	is_at(&c, 7 * S, AT);
	assert_true(node_clock_at(&c, MO_NONE, &error) == MO_NONE);
	node_clock_hear(&c, MO_NONE, AT + 5 * S);
	is_at(&c, 7 * S, AT);
}

static void the_fastest_message_counts(void **state)
{
	struct node_clock c = { 0 };

	for (int i = 0; i < 100; i++)
		hear(&c, i * S, AT + i * S, i % 5 ? 5 * S : 2 * MS);
	is_at(&c, 99 * S, AT + 99 * S);
	is_at(&c, 0, AT);
}

/* 500 us in each second: of what was long ago the error says so. */
static void a_clock_that_drifts_is_followed(void **state)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		struct node_clock c = { 0 };

		for (int i = 0; i < 1000; i++)
			hear(&c, i * (S + sign * 500), AT + i * S, i % 7 ? 3 * MS : 300 * MS);
		is_at(&c, 999 * (S + sign * 500), AT + 999 * S);
		is_at(&c, 900 * (S + sign * 500), AT + 900 * S);
	}
}

/* For some time nobody knows; not for hours. */
static void a_clock_that_stood_is_right_again(void **state)
{
	struct node_clock c = { 0 };

	for (int i = 0; i < 40; i++)
		hear(&c, i * S, AT + i * S, MS);
	for (int i = 40; i < 72; i++)
		hear(&c, i * S, AT + (i + 30) * S, MS);
	is_at(&c, 71 * S, AT + 101 * S);
}

/* Behind a silence one late message does not make the rest late, and the error says what a drift
 * may have been. */
static void a_late_message_behind_a_silence(void **state)
{
	struct node_clock c = { 0 };

	for (int i = 0; i < 20; i++)
		hear(&c, i * S, AT + i * S, MS);
	hear(&c, 80 * S, AT + 80 * S, 9 * S);
	is_at(&c, 80 * S, AT + 80 * S);
	is_at(&c, 19 * S, AT + 19 * S);
}

/* Of the first node: what its clock said 1 s ago. */
static bool is_known(struct world *w)
{
	int64_t error, at = node_clock_time(core_state(w->core), "n0",
					    (w->now - S - w->toys[0].clock_us) * 1000, &error);

	assert_true(at == MO_NONE || (at - error <= w->now - S && w->now - S <= at + error));
	return at != MO_NONE;
}

static void a_clock_is_of_one_hello_and_one_core_time(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	w.toys[0].clock_us = w.now - 50 * S;
	world_run(&w, 10 * S);
	assert_true(is_known(&w));
	w.toys[0].clock_us = w.now;
	world_reboot(&w, 0);
	world_beat(&w, 0); /* its first word counts, not its hello */
	assert_false(is_known(&w));
	world_run(&w, 10 * S);
	assert_true(is_known(&w));
	core_live_shift(w.core, 100 * S);
	assert_false(is_known(&w));
	world_done(&w);
}

/* A message that comes again, or later than one that was sent behind it: it does not live by that,
 * and its clock is not taken to be that late. */
static void what_is_old_says_nothing_of_now(void **state)
{
	struct agent_sync old;
	struct world w;

	world_init(&w, 2, 1);
	w.toys[0].clock_us = w.now - 50 * S;
	world_run(&w, 10 * S);
	toy_sync(&w, &w.toys[0], &old);
	world_run(&w, S);
	w.toys[0].deaf = true;
	world_run(&w, 5 * S);
	assert_int_equal(world_node(&w, 0)->state, NODE_SUSPECT);
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){ .message = &old } });
	assert_int_equal(world_node(&w, 0)->state, NODE_SUSPECT);
	old.mono_ns += 2 * S * 1000; /* sent after the last that was heard, and late */
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){ .message = &old } });
	assert_int_equal(world_node(&w, 0)->state, NODE_UP);
	mo_desc_done(&agent_sync_desc, &old);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_messages_say_nothing),
		cmocka_unit_test(the_fastest_message_counts),
		cmocka_unit_test(a_clock_that_drifts_is_followed),
		cmocka_unit_test(a_clock_that_stood_is_right_again),
		cmocka_unit_test(a_late_message_behind_a_silence),
		cmocka_unit_test(a_clock_is_of_one_hello_and_one_core_time),
		cmocka_unit_test(what_is_old_says_nothing_of_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
