/* The agent's patience with the controller: lost hellos, late welcomes, refused connections; and
 * what is urgent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/stepd/stepd_core.h"
#include "agent/core/agent/agent_core.h"

#define SECOND 1000000LL

struct bed {
	struct agent_core *core;
	int64_t now;
	struct agent_out out;
};

static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));

	b->core = agent_core_new("n1", "boot-1", "inst-1");
	b->now = SECOND;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	agent_out_done(&b->out);
	agent_core_free(b->core);
	free(b);
	return 0;
}

/* How many effects of this type the event had. */
static int give(struct bed *b, const struct agent_event *e, int effect)
{
	int n = 0;

	agent_core_decide(b->core, e, b->now, &b->out);
	for (size_t i = 0; i < b->out.n_effects; i++)
		n += b->out.effects[i].type == effect;
	agent_out_done(&b->out);
	return n;
}

static int welcome(struct bed *b)
{
	struct agent_welcome w = { .epoch = 3, .beat_ms = 1000 };

	return give(b, &(struct agent_event){ .type = AE_WELCOME, .welcome = &w }, AX_SYNC);
}

static int refused(struct bed *b)
{
	return give(b, &(struct agent_event){ .type = AE_NO_ANSWER, .ok = true }, AX_HELLO);
}

/* To the next deadline; hellos sent there. */
static int tick(struct bed *b)
{
	b->now = agent_core_deadline(b->core);
	return give(b, &(struct agent_event){ .type = AE_TICK }, AX_HELLO);
}

/* The hello that is out is never answered: from its sending to the next one. */
static int64_t lost(struct bed *b, int64_t *ret_pause)
{
	int64_t sent = b->now, patience;

	assert_int_equal(tick(b), 0);
	patience = b->now - sent;
	assert_int_equal(tick(b), 1);
	*ret_pause = b->now - sent - patience;
	return patience;
}

static void start(struct bed *b)
{
	assert_int_equal(give(b, &(struct agent_event){ .type = AE_STARTED }, AX_HELLO), 1);
}

static void a_lost_hello_costs_two_seconds_and_each_further_one_twice_that(void **state)
{
	static const int64_t want[] = { 2, 4, 8, 10, 10 };
	struct bed *b = *state;
	int64_t pause;

	start(b);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(lost(b, &pause), want[i] * SECOND);
		assert_in_range(pause, 1, 1250000);
	}
	assert_int_equal(welcome(b), 1);
	assert_int_equal(refused(b), 0); /* the sync: the link is lost again */
	assert_int_equal(tick(b), 1);
	assert_int_equal(lost(b, &pause), 2 * SECOND);
}

/* Who refuses is not overloaded: the patience of the time before is no measure for the next
 * controller. */
static void a_refusal_ends_patience(void **state)
{
	struct bed *b = *state;
	int64_t pause;

	start(b);
	for (int i = 0; i < 3; i++)
		lost(b, &pause);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(refused(b), 0);
		assert_int_equal(tick(b), 1);
	}
	assert_int_equal(lost(b, &pause), 2 * SECOND);
}

static void a_late_welcome_is_taken(void **state)
{
	struct bed *b = *state;

	start(b);
	assert_int_equal(tick(b), 0); /* given up; the next one has not left */
	assert_int_equal(welcome(b), 1);
	assert_int_equal(welcome(b), 0);
	assert_int_equal(tick(b), 0); /* no hello beside the sync */
}

static void what_is_urgent(void **state)
{
	struct note n;

	mo_desc_init(&note_desc, &n);
	n.kind = NOTE_EXIT;
	assert_true(note_urgent(&n));
	n.cause = mo_strdup("signalled");
	assert_true(note_urgent(&n));
	/* by its supervisor: gone follows, which is urgent and carries it */
	mo_str_set(&n.cause, "killed");
	assert_false(note_urgent(&n));
	n.kind = NOTE_GONE;
	assert_true(note_urgent(&n));
	n.kind = NOTE_UNKILLABLE;
	assert_true(note_urgent(&n));
	n.kind = NOTE_SAMPLE;
	assert_false(note_urgent(&n));
	mo_desc_done(&note_desc, &n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_lost_hello_costs_two_seconds_and_each_further_one_twice_that, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_refusal_ends_patience, setup, teardown),
		cmocka_unit_test_setup_teardown(a_late_welcome_is_taken, setup, teardown),
		cmocka_unit_test(what_is_urgent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
