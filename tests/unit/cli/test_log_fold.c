/* Equal lines of ranks are one, and no rank's lines change their order, whatever they are. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "cli/log_fold.h"
#include "lib/base/idset.h"

/* lines: of a rank each, spaces between. */
static void folded(const char *const *lines, size_t n, const char *wanted)
{
	_cleanup_(log_fold_done) struct log_fold f = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *words = mo_strdup(lines[i]);
		char *rest = words;

		for (char *w; (w = strsep(&rest, " "));)
			log_fold_add(&f, (int64_t)i, w, &out);
	}
	assert_int_equal(out.len, 0);
	log_fold_take(&f, &out);
	assert_string_equal(out.data, wanted);
}

static void equal_lines_are_one(void **state)
{
	static const char *const same[] = { "a b", "a b", "a b" },
				 *const own[] = { "a l0 b", "a l1 b", "a l2 b" },
				 *const odd[] = { "a b", "a x b", "a b", "b", "a y" },
				 *const apart[] = { "p", "q", "r" },
				 *const twice[] = { "a a", "a a a" },
				 *const turned[] = { "a b", "b a" };

	folded(same, 3, "[0-2] a (x 3 ranks)\n[0-2] b (x 3 ranks)\n");
	folded(own, 3, "[0-2] a (x 3 ranks)\n[0] l0\n[1] l1\n[2] l2\n[0-2] b (x 3 ranks)\n");
	folded(odd, 5, "[0-2,4] a (x 4 ranks)\n[1] x\n[0-3] b (x 4 ranks)\n[4] y\n");
	folded(apart, 3, "[0] p\n[1] q\n[2] r\n");
	folded(twice, 2, "[0-1] a (x 2 ranks)\n[0-1] a (x 2 ranks)\n[1] a\n");
	folded(turned, 2, "[0] a\n[0-1] b (x 2 ranks)\n[1] a\n");
}

static void a_long_list_of_ranks_is_cut(void **state)
{
	_cleanup_(log_fold_done) struct log_fold f = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };

	for (int64_t rank = 0; rank < 40; rank += 2)
		log_fold_add(&f, rank, "a", &out);
	log_fold_take(&f, &out);
	assert_string_equal(out.data, "[0,2,4,6,8,10,12,14,16,...] a (x 20 ranks)\n");
}

/* A controller that gave them mixed would cost folds, never the order. */
static void a_rank_that_comes_again_stays_in_order(void **state)
{
	_cleanup_(log_fold_done) struct log_fold f = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };

	log_fold_add(&f, 0, "b", &out);
	log_fold_add(&f, 1, "a", &out);
	log_fold_add(&f, 0, "a", &out);
	assert_string_equal(out.data, "[0] b\n[1] a\n");
	log_fold_take(&f, &out);
	assert_string_equal(out.data, "[0] b\n[1] a\n[0] a\n");
}

static bool has_rank(const char *line, size_t rank)
{
	_cleanup_(mo_idset_done) struct mo_idset ranks = { 0 };
	_cleanup_(mo_freep) char *list = mo_strndup(line + 1, strcspn(line, "]") - 1);

	assert_int_equal(mo_idset_parse(list, &ranks), 0);
	return mo_idset_has(&ranks, rank);
}

/* A number below n, always the same ones. */
static unsigned any(unsigned n)
{
	static uint32_t seed = 7;

	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* A rank that says much of its own, as rank 0 does of its configuration, unfolds nothing behind. */
static void far_apart(void **state)
{
	_cleanup_(log_fold_done) struct log_fold f = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };

	log_fold_add(&f, 0, "a", &out);
	for (int i = 0; i < 300; i++)
		log_fold_add(&f, 0, i == 200 ? "b" : "own", &out);
	for (int64_t rank = 0; rank < 4; rank++) {
		if (rank)
			log_fold_add(&f, rank, "a", &out);
		if (rank == 2)
			log_fold_add(&f, rank, "x", &out);
		log_fold_add(&f, rank, "b", &out);
		log_fold_add(&f, rank, "c", &out);
	}
	log_fold_take(&f, &out);
	assert_ptr_equal(strstr(out.data, "[0-3] a (x 4 ranks)\n[0] own\n"), out.data);
	assert_non_null(strstr(out.data, "[0] own\n[0] b\n[0] own\n"));
	assert_string_equal(strstr(out.data, "[2] x"),
			    "[2] x\n[0-3] b (x 4 ranks)\n[0-3] c (x 4 ranks)\n");
}

/* What is shown, read for one rank, is what it wrote: over random lines of few words, more than
 * are looked through. */
static void each_rank_reads_as_it_wrote(void **state)
{
	enum { RANKS = 6, LINES = 700 };
	_cleanup_(log_fold_done) struct log_fold f = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };
	struct mo_buf wrote[RANKS] = { 0 };
	size_t n_shown = 0;

	for (size_t r = 0; r < RANKS; r++)
		for (int i = 0; i < LINES; i++) {
			char line[32];

			/* mostly the same as others, some of its own */
			snprintf(line, sizeof(line), "l%d", any(20) ? i : 1000 + (int)any(20));
			if (any(30) == 0)
				continue;
			mo_buf_printf(&wrote[r], "%s\n", line);
			log_fold_add(&f, (int64_t)r, line, &out);
		}
	log_fold_take(&f, &out);
	for (size_t r = 0; r < RANKS; r++) {
		_cleanup_(mo_buf_done) struct mo_buf read = { 0 };
		const char *nl;

		for (const char *at = out.data; (nl = strchr(at, '\n')); at = nl + 1) {
			const char *word = strstr(at, "] ") + 2;

			n_shown += r == 0;
			if (has_rank(at, r))
				mo_buf_printf(&read, "%.*s\n", (int)strcspn(word, " \n"), word);
		}
		assert_string_equal(read.data, wrote[r].data);
		mo_buf_done(&wrote[r]);
	}
	assert_in_range(n_shown, LINES, LINES * 3 / 2); /* ideal are about 900 */
}

static void nothing_is_nothing(void **state)
{
	_cleanup_(log_fold_done) struct log_fold f = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };

	log_fold_take(&f, &out);
	assert_int_equal(out.len, 0);
	log_fold_add(&f, 3, "", &out);
	log_fold_take(&f, &out);
	assert_string_equal(out.data, "[3] \n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_lines_are_one),
		cmocka_unit_test(a_long_list_of_ranks_is_cut),
		cmocka_unit_test(a_rank_that_comes_again_stays_in_order),
		cmocka_unit_test(far_apart),
		cmocka_unit_test(each_rank_reads_as_it_wrote),
		cmocka_unit_test(nothing_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
