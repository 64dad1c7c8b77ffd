/* The odd node or link is found by measurements of a made fabric, whatever its size. */
#include "tests/unit/unit.h"

#include <string.h>

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
	assert_int_equal(links, 2); /* both of its measurements */
	fabric_done(&f);
}

/* One slow measurement of a pair that is fast when it is tried again says nothing. */
static void once_is_not_a_link(void **state)
{
	struct fabric f;

	fabric_init(&f, 8, 0);
	for (size_t first; (first = fabric_next(&f)) < f.n_runs;)
		for (size_t i = first; i < f.n_runs; i++)
			fabric_answer(&f, i, i == 2 ? GBS / 5 : GBS, NULL);
	assert_int_equal(fabric_verdict(&f), FABRIC_FINE);
	assert_int_equal(f.runs[f.n_runs - 1].a + f.runs[f.n_runs - 1].b, 5);
	fabric_done(&f);
}

/* All pairs of the first round are slow: a later one tells. */
static void few_nodes(void **state)
{
	struct fabric f;

	fabric_init(&f, 5, 0);
	for (size_t first; (first = fabric_next(&f)) < f.n_runs;)
		for (size_t i = first; i < f.n_runs; i++)
			fabric_answer(&f, i, f.runs[i].a / 2 == f.runs[i].b / 2 ? GBS / 5 : GBS,
				      NULL);
	assert_int_equal(fabric_verdict(&f), FABRIC_ODD);
	assert_true(fabric_is_link(&f, &f.runs[1]) && fabric_is_link(&f, &f.runs[2]));
	fabric_done(&f);
}

static void nothing_to_tell_by(void **state)
{
	struct made m = good(6);
	struct fabric f;

	m.together = GBS / 2;
	assert_int_equal(search(&m, GBS, &f), FABRIC_TOGETHER);
	fabric_done(&f);
	assert_int_equal(search(&m, 0, &f), FABRIC_FINE); /* an all-to-all beyond pairs */
	fabric_done(&f);
	m.together = 0;
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

static void output_is_an_answer(void **state)
{
	answer("512 128 float sum -1 80.1 13.09 9 0\n1024 256 float sum -1 80.1 13.09 11.45 0\n",
	       11.45, NULL);
	answer("1048576 32768 float sum -1 80.1 13.09 11.45 17\n", 0,
	       "17 values were wrong at 1048576 bytes");
	answer("Test NCCL failure common.cu:958\n", 0, "it printed no row of rccl-tests");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fine),
		cmocka_unit_test(one_node),
		cmocka_unit_test(two_nodes),
		cmocka_unit_test(one_link),
		cmocka_unit_test(once_is_not_a_link),
		cmocka_unit_test(few_nodes),
		cmocka_unit_test(nothing_to_tell_by),
		cmocka_unit_test(output_is_an_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
