/* What of a message from outside may be kept: bounds of each kind, where a description says nothing
 * and where it does; what is mended, and the place that is named. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/desc_fit.h"
#include "lib/base/parse.h"

struct leaf {
	int64_t plain, small, index, time;
	char *text, *brief;
	char **lines;
	size_t n_lines;
	int64_t *ints;
	size_t n_ints;
};
static const struct mo_field leaf_fields[] = {
	MO_F(leaf, plain, MO_INT),
	MO_F(leaf, small, MO_INT, .least = -2, .most = 5),
	MO_F(leaf, index, MO_INT, .most = 9, .needed = true),
	MO_F(leaf, time, MO_TIME),
	MO_F(leaf, text, MO_STR),
	MO_F(leaf, brief, MO_STR, .most = 4),
	MO_F_LIST(leaf, lines, MO_STRS, .most = 3),
	MO_F_LIST(leaf, ints, MO_INTS, .least = 1, .most = 3),
};
static const struct mo_desc leaf_desc = MO_DESC(leaf, leaf_fields);
struct tree {
	struct leaf here, *maybe, *many;
	size_t n_many;
};
static const struct mo_field tree_fields[] = {
	MO_F_SUB(tree, here, MO_STRUCT, &leaf_desc),
	MO_F_SUB(tree, maybe, MO_OPT, &leaf_desc),
	MO_F_VEC(tree, many, &leaf_desc),
};
static const struct mo_desc tree_desc = MO_DESC(tree, tree_fields);

static struct tree *good(void)
{
	struct tree *t = mo_desc_new(&tree_desc);

	t->here.index = 0;
	t->maybe = mo_desc_new(&leaf_desc);
	t->maybe->index = 9;
	MO_ADD(t, many, &leaf_desc)->index = 3;
	MO_ADD(t, many, &leaf_desc)->index = 4;
	return t;
}

static void expect(struct tree *t, const char *place)
{
	_cleanup_(mo_freep) char *seen = mo_desc_unfit(&tree_desc, t), *after = NULL;

	if (!mo_streq(seen, place))
		fail_msg("%s, not %s", seen ? seen : "fit", place ? place : "fit");
	mo_desc_fit(&tree_desc, t);
	after = mo_desc_unfit(&tree_desc, t);
	if (after && !strstr(after, "is missing"))
		fail_msg("%s after it was mended", after);
	mo_desc_free(&tree_desc, t);
}

static void expect_leaf(const struct leaf *leaf, const char *place)
{
	struct tree *t = good();

	mo_desc_copy(&leaf_desc, &t->many[1], leaf);
	expect(t, place);
}

static void test_bounds(void **state)
{
	static const int64_t times[] = { 0, MO_TIME_MOST, MO_NONE },
			     bad_times[] = { -1, MO_TIME_MOST + 1, INT64_MAX, INT64_MIN + 1 };
	struct leaf l;

	expect(good(), NULL);
	mo_desc_init(&leaf_desc, &l);
	expect_leaf(&l, "many[1].index: is missing");
	l.index = 10;
	expect_leaf(&l, "many[1].index: is out of range");
	l.index = -1;
	expect_leaf(&l, "many[1].index: is out of range");
	l.index = 9;
	l.plain = MO_FIT_INT;
	l.small = -2;
	expect_leaf(&l, NULL);
	l.plain = -MO_FIT_INT - 1;
	expect_leaf(&l, "many[1].plain: is out of range");
	l.plain = INT64_MAX;
	expect_leaf(&l, "many[1].plain: is out of range");
	l.plain = 0;
	l.small = 6;
	expect_leaf(&l, "many[1].small: is out of range");
	l.small = 5;
	for (size_t i = 0; i < ELEMENTSOF(times); i++) {
		l.time = times[i];
		expect_leaf(&l, NULL);
	}
	for (size_t i = 0; i < ELEMENTSOF(bad_times); i++) {
		l.time = bad_times[i];
		expect_leaf(&l, "many[1].time: is out of range");
	}
}

static void test_places(void **state)
{
	struct tree *t = good();

	t->maybe->small = 99;
	t->many[0].small = 99;
	expect(t, "maybe.small: is out of range");
	t = good();
	t->here.brief = mo_strdup("12345");
	expect(t, "here.brief: is too long");
	t = good();
	mo_strs_add(&t->many[0].lines, &t->many[0].n_lines, "123");
	mo_strs_add(&t->many[0].lines, &t->many[0].n_lines, "1234");
	expect(t, "many[0].lines[1]: is too long");
	t = good();
	mo_strs_add(&t->many[0].lines, &t->many[0].n_lines, NULL);
	expect(t, "many[0].lines[0]: is missing");
	t = good();
	mo_ints_add(&t->here.ints, &t->here.n_ints, 3);
	mo_ints_add(&t->here.ints, &t->here.n_ints, 4);
	expect(t, "here.ints[1]: is out of range");
}

static void test_mended(void **state)
{
	static const struct {
		const char *text, *cut;
	} texts[] = {
		{ "1234", "1234" },
		{ "12345", "1234" },
		{ "123\xe2\x82\xac", "123" },
		{ "1\xe2\x82\xac", "1\xe2\x82\xac" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "1\xf0\x9f\x98\x80", "1" },
		{ "12\xc3\xa9\xc3\xa9", "12\xc3\xa9" },
	};
	struct tree *t = good();
	char *big = mo_alloc(200000);

	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		mo_str_set(&t->here.brief, texts[i].text);
		mo_desc_fit(&tree_desc, t);
		assert_string_equal(t->here.brief, texts[i].cut);
	}
	memset(big, 'x', 199999);
	t->here.text = big;
	t->here.plain = INT64_MAX;
	t->here.small = 5;
	t->maybe->time = -1;
	mo_strs_add(&t->many[1].lines, &t->many[1].n_lines, NULL);
	mo_ints_add(&t->many[1].ints, &t->many[1].n_ints, 0);
	mo_desc_fit(&tree_desc, t);
	assert_int_equal(strlen(t->here.text), MO_FIT_BYTES);
	assert_true(t->here.plain == MO_NONE && t->here.small == 5 && t->maybe->time == MO_NONE);
	assert_string_equal(t->many[1].lines[0], "");
	assert_true(t->many[1].ints[0] == MO_NONE);
	mo_desc_free(&tree_desc, t);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bounds),
					    cmocka_unit_test(test_places),
					    cmocka_unit_test(test_mended) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
