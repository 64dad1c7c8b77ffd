/* cli/drift.h: the plan of a run's recipe against what was measured; silent where too little is known. */
#include <string.h>
#include "tests/unit/unit.h"

#include "cli/drift.h"

#define RUN "{\"anchor\":1,\"runs\":[{\"recipe\":{\"recipe\":1,\"name\":\"x\",\"engine\":{\"kind\":\"megatron-lm\",\"workdir\":\"/x\"},\"steps\":100%s," \
	    "\"batch\":{\"seq\":4096,\"micro\":1,\"global\":64},\"parallelism\":{\"pp\":4}},\"measured\":{\"step_time_s\":1000.0,\"steps\":%d,\"memory_gb\":%s}}]}"
#define MODEL ",\"model\":\"llama3-8b\",\"cluster\":{\"gpus\":8,\"gpu\":\"mi300x\"}"

static char *text_of(const char *model, int steps, const char *memory)
{
	_cleanup_(mo_freep) char *text = mo_printf(RUN, model, steps, memory);
	struct json_object *doc = json_tokener_parse(text);

	assert_non_null(doc);
	char *ret = drift_text(doc, "j-7");

	json_object_put(doc);
	return ret;
}

static void test_drift(void **state)
{
	_cleanup_(mo_freep) char *both = text_of(MODEL, 50, "1.0"), *no_memory = text_of(MODEL, 400, "null");

	assert_non_null(both);
	assert_non_null(strstr(both, "step 1e+03 s, planned "));
	assert_non_null(strstr(both, "memory 1.0 GB, planned "));
	assert_non_null(strstr(both, "(-9"));
	assert_non_null(strstr(both, "bubble 8.6 % planned"));        /* 3 / (32 + 3) */
	assert_non_null(strstr(both, "moectl report j-7 --anchor"));
	assert_non_null(no_memory);
	assert_null(strstr(no_memory, "memory"));
}

static void test_silent(void **state)
{
	assert_null(text_of(MODEL, 49, "1.0"));
	assert_null(text_of(",\"cluster\":{\"gpus\":8}", 50, "1.0"));
	assert_null(drift_text(NULL, "j-1"));
	struct json_object *broken = json_tokener_parse("{\"runs\":[{\"recipe\":3,\"measured\":{\"step_time_s\":1,\"steps\":99}}]}");

	assert_null(drift_text(broken, "j-1"));
	json_object_put(broken);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_drift), cmocka_unit_test(test_silent) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
