/* One set of engine and profiles for many submits (daemon/core/state/shared.h). */
#include "daemon/core/state/shared.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_copies_share),
					    cmocka_unit_test(test_a_changed_one) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
