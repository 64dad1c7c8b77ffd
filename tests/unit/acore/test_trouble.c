/* What of the agent's trouble with its controller is logged. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "agent/core/agent/trouble.h"

#define S 1000000LL

static void each_kind_once_and_again_when_it_changes(void **state)
{
	struct trouble t = { 0 };

	assert_true(trouble_say(&t, "refused after 12 ms", S));
	for (int i = 0; i < 1000; i++)
		/* how long it took is no news, for ever */
		assert_false(trouble_say(&t, "refused after 3 ms", S + i * S));
	/* the same status, another trouble */
	assert_true(trouble_say(&t, "the certificate has expired", 1001 * S));
	assert_true(trouble_say(&t, "refused after 3 ms", 1002 * S));
	trouble_over(&t);
	assert_true(trouble_say(&t, "refused after 3 ms", 1003 * S));
	trouble_over(&t);
}

static void two_that_take_turns_fill_no_log(void **state)
{
	struct trouble t = { 0 };
	int said = 0;

	/* ten minutes */
	for (int i = 0; i < 600; i++)
		said += trouble_say(&t, i % 2 ? "refused" : "no route", i * S);
	assert_in_range(said, 15, 22);
	trouble_over(&t);
	said = 0;
	/* and none that is never the same */
	for (int i = 0; i < 600; i++) {
		char text[32];

		snprintf(text, sizeof(text), "request %d failed", i);
		said += trouble_say(&t, text, i * S);
	}
	assert_in_range(said, TROUBLES, 11 * TROUBLES);
	trouble_over(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_once_and_again_when_it_changes),
		cmocka_unit_test(two_that_take_turns_fill_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
