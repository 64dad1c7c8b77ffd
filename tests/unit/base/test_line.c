/* What of a printed line is text. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/base/line.h"
#include "lib/base/util.h"

static void test_plain(void **state)
{
	static const struct {
		const char *line, *plain;
	} t[] = {
		{ "", "" },
		{ "step: 1  loss: 8.0", "step: 1  loss: 8.0" },
		{ "\x1b[31m\x1b[1m"
		  "ERROR\x1b[0m: no",
		  "ERROR: no" },
		{ "\x1b]0;title\x07"
		  "text",
		  "text" },
		{ "\x1b]8;;http://x\x1b\\text", "text" },
		{ "\x1b(B"
		  "text",
		  "text" },
		{ " 25%|#  |\r 26%|#  |", " 25%|#  |  26%|#  |" },
		{ "two\nlines", "two lines" },
		{ "cut \x1b", "cut " },
		{ "cut \x1b[", "cut " },
		{ "cut \x1b[31", "cut " },
		{ "cut \x1b]8;;", "cut " },
	};

	for (size_t i = 0; i < ELEMENTSOF(t); i++) {
		_cleanup_(mo_freep) char *plain = mo_line_plain_dup(t[i].line);

		assert_string_equal(plain, t[i].plain);
	}
}

/* A NUL within, and the text in its own place. */
static void test_in_place(void **state)
{
	char line[] = { 'a', 0, 0x1b, '[', '1', 'm', 'b' };

	assert_int_equal(mo_line_plain(line, sizeof(line), line), 3);
	assert_memory_equal(line, "a b", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_plain),
					    cmocka_unit_test(test_in_place) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
