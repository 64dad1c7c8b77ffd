/* Labels: which are some, and which are asked for. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/model/labels.h"

static void names_and_values(void **state)
{
	static const char *const good[] = { "team", "7", "a.b_c/d@e:f+g-h" };
	static const char *const bad[] = { "", "-a", "a b", "a,b", "a=b", "ä", "a\n" };
	char longest[LABEL_BYTES_MAX + 2];

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		assert_true(label_valid(good[i]));
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_false(label_valid(bad[i]));
	memset(longest, 'a', sizeof(longest));
	longest[LABEL_BYTES_MAX + 1] = 0;
	assert_false(label_valid(longest));
	longest[LABEL_BYTES_MAX] = 0;
	assert_true(label_valid(longest));
}

static void what_is_asked_for(void **state)
{
	struct kv labels[] = { { (char *)"team", (char *)"vision" },
			       { (char *)"study", (char *)"lr" } };
	static const char *const has[] = { "team", "team=vision", "study=lr,team=vision",
					   "team,study=lr" },
				 *const lacks[] = { "tea",          "teams",      "team=vis",
						    "team=visions", "vision",     "team=lr",
						    "team,owner",   "owner,team", "study,team=lr" },
				 *const bad[] = { "",  "=",     "team=", "=vision", "team,",
						  ",", "a=b=c", "a b",   "team,," };

	for (size_t i = 0; i < ELEMENTSOF(has); i++) {
		assert_true(labels_wanted_valid(has[i]));
		assert_true(labels_match(labels, ELEMENTSOF(labels), has[i]));
		assert_false(labels_match(labels, 0, has[i]));
	}
	for (size_t i = 0; i < ELEMENTSOF(lacks); i++) {
		assert_true(labels_wanted_valid(lacks[i]));
		assert_false(labels_match(labels, ELEMENTSOF(labels), lacks[i]));
	}
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_false(labels_wanted_valid(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_values),
		cmocka_unit_test(what_is_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
