/* The odd node or link is found by measurements of a made fabric, whatever its size; what programs
 * print is read as it is. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/plan/curve.h"
#include "lib/plan/fabric.h"

#define GBS 300.0

/* A fabric: a run is as fast as the slowest node and link in it. */
struct made {
	size_t n;
	double node[FABRIC_NODES_MAX]; /* 0: what it takes part in fails */
	size_t link_a, link_b;         /* slow; equal: none */
	double together;               /* at most, of all */
};

static double speed(const struct made *m, const struct fabric_run *r, bool all)
{
	double gbs = all ? m->together : GBS;
	bool linked = m->link_a != m->link_b;

	for (size_t i = 0; i < m->n; i++)
		if (all || r->a == i || r->b == i)
			gbs = MO_MIN(gbs, m->node[i]);
	if (linked && (all || (MO_MIN(r->a, r->b) == m->link_a && MO_MAX(r->a, r->b) == m->link_b)))
		gbs = MO_MIN(gbs, GBS / 5);
	return gbs;
}

static void once_a_round(const struct fabric *f, size_t first)
{
	_cleanup_(mo_freep) bool *busy = mo_alloc_array(f->n_nodes, sizeof(*busy));

	for (size_t i = MO_MAX(first, (size_t)1); i < f->n_runs; i++) {
		assert_true(f->runs[i].a != f->runs[i].b);
		assert_false(busy[f->runs[i].a] || busy[f->runs[i].b]);
		busy[f->runs[i].a] = busy[f->runs[i].b] = true;
	}
}

static int search(const struct made *m, double expected, struct fabric *f)
{
	size_t first;

	fabric_init(f, m->n, expected);
	while ((first = fabric_next(f)) < f->n_runs) {
		assert_true(f->round <= FABRIC_ROUNDS_MAX);
		once_a_round(f, first);
		for (size_t i = first; i < f->n_runs; i++) {
			double gbs = speed(m, &f->runs[i], i == 0);

			fabric_answer(f, i, gbs, gbs > 0 ? NULL : "it did not end");
		}
	}
	return fabric_verdict(f);
}

static struct made good(size_t n)
{
	struct made m = { .n = n, .together = GBS };

	for (size_t i = 0; i < n; i++)
		m.node[i] = GBS;
	return m;
}

static void fine(void **state)
{
	struct fabric f;

	for (size_t n = 1; n <= 9; n++) {
		struct made m = good(n);

		assert_int_equal(search(&m, 0, &f), FABRIC_FINE);
		fabric_done(&f);
		assert_int_equal(search(&m, GBS, &f), FABRIC_FINE);
		assert_int_equal(f.n_runs, 1);
		fabric_done(&f);
		assert_int_equal(search(&m, 2 * GBS, &f), n > 2 ? FABRIC_TOGETHER : FABRIC_UNTOLD);
		fabric_done(&f);
	}
}

/* Each node of each size, slow or failing. */
static void one_node(void **state)
{
	struct fabric f;

	for (size_t n = 3; n <= 33; n++)
		for (size_t bad = 0; bad < 2 * n; bad++) {
			struct made m = good(n);

			m.node[bad / 2] = bad % 2 ? GBS / 2 : 0;
			assert_int_equal(search(&m, 0, &f), FABRIC_ODD);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(fabric_is_odd(&f, i), i == bad / 2);
			for (size_t i = 1; i < f.n_runs; i++)
				assert_false(fabric_is_link(&f, &f.runs[i]));
			assert_true(f.round <= 5);
			fabric_done(&f);
		}
}

static void two_nodes(void **state)
{
	struct fabric f;

	for (size_t a = 0; a < 16; a++)
		for (size_t b = a + 1; b < 16; b++) {
			struct made m = good(16);

			m.node[a] = GBS / 3;
			m.node[b] = 0;
			assert_int_equal(search(&m, 0, &f), FABRIC_ODD);
			for (size_t i = 0; i < 16; i++)
				assert_int_equal(fabric_is_odd(&f, i), i == a || i == b);
			fabric_done(&f);
		}
}

