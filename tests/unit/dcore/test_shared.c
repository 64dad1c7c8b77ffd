/* One set of engine and profiles for many submits (daemon/core/state/shared.h). */
#include "daemon/core/state/shared_words.h"
#include "tests/unit/dcore/world.h"

static void fill(struct submit *s, const char *kind, const char *profile)
{
	mo_desc_init(&submit_desc, s);
	s->shared = NULL;
	s->owns = false;
	s->recipe.own_lines = 0;
	mo_str_set(&s->engine.kind, kind);
	mo_str_set(&MO_ADD(s, profiles, &env_profile_desc)->name, profile);
}

static void test_copies_share(void **state)
{
	struct shared_pool pool = { 0 };
	struct submit read, a = { 0 }, b = { 0 };

	fill(&read, "torch", "base");
	mo_desc_init(&submit_desc, &a);
	mo_desc_init(&submit_desc, &b);
	shared_pool_copy(&pool, &a, &read);
	shared_pool_copy(&pool, &b, &read);
	assert_ptr_equal(a.shared, b.shared);
	assert_ptr_equal(a.profiles, b.profiles);
	assert_true(mo_desc_equal(&submit_desc, &a, &read));
	/* another pool takes the same set for its own */
	struct shared_pool other = { 0 };
	struct submit c = { 0 };

	mo_desc_init(&submit_desc, &c);
	shared_pool_copy(&other, &c, &a);
	assert_ptr_equal(c.shared, a.shared);
	assert_int_equal(a.shared->refs, 5);
	mo_desc_done(&submit_desc, &a);
	shared_pool_done(&pool);
	assert_string_equal(b.profiles[0].name, "base");
	mo_desc_done(&submit_desc, &b);
	mo_desc_done(&submit_desc, &c);
	shared_pool_done(&other);
	mo_desc_done(&submit_desc, &read);
	(void)state;
}

/* What is to be changed is its own before. */
static void test_a_changed_one(void **state)
{
	struct shared_pool pool = { 0 };
	struct submit read, a = { 0 }, b = { 0 };

	fill(&read, "torch", "base");
	mo_desc_init(&submit_desc, &a);
	mo_desc_init(&submit_desc, &b);
	shared_pool_copy(&pool, &a, &read);
	shared_pool_copy(&pool, &b, &read);
	submit_unique(&a);
	assert_null(a.shared);
	assert_true(mo_desc_equal(&submit_desc, &a, &read));
	mo_vec_clear(&env_profile_desc, (void **)&a.profiles, &a.n_profiles);
	mo_str_set(&a.engine.kind, "command");
	assert_true(mo_desc_equal(&submit_desc, &b, &read));
	submit_unique(&read); /* shares nothing: nothing to do */
	assert_string_equal(read.engine.kind, "torch");
	mo_desc_done(&submit_desc, &a);
	mo_desc_done(&submit_desc, &b);
	shared_pool_done(&pool);
	mo_desc_done(&submit_desc, &read);
	(void)state;
}

static void say(struct submit *s, const char *dir, const char *value)
{
	struct env_item *e;

	MO_ADD(s, env, &env_item_desc);
	MO_ADD(s, env, &env_item_desc);
	mo_strs_add(&s->argv, &s->n_argv, "train");
	mo_strs_add(&s->argv, &s->n_argv, dir);
	mo_strs_add(&s->prepare, &s->n_prepare, "a script");
	e = &s->env[0];
	mo_str_set(&e->name, "A");
	mo_str_set(&e->value, "of the engine");
	e = &s->env[1];
	mo_str_set(&e->name, "B");
	mo_str_set(&e->value, value);
}

/* Words and variables that are the same at the same place are held once, others by each job; who
 * has shared them has them after the first one is gone, and after a change of the set. */
static void test_words(void **state)
{
	struct shared_pool pool = { 0 };
	struct submit x, y, a = { 0 }, b = { 0 };

	fill(&x, "torch", "base");
	say(&x, "/ckpt/x", "1");
	fill(&y, "torch", "base");
	say(&y, "/ckpt/y", "2");
	mo_strs_add(&y.prepare, &y.n_prepare, "one more");
	mo_desc_init(&submit_desc, &a);
	mo_desc_init(&submit_desc, &b);
	shared_pool_copy(&pool, &a, &x);
	shared_pool_copy(&pool, &b, &y);
	assert_ptr_equal(a.shared, b.shared);
	assert_ptr_equal(a.argv[0], b.argv[0]);
	assert_ptr_equal(a.prepare[0], b.prepare[0]);
	assert_ptr_equal(a.env[0].value, b.env[0].value);
	assert_true(mo_desc_equal(&submit_desc, &a, &x));
	assert_true(mo_desc_equal(&submit_desc, &b, &y));
	mo_desc_done(&submit_desc, &a);
	shared_pool_take(&pool, &b); /* as a start does */
	assert_true(mo_desc_equal(&submit_desc, &b, &y));
	submit_unique(&b);
	shared_pool_done(&pool);
	assert_true(mo_desc_equal(&submit_desc, &b, &y));
	mo_str_set(&b.argv[0], "other");
	mo_desc_done(&submit_desc, &b);
	mo_desc_done(&submit_desc, &x);
	mo_desc_done(&submit_desc, &y);
	(void)state;
}

/* A job of the state shares its recipe too, and has its own again where it is changed. */
static void test_recipe(void **state)
{
	struct shared_pool pool = { 0 };
	struct submit x, y, a = { 0 }, b = { 0 };

	fill(&x, "torch", "base");
	say(&x, "/ckpt/x", "1");
	mo_str_set(&x.recipe.name, "x");
	mo_str_set(&x.recipe.bind.cpu, "numa");
	mo_strs_add(&x.recipe.left, &x.recipe.n_left, "parallelism.tp");
	mo_strs_add(&x.warnings, &x.n_warnings, "slow");
	fill(&y, "torch", "base");
	mo_desc_copy(&submit_desc, &y, &x);
	mo_str_set(&y.recipe.name, "y");
	mo_desc_init(&submit_desc, &a);
	mo_desc_init(&submit_desc, &b);
	shared_pool_copy(&pool, &a, &x);
	shared_pool_copy(&pool, &b, &y);
	assert_ptr_not_equal(a.recipe.bind.cpu, b.recipe.bind.cpu);
	words_lend_all(&a);
	words_lend_all(&b);
	assert_ptr_equal(a.recipe.bind.cpu, b.recipe.bind.cpu);
	assert_ptr_equal(a.recipe.left, b.recipe.left);
	assert_ptr_equal(a.argv, b.argv);
	assert_ptr_equal(a.warnings, b.warnings);
	assert_true(mo_desc_equal(&submit_desc, &a, &x));
	assert_true(mo_desc_equal(&submit_desc, &b, &y));
	words_own(&b);
	mo_strs_add(&b.recipe.left, &b.recipe.n_left, "batch.micro");
	mo_str_set(&b.recipe.bind.cpu, "none");
	assert_true(mo_desc_equal(&submit_desc, &a, &x));
	words_lend_all(&b);
	assert_ptr_equal(a.recipe.left[0], b.recipe.left[0]);
	assert_string_equal(b.recipe.left[1], "batch.micro");
	mo_desc_done(&submit_desc, &b);
	mo_desc_done(&submit_desc, &a);
	shared_pool_done(&pool);
	mo_desc_done(&submit_desc, &x);
	mo_desc_done(&submit_desc, &y);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_copies_share),
					    cmocka_unit_test(test_a_changed_one),
					    cmocka_unit_test(test_words),
					    cmocka_unit_test(test_recipe) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
