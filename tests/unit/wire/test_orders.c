/* Orders to scan a checkpoint directory, between agents and controllers of this version and of
 * those before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/model/orders.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

struct example {
	int order;
	int64_t id, number;
	const char *text;
};

/* number, text: what the agents and controllers of before know it by, on the wire */
static const struct example examples[] = {
	{ ORDER_SCAN, 1, 1, "\"attempt\":1," },
	{ ORDER_SCAN, 7, 7, "\"attempt\":7," },
	{ ORDER_VERIFY, 0, -(1LL << 56) - 1, "\"attempt\":-72057594037927937," },
	{ ORDER_VERIFY, 3 * 32 + 16, -(1LL << 56) - 113, "\"attempt\":-72057594037928049," },
	{ ORDER_PRUNE, 0, -1, "\"attempt\":-1," },
	{ ORDER_PRUNE, MO_FIT_ITERATION, -1 - MO_FIT_ITERATION, "\"attempt\":-9007199254740993," },
	{ ORDER_LAST_SCAN, 2, -(1LL << 55) - 3, "\"attempt\":-36028797018963971," },
};

static bool whole(int order)
{
	return order == ORDER_SCAN || order == ORDER_LAST_SCAN;
}

/* What the peer reads of it; without the new keys when it is of before. */
static void over_the_wire(const struct mo_desc *d, void *obj, const char *expected, bool named)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_encode(d, obj, &b);
	assert_non_null(strstr(b.data, expected));
	assert_int_equal(strstr(b.data, "\"order\"") != NULL, named);
	assert_int_equal(strstr(b.data, "\"id\"") != NULL, named);
	mo_desc_done(d, obj);
	assert_int_equal(wire_decode(d, b.data, b.len, true, obj, NULL), 0);
}

static void ordered(const struct example *x, struct sync_reply *ret)
{
	struct command *c;

	mo_desc_init(&sync_reply_desc, ret);
	c = MO_ADD(ret, commands, &command_desc);
	c->kind = CMD_SCAN;
	c->job = 3;
	c->order = x->order;
	c->id = x->id;
	c->attempt = whole(x->order) ? x->id : MO_NONE;
	orders_to_wire(ret);
}

static void assert_order(const struct example *x, int order, int64_t id, int64_t attempt)
{
	assert_int_equal(order, x->order);
	assert_int_equal(id, x->id);
	assert_int_equal(attempt, whole(x->order) ? x->id : MO_NONE);
}

static void answer(const struct command *c, struct agent_sync *ret)
{
	struct scan_result *s;

	mo_desc_init(&agent_sync_desc, ret);
	s = MO_ADD(ret, scans, &scan_result_desc);
	s->job = c->job;
	s->attempt = c->attempt;
	s->order = c->order;
	s->id = c->id;
	s->free_bytes = 5;
}

static void both_know_orders(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(examples); i++) {
		const struct example *x = &examples[i];
		struct sync_reply r;
		struct agent_sync s;

		ordered(x, &r);
		over_the_wire(&sync_reply_desc, &r, x->text, true);
		orders_from_wire(&r);
		assert_order(x, r.commands[0].order, r.commands[0].id, r.commands[0].attempt);
		answer(&r.commands[0], &s);
		answers_to_wire(&s, true, true);
		assert_int_equal(s.scans[0].free_bytes, 5);
		over_the_wire(&agent_sync_desc, &s, x->text, true);
		answers_from_wire(&s);
		assert_order(x, s.scans[0].order, s.scans[0].id, s.scans[0].attempt);
		mo_desc_done(&sync_reply_desc, &r);
		mo_desc_done(&agent_sync_desc, &s);
	}
}

/* It echoes the number and knows nothing else. */
static void an_agent_of_before(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(examples); i++) {
		const struct example *x = &examples[i];
		struct sync_reply r;
		struct agent_sync s;

		ordered(x, &r);
		assert_int_equal(r.commands[0].attempt, x->number);
		r.commands[0].order = -1;
		r.commands[0].id = MO_NONE;
		answer(&r.commands[0], &s);
		over_the_wire(&agent_sync_desc, &s, x->text, false);
		answers_from_wire(&s);
		assert_order(x, s.scans[0].order, s.scans[0].id, s.scans[0].attempt);
		mo_desc_done(&sync_reply_desc, &r);
		mo_desc_done(&agent_sync_desc, &s);
	}
}

/* It sends the number alone, and refuses keys that it does not know. A last scan it orders as a
 * scan. */
static void a_controller_of_before(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(examples); i++) {
		const struct example *x = &examples[i];
		struct sync_reply r;
		struct agent_sync s;

		ordered(x, &r);
		r.commands[0].order = -1;
		r.commands[0].id = MO_NONE;
		over_the_wire(&sync_reply_desc, &r, x->text, false);
		orders_from_wire(&r);
		assert_order(x, r.commands[0].order, r.commands[0].id, r.commands[0].attempt);
		answer(&r.commands[0], &s);
		answers_to_wire(&s, false, false);
		assert_int_equal(s.scans[0].free_bytes, MO_NONE);
		over_the_wire(&agent_sync_desc, &s, x->text, false);
		assert_int_equal(s.scans[0].attempt, x->number);
		mo_desc_done(&sync_reply_desc, &r);
		mo_desc_done(&agent_sync_desc, &s);
	}
}

static void strange_orders_are_none(void **state)
{
	static const struct {
		int order;
		int64_t id, attempt;
	} strange[] = {
		{ -1, MO_NONE, MO_NONE },       { -1, MO_NONE, INT64_MAX },
		{ -1, MO_NONE, 1LL << 55 },     { -1, MO_NONE, MO_NONE + 1 },
		{ ORDER_VERIFY, -1, 1 },        { ORDER_PRUNE, INT64_MAX, 1 },
		{ ORDER_SCAN, MO_NONE + 1, 1 }, { ORDER_SCAN, MO_NONE, MO_NONE },
	};

	for (size_t i = 0; i < ELEMENTSOF(strange); i++) {
		struct scan_result s;

		mo_desc_init(&scan_result_desc, &s);
		s.order = strange[i].order;
		s.id = strange[i].id;
		s.attempt = strange[i].attempt;
		answer_from_wire(&s);
		assert_int_equal(s.order, -1);
		assert_int_equal(s.id, MO_NONE);
		assert_int_equal(s.attempt, MO_NONE);
	}
}

/* Other commands keep their attempt. */
static void a_launch_is_no_look(void **state)
{
	struct sync_reply r;

	mo_desc_init(&sync_reply_desc, &r);
	MO_ADD(&r, commands, &command_desc)->attempt = 4;
	orders_to_wire(&r);
	orders_from_wire(&r);
	assert_int_equal(r.commands[0].attempt, 4);
	assert_int_equal(r.commands[0].order, -1);
	mo_desc_done(&sync_reply_desc, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_know_orders),       cmocka_unit_test(an_agent_of_before),
		cmocka_unit_test(a_controller_of_before), cmocka_unit_test(strange_orders_are_none),
		cmocka_unit_test(a_launch_is_no_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
