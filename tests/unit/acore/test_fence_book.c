/* What has to be written of the fence: a line, the whole of it, nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "agent/core/agent/fence_book.h"

static int64_t attempt_of(const struct fence_book *b, int64_t job)
{
	for (size_t i = 0; i < b->file.n_jobs; i++)
		if (b->file.jobs[i].job == job)
			return b->file.jobs[i].attempt;
	return 0;
}

static void test_lines(void **state)
{
	struct fence_book b;

	fence_book_init(&b);
	assert_int_equal(fence_book_raise(&b, 0, 0, 3), FENCE_WHOLE); /* an epoch is synced */
	fence_book_wrote(&b, 0);
	assert_int_equal(fence_book_raise(&b, 7, 1, 3), FENCE_LINE);
	fence_book_wrote(&b, 4);
	assert_int_equal(fence_book_raise(&b, 7, 1, 3), FENCE_NOTHING);
	assert_int_equal(fence_book_raise(&b, 7, 0, 2), FENCE_NOTHING); /* nothing goes down */
	assert_int_equal(attempt_of(&b, 7), 1);
	assert_int_equal(b.file.epoch, 3);
	assert_int_equal(fence_book_raise(&b, 7, 2, 4), FENCE_WHOLE); /* both at once */
	fence_book_wrote(&b, 0);
	assert_int_equal(attempt_of(&b, 7), 2);
	fence_book_done(&b);
}

/* What could not be written is asked for again, with whatever comes next, and never as a line
 * alone. */
static void test_failures(void **state)
{
	struct fence_book b;

	fence_book_init(&b);
	assert_int_equal(fence_book_raise(&b, 7, 1, 0), FENCE_LINE);
	assert_int_equal(fence_book_raise(&b, 7, 1, 0), FENCE_WHOLE);
	assert_int_equal(fence_book_raise(&b, 8, 1, 0), FENCE_WHOLE);
	assert_int_equal(fence_book_raise(&b, 0, 0, 5), FENCE_WHOLE);
	assert_int_equal(fence_book_raise(&b, 0, 0, 5), FENCE_WHOLE);
	fence_book_wrote(&b, 0);
	assert_int_equal(fence_book_raise(&b, 8, 1, 5), FENCE_NOTHING);
	fence_book_done(&b);
}

/* A long log is folded into the file; the number of jobs has an end, and the newest stay. */
static void test_bounds(void **state)
{
	struct fence_book b;
	int whole = 0;

	fence_book_init(&b);
	fence_book_read(&b, 1, 1);
	for (int64_t job = 2; job <= 5000; job++) {
		enum fence_write what = fence_book_raise(&b, job, 1, 0);

		whole += what == FENCE_WHOLE;
		fence_book_wrote(&b, what == FENCE_WHOLE ? 0 : b.log_bytes + 64);
	}
	assert_int_equal(whole, 1);
	assert_int_equal(attempt_of(&b, 1), 0);
	assert_int_equal(attempt_of(&b, 5000), 1);
	fence_book_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests_name("acore/fence_book", tests, NULL, NULL);
}
