/* What moe-namespace answers, read by its supervisor. */
#include <errno.h>
#include <string.h>

#include "agent/core/stepd/namespace_words.h"
#include "lib/base/util.h"
#include "tests/unit/unit.h"

static void expect(const char *line, const char *wanted, int error)
{
	int e = -1;
	_cleanup_(mo_freep) char *seen = namespace_problem(line, strlen(line), &e);

	assert_int_equal(e, error);
	if (wanted)
		assert_string_equal(seen, wanted);
	else
		assert_null(seen);
}

static void test_answers(void **state)
{
	expect("ok", NULL, 0);
	expect("1 make a mount namespace",
	       "could not make a mount namespace: Operation not permitted", EPERM);
	expect("30 make the file /run/moe-step",
	       "could not make the file /run/moe-step: Read-only file system", EROFS);
}

/* Only then does a step go on without walls. */
static void test_refusal(void **state)
{
	assert_string_equal(namespace_refusal(true, ENOENT), "image");
	assert_string_equal(namespace_refusal(true, ELOOP), "image");
	assert_string_equal(namespace_refusal(true, EIO), "namespace");
	assert_string_equal(namespace_refusal(true, ENOSPC), "namespace");
	assert_string_equal(namespace_refusal(true, 0), "namespace");
	assert_string_equal(namespace_refusal(false, ENOENT), "namespace");
}

static void test_denied(void **state)
{
	const char *denied = "1 " NAMESPACE_MAKE, *other = "1 make the file /run/moe-step";

	assert_true(namespace_denied(denied, strlen(denied)));
	assert_false(namespace_denied(other, strlen(other)));
	assert_false(namespace_denied(denied, strlen(denied) - 1));
	assert_false(namespace_denied("", 0));
	assert_false(namespace_denied("ok", 2));
}

static void test_not_answers(void **state)
{
	static const char *const lies[] = { "o",         "okay",
					    "ok ",       "1",
					    "0 nothing", "-1 make a file",
					    "99999 x",   "x make",
					    " make",     "1 \xff\xfe make it" };

	expect("", "moe-namespace ended without a word", EIO);
	for (size_t i = 0; i < ELEMENTSOF(lies); i++)
		expect(lies[i], "moe-namespace answered what it never says", EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_not_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
