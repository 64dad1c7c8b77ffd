/* One of two objects holds what both say (lib/base/desc_lend.h). */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/base/desc_lend.h"

struct leaf {
	char *a, *b;
	int64_t n;
};
static const struct mo_field leaf_fields[] = { MO_F(leaf, a, MO_STR), MO_F(leaf, b, MO_STR),
					       MO_F(leaf, n, MO_INT) };
static const struct mo_desc leaf_desc = MO_DESC(leaf, leaf_fields);
struct tree {
	struct leaf in;
	struct leaf *opt, *list, **far;
	size_t n_list, n_far;
	char **words;
	size_t n_words;
	int64_t *ints;
	size_t n_ints;
	double *reals;
	size_t n_reals;
	char *json;
};
static const struct mo_field tree_fields[] = {
	MO_F_SUB(tree, in, MO_STRUCT, &leaf_desc), MO_F_SUB(tree, opt, MO_OPT, &leaf_desc),
	MO_F_VEC(tree, list, &leaf_desc),          MO_F_APART(tree, far, &leaf_desc),
	MO_F_LIST(tree, words, MO_STRS),           MO_F_LIST(tree, ints, MO_INTS),
	MO_F_LIST(tree, reals, MO_REALS),          MO_F(tree, json, MO_RAWJSON),
};
static const struct mo_desc tree_desc = MO_DESC(tree, tree_fields);

static void leaf(struct leaf *l, const char *a, const char *b)
{
	mo_str_set(&l->a, a);
	mo_str_set(&l->b, b);
	l->n = 7;
}

/* own: what is another in each place where something may be. */
static void fill(struct tree *t, const char *own)
{
	mo_desc_init(&tree_desc, t);
	leaf(&t->in, "in", own);
	t->opt = mo_desc_new(&leaf_desc);
	leaf(t->opt, "opt", own);
	leaf(MO_ADD(t, list, &leaf_desc), "same", "same");
	leaf(MO_ADD(t, list, &leaf_desc), "list", own);
	leaf(MO_INSERT(t, far, 0, &leaf_desc), "far", own);
	mo_strs_add(&t->words, &t->n_words, "train");
	mo_strs_add(&t->words, &t->n_words, own);
	mo_ints_add(&t->ints, &t->n_ints, 3);
	mo_reals_add(&t->reals, &t->n_reals, 0.5);
	t->json = mo_strdup("{}");
}

static void begin(struct tree *lender, struct tree *mine, struct tree *want, const char *own)
{
	fill(lender, "x");
	fill(mine, own);
	fill(want, own);
	mo_desc_lend(&tree_desc, mine, lender);
	assert_true(mo_desc_equal(&tree_desc, mine, want));
}

static void end(struct tree *lender, struct tree *mine, struct tree *want)
{
	mo_desc_done(&tree_desc, lender);
	assert_true(mo_desc_equal(&tree_desc, mine, want));
	mo_desc_done(&tree_desc, mine);
	mo_desc_done(&tree_desc, want);
}

static void equal_ones_are_held_once(void **state)
{
	struct tree lender, mine, want;

	begin(&lender, &mine, &want, "x");
	assert_ptr_equal(mine.in.a, lender.in.a);
	assert_ptr_equal(mine.opt, lender.opt);
	assert_ptr_equal(mine.list, lender.list);
	assert_ptr_equal(mine.far, lender.far);
	assert_ptr_equal(mine.words, lender.words);
	assert_ptr_equal(mine.ints, lender.ints);
	assert_ptr_equal(mine.reals, lender.reals);
	assert_ptr_equal(mine.json, lender.json);
	mo_desc_lend(&tree_desc, &mine, &lender); /* twice is once */
	mo_desc_own(&tree_desc, &mine, &lender);
	assert_ptr_not_equal(mine.list, lender.list);
	end(&lender, &mine, &want);
	(void)state;
}

static void of_others_what_is_equal_in_them(void **state)
{
	struct tree lender, mine, want;

	begin(&lender, &mine, &want, "y");
	assert_ptr_equal(mine.in.a, lender.in.a);
	assert_ptr_not_equal(mine.opt, lender.opt);
	assert_ptr_equal(mine.opt->a, lender.opt->a);
	assert_ptr_equal(mine.list[0].b, lender.list[0].b);
	assert_ptr_equal(mine.list[1].a, lender.list[1].a);
	assert_ptr_equal(mine.far[0]->a, lender.far[0]->a);
	assert_ptr_equal(mine.words[0], lender.words[0]);
	assert_string_equal(mine.words[1], "y");
	mo_desc_own(&tree_desc, &mine, &lender);
	end(&lender, &mine, &want);
	(void)state;
}

static void returned_it_is_not_there(void **state)
{
	struct tree lender, mine, want;

	begin(&lender, &mine, &want, "y");
	mo_desc_return(&tree_desc, &mine, &lender);
	assert_null(mine.in.a);
	assert_string_equal(mine.in.b, "y");
	assert_null(mine.words[0]);
	assert_null(mine.ints);
	assert_int_equal(mine.n_ints, 0);
	assert_int_equal(lender.ints[0], 3);
	mo_desc_done(&tree_desc, &mine);
	fill(&mine, "y");
	end(&lender, &mine, &want);
	(void)state;
}

/* A list that is longer, one that the other does not have. */
static void shorter_and_empty(void **state)
{
	struct tree lender, mine, want;

	fill(&lender, "x");
	fill(&mine, "x");
	fill(&want, "x");
	mo_strs_add(&mine.words, &mine.n_words, "more");
	mo_strs_add(&want.words, &want.n_words, "more");
	mo_vec_clear(&leaf_desc, (void **)&lender.list, &lender.n_list);
	mo_desc_free(&leaf_desc, lender.opt);
	lender.opt = NULL;
	mo_str_set(&mine.json, NULL);
	mo_str_set(&want.json, NULL);
	mo_desc_lend(&tree_desc, &mine, &lender);
	assert_ptr_equal(mine.words[1], lender.words[1]);
	assert_null(mine.json);
	assert_true(mo_desc_equal(&tree_desc, &mine, &want));
	mo_desc_own(&tree_desc, &mine, &lender);
	end(&lender, &mine, &want);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(equal_ones_are_held_once),
					    cmocka_unit_test(of_others_what_is_equal_in_them),
					    cmocka_unit_test(returned_it_is_not_there),
					    cmocka_unit_test(shorter_and_empty) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
