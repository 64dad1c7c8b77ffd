/* A file of TensorBoard that cannot be grown says why. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tfevents.h"
#include "lib/base/fd.h"

static void test_removed(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	char dir[] = "/tmp/tfevents-test-XXXXXX";
	struct json_object *items =
		json_tokener_parse("[{\"attempt\": 1, \"iteration\": 1, \"loss\": 2.5}]");

	assert_non_null(mkdtemp(dir));

	struct tfevents t = { .dir = dir };

	assert_int_equal(tfevents_add(&t, items, &err), 0);
	assert_int_equal(tfevents_add(&t, items, &err), 0);
	assert_int_equal(t.n_samples, 2);
	assert_int_equal(mo_rm_rf(dir), 0);
	assert_int_equal(tfevents_add(&t, items, &err), -ENOENT);
	assert_non_null(strstr(err.text, "attempt-1/"));
	assert_non_null(strstr(err.text, strerror(ENOENT)));
	json_object_put(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_removed) };

	return cmocka_run_group_tests_name("tfevents", tests, NULL, NULL);
}
