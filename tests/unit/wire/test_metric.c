/* Prometheus' text: labels with any bytes, numbers that are none, what is not known. */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "lib/wire/metric.h"

static const struct metric heat = { "moe_heat_celsius", METRIC_GAUGE, "How hot." };

static void test_samples(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	metric_begin(&b, &heat);
	metric_add(&b, &heat, 71.5, "node", "n0", "gpu", "3", NULL);
	metric_add(&b, &heat, MO_NONE_F, "node", "n1", NULL);
	metric_add(&b, &heat, 1e15, "text", "a \"b\" \\ c\nd", NULL);
	metric_add(&b, &heat, NAN, "empty", NULL, NULL);
	metric_add(&b, &heat, -INFINITY, NULL);
	assert_string_equal(b.data, "# HELP moe_heat_celsius How hot.\n"
				    "# TYPE moe_heat_celsius gauge\n"
				    "moe_heat_celsius{node=\"n0\",gpu=\"3\"} 71.5\n"
				    "moe_heat_celsius{text=\"a \\\"b\\\" \\\\ c\\nd\"} "
				    "1e+15\n"
				    "moe_heat_celsius{empty=\"\"} NaN\n"
				    "moe_heat_celsius -Inf\n");
}

static void test_parts(void **state)
{
	static const struct metric took = { "moe_took_seconds", METRIC_HISTOGRAM, "Time." };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	metric_begin(&b, &took);
	metric_add_part(&b, &took, "_bucket", 2, "le", "+Inf", NULL);
	metric_add_part(&b, &took, "_sum", 0.25, NULL);
	assert_non_null(strstr(b.data, "# TYPE moe_took_seconds histogram\n"
				       "moe_took_seconds_bucket{le=\"+Inf\"} 2\n"
				       "moe_took_seconds_sum 0.25\n"));
	mo_buf_reset(&b);
	metric_one(&b, &heat, MO_NONE_F);
	assert_string_equal(b.data, "# HELP moe_heat_celsius How hot.\n"
				    "# TYPE moe_heat_celsius gauge\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
