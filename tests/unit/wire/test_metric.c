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
	metric_add(&b, &heat, 71.5, METRIC_LABELS("node", "n0", "gpu", "3"));
	metric_add(&b, &heat, MO_NONE_F, METRIC_LABELS("node", "n1"));
	metric_add(&b, &heat, 1e15, METRIC_LABELS("text", "a \"b\" \\ c\nd"));
	metric_add(&b, &heat, NAN, METRIC_LABELS("empty", NULL));
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
	metric_add_part(&b, &took, "_bucket", 2, METRIC_LABELS("le", "+Inf"));
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
