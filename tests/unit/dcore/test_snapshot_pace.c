/* When the state is written down whole, in virtual time. */
#include "tests/unit/unit.h"

#include "daemon/core/rules/snapshot_pace.h"

#define S 1000000LL
#define N SNAPSHOT_RECORDS_MIN

static void many_records_or_many_bytes(void **state)
{
	struct snapshot_pace p = { 0 };

	assert_false(snapshot_due(&p, N - 1, S));
	assert_true(snapshot_due(&p, N, S));
	snapshot_stored(&p, SNAPSHOT_BYTES_MIN - 1);
	assert_false(snapshot_due(&p, 1, S));
	snapshot_stored(&p, 1);
	assert_true(snapshot_due(&p, 1, S));
}

static void not_before_as_many_bytes_as_the_last_one_had(void **state)
{
	struct snapshot_pace p = { 0 };

	snapshot_began(&p, S);
	snapshot_adopted(&p, 1000);
	snapshot_stored(&p, 999);
	assert_false(snapshot_due(&p, N, S));
	snapshot_stored(&p, 1);
	assert_true(snapshot_due(&p, N, S));
}

static void one_at_a_time_and_what_comes_meanwhile_counts_for_the_next(void **state)
{
	struct snapshot_pace p = { 0 };

	snapshot_stored(&p, 5000);
	snapshot_began(&p, S);
	assert_false(snapshot_due(&p, N, S));
	snapshot_stored(&p, 600);
	snapshot_adopted(&p, 500);
	assert_int_equal(p.bytes_since, 600);
	assert_true(snapshot_due(&p, N, S));
}

static void a_failure_waits_a_minute_and_for_no_more_bytes(void **state)
{
	struct snapshot_pace p = { .bytes = 1000, .bytes_since = 1000 };

	assert_true(snapshot_due(&p, N, S));
	snapshot_began(&p, S);
	snapshot_failed(&p, 2 * S);
	assert_false(snapshot_due(&p, N, 2 * S + SNAPSHOT_AGAIN_US - 1));
	assert_true(snapshot_due(&p, N, 2 * S + SNAPSHOT_AGAIN_US));
}

static void one_that_does_not_end_is_ended_once(void **state)
{
	struct snapshot_pace p = { 0 };

	assert_false(snapshot_overdue(&p, 2 * SNAPSHOT_LIMIT_US)); /* there is none */
	snapshot_began(&p, S);
	assert_false(snapshot_overdue(&p, S + SNAPSHOT_LIMIT_US));
	assert_true(snapshot_overdue(&p, S + SNAPSHOT_LIMIT_US + 1));
	assert_false(snapshot_overdue(&p, S + SNAPSHOT_LIMIT_US + 2));
	assert_false(snapshot_due(&p, N, S + SNAPSHOT_LIMIT_US + 2)); /* it is not gone yet */
	snapshot_failed(&p, 2 * SNAPSHOT_LIMIT_US);
	assert_false(snapshot_overdue(&p, 4 * SNAPSHOT_LIMIT_US));
	snapshot_began(&p, 4 * SNAPSHOT_LIMIT_US);
	assert_false(p.late); /* the next one has its own time */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_records_or_many_bytes),
		cmocka_unit_test(not_before_as_many_bytes_as_the_last_one_had),
		cmocka_unit_test(one_at_a_time_and_what_comes_meanwhile_counts_for_the_next),
		cmocka_unit_test(a_failure_waits_a_minute_and_for_no_more_bytes),
		cmocka_unit_test(one_that_does_not_end_is_ended_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
