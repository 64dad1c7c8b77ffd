/* Described structs: every kind through init, copy, compare, diff and done. Run under ASan it also
 * proves that nothing is shared, lost or freed twice. */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/desc_fit.h"

enum colour { RED, GREEN, _COLOUR_N };
static const char *const colours[_COLOUR_N] = { "red", "green" };
static const char *const prefix[1] = { "x" };

struct leaf {
	int64_t n;
	char *s;
};
static const struct mo_field leaf_fields[] = { MO_F(leaf, n, MO_INT), MO_F(leaf, s, MO_STR) };
static const struct mo_desc leaf_desc = MO_DESC(leaf, leaf_fields);

struct tree {
	bool b;
	int8_t tri;
	int64_t i, id, time;
	double d;
	char *s;
	int e;
	struct leaf in;
	struct leaf *opt;
	struct leaf *vec;
	size_t n_vec;
	char **strs;
	size_t n_strs;
	int64_t *ints;
	size_t n_ints;
	char *json;
};
static const struct mo_field tree_fields[] = {
	MO_F(tree, b, MO_BOOL),
	MO_F(tree, tri, MO_TRI),
	MO_F(tree, i, MO_INT),
	MO_F_ID(tree, id, prefix),
	MO_F(tree, time, MO_TIME),
	MO_F(tree, d, MO_REAL),
	MO_F(tree, s, MO_STR),
	MO_F_ENUM(tree, e, colours),
	MO_F_SUB(tree, in, MO_STRUCT, &leaf_desc),
	MO_F_SUB(tree, opt, MO_OPT, &leaf_desc),
	MO_F_VEC(tree, vec, &leaf_desc),
	MO_F_LIST(tree, strs, MO_STRS),
	MO_F_LIST(tree, ints, MO_INTS),
	MO_F(tree, json, MO_RAWJSON),
};
static const struct mo_desc tree_desc = MO_DESC(tree, tree_fields);

static void fill(struct tree *t)
{
	t->b = true;
	t->tri = 1;
	t->i = 5;
	t->id = 6;
	t->time = 7;
	t->d = NAN;
	mo_str_set(&t->s, "s");
	t->e = GREEN;
	t->in.n = 8;
	mo_str_set(&t->in.s, "in");
	t->opt = mo_desc_new(&leaf_desc);
	mo_str_set(&t->opt->s, "opt");
	for (int64_t i = 0; i < 5; i++) {
		struct leaf *l = MO_ADD(t, vec, &leaf_desc);

		assert_true(l->n == MO_NONE);
		l->n = i;
		mo_str_set(&l->s, "vec");
		mo_ints_add(&t->ints, &t->n_ints, i);
	}
	mo_strs_add(&t->strs, &t->n_strs, "one");
	mo_strs_add(&t->strs, &t->n_strs, NULL);
	mo_strs_add(&t->strs, &t->n_strs, "three");
	mo_str_set(&t->json, "{}");
}

static void assert_diff(const struct tree *a, const struct tree *b, const char *expect)
{
	_cleanup_(mo_freep) char *path = mo_desc_diff(&tree_desc, a, b);
	_cleanup_(mo_freep) char *back = mo_desc_diff(&tree_desc, b, a);

	if (!expect) {
		assert_null(path);
	} else {
		assert_non_null(path);
		assert_string_equal(path, expect);
		assert_string_equal(back, expect);
	}
	assert_int_equal(mo_desc_equal(&tree_desc, a, b), !expect);
}

static void test_init_done(void **state)
{
	struct tree t;

	memset(&t, 0xaa, sizeof(t));
	mo_desc_init(&tree_desc, &t);
	assert_false(t.b);
	assert_int_equal(t.tri, -1);
	assert_true(t.i == MO_NONE && t.id == MO_NONE && t.time == MO_NONE && t.in.n == MO_NONE &&
		    t.d == MO_NONE_F);
	assert_int_equal(t.e, -1);
	assert_null(t.s);
	assert_null(t.opt);
	assert_null(t.vec);
	assert_int_equal(t.n_vec, 0);
	fill(&t);
	mo_desc_done(&tree_desc, &t);
	assert_true(t.i == MO_NONE && !t.opt && !t.vec && !t.n_vec && !t.strs && !t.in.s);
	mo_desc_done(&tree_desc, &t);
	mo_desc_free(&tree_desc, NULL);
	assert_null(mo_desc_dup(&tree_desc, NULL));
}