static void one_link(void **state)
{
	struct made m = good(8);
	struct fabric f;
	size_t links = 0;

	m.link_a = 4;
	m.link_b = 5;
	assert_int_equal(search(&m, 0, &f), FABRIC_ODD);
	for (size_t i = 0; i < 8; i++)
		assert_false(fabric_is_odd(&f, i) || fabric_is_untold(&f, i));
	for (size_t i = 1; i < f.n_runs; i++)
		if (fabric_is_link(&f, &f.runs[i])) {
			assert_int_equal(f.runs[i].a + f.runs[i].b, 9);
			links++;
		}
	assert_int_equal(links, 1);
	fabric_done(&f);
}

static void nothing_to_tell_by(void **state)
{
	struct made m = good(6);
	struct fabric f;

	m.together = GBS / 2;
	assert_int_equal(search(&m, 0, &f), FABRIC_TOGETHER);
	fabric_done(&f);
	for (size_t i = 0; i < 6; i++)
		m.node[i] = 0;
	assert_int_equal(search(&m, 0, &f), FABRIC_NOTHING);
	assert_true(f.round <= 2);
	fabric_done(&f);
	m.node[0] = m.node[1] = GBS; /* four of six: still those two tell */
	assert_int_equal(search(&m, 0, &f), FABRIC_ODD);
	assert_true(f.round <= FABRIC_ROUNDS_MAX);
	fabric_done(&f);
	m = good(2);
	m.node[1] = GBS / 2;
	assert_int_equal(search(&m, GBS, &f), FABRIC_UNTOLD);
	fabric_done(&f);
	m = good(FABRIC_NODES_MAX);
	m.node[700] = 0;
	assert_int_equal(search(&m, 0, &f), FABRIC_ODD);
	assert_true(fabric_is_odd(&f, 700) && f.round <= 4);
	fabric_done(&f);
}

static void answer(const char *text, double gbs, const char *failed)
{
	struct fabric f;

	fabric_init(&f, 4, 0);
	assert_int_equal(fabric_next(&f), 0);
	fabric_answer_text(&f, 0, text);
	assert_true(f.runs[0].measured && f.runs[0].gbs == gbs);
	if (failed)
		assert_string_equal(f.runs[0].failed, failed);
	else
		assert_null(f.runs[0].failed);
	fabric_done(&f);
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
	       289.26, NULL);
	/* alltoall has no operation and no root in some releases, N/A where nothing was checked */
	answer("  1048576  32768  float  none  -1  80.1  13.09  11.45    N/A\n", 11.45, NULL);
	answer("  1048576  32768  float  80.1  13.09  11.45  0  80.2 13 11.4 0\n", 11.45, NULL);
	/* rounding errors of older releases are no wrong values */
	answer("  1048576  32768  float  sum  80.1  13.09  11.45  2e-07\n", 0,
	       "it printed no row of rccl-tests");
	answer("  1048576  32768  float  sum  -1  80.1  13.09  11.45  2e-07\n", 11.45, NULL);
	answer("  1048576  32768  float  sum  -1  80.1  13.09  11.45  17\n", 0,
	       "17 values were wrong at 1048576 bytes");
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
		answer(evil[i], 0, "it printed no row of rccl-tests");
	for (size_t i = 0; i < 100000; i++)
		mo_buf_str(&b, "9 ");
	answer(b.data, 0, "it printed no row of rccl-tests");
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
		cmocka_unit_test(fine),
		cmocka_unit_test(one_node),
		cmocka_unit_test(two_nodes),
		cmocka_unit_test(one_link),
		cmocka_unit_test(nothing_to_tell_by),
		cmocka_unit_test(output_is_read),
		cmocka_unit_test(evil_output_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
