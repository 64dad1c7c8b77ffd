/* A recipe as JSON: what is a number, a boolean or null there stays one; everything else is a
 * string; and it reads back as the same recipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/util.h"
#include "lib/recipe/json.h"

static void expect(const char *yaml, const char *json)
{
	_cleanup_(mo_freep) char *have = recipe_json(yaml, strlen(yaml));

	if (!json) {
		assert_null(have);
		return;
	}
	assert_non_null(have);
	assert_string_equal(have, json);
}

static void test_scalars(void **state)
{
	expect("a: 1\nb: -2.5e-3\nc: true\nd: null\ne: ~\nf:\n",
	       "{\"a\":1,\"b\":-2.5e-3,\"c\":true,\"d\":null,\"e\":null,\"f\":null}");
	expect("a: 007\nb: 0x10\nc: .5\nd: 1.\ne: 1e\ng: .inf\n",
	       "{\"a\":\"007\",\"b\":\"0x10\",\"c\":\".5\",\"d\":\"1.\",\"e\":\"1e\",\"g\":\"."
	       "inf\"}");
	expect("a: '12'\nb: \"true\"\nc: yes\n", "{\"a\":\"12\",\"b\":\"true\",\"c\":\"yes\"}");
	expect("a: \"x\\ty \\\"q\\\" \\\\\"\nb: |\n  two\n  lines\n",
	       "{\"a\":\"x\\ty \\\"q\\\" \\\\\",\"b\":\"two\\nlines\\n\"}");
}

static void test_collections(void **state)
{
	expect("a: {}\nb: []\nc: [x, {y: 1}, [2]]\n",
	       "{\"a\":{},\"b\":[],\"c\":[\"x\",{\"y\":1},[2]]}");
	expect("{\"a\": {\"b\": [1, \"1\"]}}", "{\"a\":{\"b\":[1,\"1\"]}}");
	expect("a: [", NULL);
	expect("a: 1\na: 2\n", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scalars),
					    cmocka_unit_test(test_collections) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