static void test_copy(void **state)
{
	struct tree a, b;

	mo_desc_init(&tree_desc, &a);
	mo_desc_init(&tree_desc, &b);
	fill(&a);
	mo_desc_copy(&tree_desc, &b, &a);
	assert_diff(&a, &b, NULL);
	assert_ptr_not_equal(a.vec[3].s, b.vec[3].s);
	mo_desc_copy(&tree_desc, &a, &a); /* onto itself: nothing happens */
	assert_diff(&a, &b, NULL);
	/* a copy can grow */
	for (int i = 0; i < 20; i++) {
		MO_ADD(&b, vec, &leaf_desc)->n = i;
		mo_strs_add(&b.strs, &b.n_strs, "more");
		mo_ints_add(&b.ints, &b.n_ints, i);
	}
	assert_int_equal(b.n_vec, 25);
	mo_desc_copy(&tree_desc, &b, &a); /* onto a filled one: the old content is freed */
	assert_diff(&a, &b, NULL);
	mo_desc_done(&tree_desc, &a);
	mo_desc_copy(&tree_desc, &b, &a);
	assert_diff(&a, &b, NULL);
	mo_desc_done(&tree_desc, &b);
}

static void test_diff(void **state)
{
	struct tree a, *b;

	mo_desc_init(&tree_desc, &a);
	fill(&a);
	b = mo_desc_dup(&tree_desc, &a);
	b->b = false;
	assert_diff(&a, b, "b");
	b->b = true;
	b->tri = 0;
	assert_diff(&a, b, "tri");
	b->tri = 1;
	b->i = 0;
	assert_diff(&a, b, "i");
	b->i = 5;
	b->id = MO_NONE;
	assert_diff(&a, b, "id");
	b->id = 6;
	b->d = 0;
	assert_diff(&a, b, "d");
	a.d = -0.0;
	assert_diff(&a, b, NULL);
	a.d = b->d = NAN;
	b->e = RED;
	assert_diff(&a, b, "e");
	b->e = GREEN;
	b->in.n = 0;
	assert_diff(&a, b, "in.n");
	b->in.n = 8;
	mo_str_set(&b->opt->s, NULL);
	assert_diff(&a, b, "opt.s");
	mo_str_set(&b->opt->s, "opt");
	b->vec[3].n = 33;
	assert_diff(&a, b, "vec[3].n");
	b->vec[3].n = 3;
	mo_str_set(&b->strs[1], "two");
	assert_diff(&a, b, "strs[1]");
	mo_str_set(&b->strs[1], NULL);
	b->ints[4] = 9;
	assert_diff(&a, b, "ints[4]");
	b->ints[4] = 4;
	mo_ints_add(&b->ints, &b->n_ints, 1);
	assert_diff(&a, b, "ints[5]");
	b->n_ints--;
	mo_str_set(&b->json, "{ }");
	assert_diff(&a, b, "json");
	mo_str_set(&b->json, "{}");
	assert_diff(&a, b, NULL);
	mo_desc_free(&leaf_desc, TAKE_PTR(b->opt));
	assert_diff(&a, b, "opt");
	mo_desc_free(&tree_desc, b);
	mo_desc_done(&tree_desc, &a);
}

static void test_remove(void **state)
{
	struct tree t;

	mo_desc_init(&tree_desc, &t);
	fill(&t);
	mo_vec_remove(&leaf_desc, t.vec, &t.n_vec, 0);
	mo_vec_remove(&leaf_desc, t.vec, &t.n_vec, 3);
	mo_vec_remove(&leaf_desc, t.vec, &t.n_vec, 1);
	assert_int_equal(t.n_vec, 2);
	assert_true(t.vec[0].n == 1 && t.vec[1].n == 3);
	assert_string_equal(t.vec[1].s, "vec");
	for (int i = 0; i < 9; i++)
		MO_ADD(&t, vec, &leaf_desc)->n = i;
	assert_int_equal(t.n_vec, 11);
	mo_vec_clear(&leaf_desc, (void **)&t.vec, &t.n_vec);
	assert_null(t.vec);
	assert_int_equal(t.n_vec, 0);
	MO_ADD(&t, vec, &leaf_desc)->n = 1;
	mo_desc_done(&tree_desc, &t);
}

