/* Lists of zeros and ones in Python's words: how many layers at the beginning have no experts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lib/recipe/layer_pattern.h"

static void test_patterns(void **state)
{
	static const struct {
		const char *text;
		int64_t zeros; /* -1: it is none */
	} cases[] = {
		{ "([0]*1+[1]*26)", 1 },
		{ "([0]*3+[1]*58)", 3 },
		{ "[1]*48", 0 },
		{ "[0, 0, 1,1]", 2 },
		{ "[0]*2 + [1] * 22", 2 },
		{ "([0] + [1]*2)", 1 },
		{ "[0,1]*2", -1 },
		{ "[1]*2+[0]*2", -1 },
		{ "[0]*4", -1 },
		{ "[2]*4", -1 },
		{ "", -1 },
		{ "[", -1 },
		{ "[]", -1 },
		{ "[1", -1 },
		{ "[1]*", -1 },
		{ "([1]", -1 },
		{ "[1])", -1 },
		{ "[1]*99999999999999999999", -1 },
		{ "[1]*9999+[1]*9999", -1 },
		{ "[1] and more", -1 },
		{ "__import__('os')", -1 },
		{ "[-1]", -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int64_t zeros = -1;
		bool ok = layer_pattern(cases[i].text, &zeros);

		if ((ok ? zeros : -1) != cases[i].zeros)
			fail_msg("%s: %d %lld", cases[i].text, ok, (long long)zeros);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_patterns) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
