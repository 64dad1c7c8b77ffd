/* What rccl-tests print is read as it is. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/plan/curve.h"

/* gbs: of the largest size */
static void answer(const char *text, double gbs, bool rows, int64_t wrong)
{
	struct curve c;

	assert_int_equal(curve_parse(text, &c), rows);
	if (!rows)
		return;
	assert_true(c.points[c.n - 1].gbs == gbs);
	assert_int_equal(c.wrong, wrong);
}

/* As nccl-tests and rccl-tests write them. */
static void output_is_read(void **state)
{
	struct curve c;

	answer("# nThread 1 nGpus 1 minBytes 8388608 maxBytes 134217728 step: 2(factor)\n"
	       "#       size         count      type   redop    root     time   algbw   busbw "
	       "#wrong\n"
	       "     8388608       2097152     float     sum      -1    98.31   85.33  149.33      "
	       "0"
	       "    97.9   85.7  150.0      0\n"
	       "   134217728      33554432     float     sum      -1    812.0  165.29  289.26      "
	       "0"
	       "   811.0  165.5  289.6      0\n# Out of bounds values : 0 OK\n",
	       289.26, true, 0);
	/* alltoall has no operation and no root in some releases, N/A where nothing was checked */
	answer("  1048576  32768  float  none  -1  80.1  13.09  11.45    N/A\n", 11.45, true, 0);
	answer("  1048576  32768  float  80.1  13.09  11.45  0  80.2 13 11.4 0\n", 11.45, true, 0);
	/* rounding errors of older releases are no wrong values */
	answer("  1048576  32768  float  sum  80.1  13.09  11.45  2e-07\n", 0, false, 0);
	answer("  1048576  32768  float  sum  -1  80.1  13.09  11.45  2e-07\n", 11.45, true, 0);
	answer("  1048576  32768  float  sum  -1  80.1  13.09  11.45  17\n", 11.45, true, 17);
	assert_true(curve_parse("1024 2 float sum -1 1 1 5 3\n2048 2 float sum -1 1 1 6 9\n", &c));
	assert_true(c.n == 2 && c.wrong == 9 && c.wrong_bytes == 2048);
}

static void evil_output_is_none(void **state)
{
	static const char *const evil[] = {
		"",
		"\n\n\n",
		"1 1 1 1 1 1 1 1 1 1\n",
		"1024 256 float sum -1 10 nan nan 0\n",
		"1024 256 float sum -1 10 1 -5 0\n",
		"-1024 256 float sum -1 10 1 5 0\n",
		"1e400 256 float sum -1 10 1 5 0\n",
		"1024 256 float sum -1 10 1",
		"\t\r\x01\x1b[31m 1024 256 float sum -1 10 1 5 0\n",
		"node: Test NCCL failure common.cu:958 'unhandled system error'\n",
	};
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(evil); i++)
		answer(evil[i], 0, false, 0);
	for (size_t i = 0; i < 100000; i++)
		mo_buf_str(&b, "9 ");
	answer(b.data, 0, false, 0);
	mo_buf_reset(&b);
	/* more rows than are kept, and sizes that fall */
	for (int i = 0; i < 1000; i++)
		mo_buf_printf(&b, "%d 1 float sum -1 1 1 %d 0\n", 1 + i * 7 % 1000, 1 + i);
	struct curve c;

	assert_true(curve_parse(b.data, &c) && c.n <= ELEMENTSOF(c.points));
	for (size_t i = 1; i < c.n; i++)
		assert_true(c.points[i].bytes > c.points[i - 1].bytes);
	mo_buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_is_read),
		cmocka_unit_test(evil_output_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