struct wood {
	struct tree **trees;
	size_t n_trees;
};
static const struct mo_field wood_fields[] = { MO_F_APART(wood, trees, &tree_desc) };
static const struct mo_desc wood_desc = MO_DESC(wood, wood_fields);

/* Each stays where it is, wherever others are put and whatever is taken out. */
static void test_apart(void **state)
{
	struct wood w, copy;
	struct tree *first, *taken;

	mo_desc_init(&wood_desc, &w);
	mo_desc_init(&wood_desc, &copy);
	first = MO_INSERT(&w, trees, 0, &tree_desc);
	assert_true(first->i == MO_NONE);
	fill(first);
	for (int64_t i = 0; i < 40; i++)
		MO_INSERT(&w, trees, (size_t)i / 2, &tree_desc)->i = 100 + i;
	assert_int_equal(w.n_trees, 41);
	assert_ptr_equal(w.trees[40], first);
	assert_int_equal(w.trees[0]->i, 101);
	assert_int_equal(w.trees[19]->i, 139);
	assert_int_equal(w.trees[20]->i, 138);
	mo_desc_copy(&wood_desc, &copy, &w);
	assert_true(mo_desc_equal(&wood_desc, &w, &copy));
	assert_ptr_not_equal(copy.trees[40], first);
	assert_string_equal(copy.trees[40]->in.s, "in");
	copy.trees[3]->i++;
	char *where = mo_desc_diff(&wood_desc, &w, &copy);
	assert_string_equal(where, "trees[3].i");
	free(where);
	taken = mo_apart_take(w.trees, &w.n_trees, 20);
	assert_int_equal(taken->i, 138);
	mo_desc_free(&tree_desc, taken);
	assert_ptr_equal(w.trees[39], first);
	assert_int_equal(mo_desc_text_bytes(&wood_desc, &w), mo_desc_text_bytes(&tree_desc, first));
	for (size_t i = 0; i < w.n_trees; i++)
		assert_ptr_equal(mo_vec_element(wood_fields, &w, i), w.trees[i]);
	taken = mo_vec_append(wood_fields, &w);
	assert_ptr_equal(taken, w.trees[40]);
	mo_apart_clear(&tree_desc, (void ***)&w.trees, &w.n_trees);
	assert_null(w.trees);
	assert_int_equal(w.n_trees, 0);
	mo_desc_done(&wood_desc, &copy);
	mo_desc_done(&wood_desc, &w);
}

static void test_enum(void **state)
{
	assert_string_equal(mo_enum_name(colours, _COLOUR_N, GREEN), "green");
	assert_string_equal(mo_enum_name(colours, _COLOUR_N, -1), "?");
	assert_string_equal(mo_enum_name(colours, _COLOUR_N, 2), "?");
	assert_int_equal(mo_enum_parse(colours, _COLOUR_N, "red"), RED);
	assert_int_equal(mo_enum_parse(colours, _COLOUR_N, "Red"), -1);
	assert_int_equal(mo_enum_parse(colours, _COLOUR_N, ""), -1);
	assert_int_equal(mo_enum_parse(colours, _COLOUR_N, NULL), -1);
}

static void test_strings(void **state)
{
	char **lines = NULL;
	size_t n = 0;

	mo_strs_printf(&lines, &n, "%s: %d", "a", 7);
	mo_strs_printf(&lines, &n, "%2040s\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", "");
	assert_int_equal(n, 2);
	assert_string_equal(lines[0], "a: 7");
	assert_string_equal(lines[1] + 2040, "\u00e9\u00e9"); /* no half of a character */
	mo_strs_clear(&lines, &n);
	assert_null(lines);
	assert_int_equal(n, 0);
	mo_strs_clear(&lines, &n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_done), cmocka_unit_test(test_copy),
		cmocka_unit_test(test_diff),      cmocka_unit_test(test_remove),
		cmocka_unit_test(test_apart),     cmocka_unit_test(test_enum),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
