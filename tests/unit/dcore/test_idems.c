/* Idempotency keys: scope, age, number; and the index after a load. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>

#include "lib/model/limits.h"

static void add(struct core *c, const char *caller, int64_t n, int64_t now)
{
	char key[32];
	struct submit s;

	mo_desc_init(&submit_desc, &s);
	snprintf(key, sizeof(key), "key-%lld", (long long)n);
	s.user = (char *)caller;
	s.idempotency_key = key;
	s.digest = (char *)"d";
	idem_add(c, &s, n, now);
}

static int64_t job_of(const struct core *c, const char *caller, int64_t n, int64_t now)
{
	char key[32];

	snprintf(key, sizeof(key), "key-%lld", (long long)n);
	const struct idem *i = idem_find(c, caller, key, now);
	return i ? i->job : MO_NONE;
}

static void test_scope(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default);

	for (int64_t i = 0; i < 5000; i++)
		add(c, i % 2 ? "ada" : "bob", i, 1000 + i);
	for (int64_t i = 0; i < 5000; i++) {
		assert_int_equal(job_of(c, i % 2 ? "ada" : "bob", i, 10000), i);
		assert_int_equal(job_of(c, i % 2 ? "bob" : "ada", i, 10000), MO_NONE);
	}
	assert_int_equal(job_of(c, "ada", 5001, 10000), MO_NONE);
	/* of the same key the newest counts: the older one had expired when it was added */
	add(c, "ada", 1, MO_IDEM_RETAINED_US + 5000);
	assert_int_equal(job_of(c, "ada", 1, MO_IDEM_RETAINED_US + 6000), 1);
	assert_int_equal(job_of(c, "ada", 3, MO_IDEM_RETAINED_US + 6000), MO_NONE);
}

static void test_age_and_number(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default);
	const struct state *s = core_state(c);
	int64_t n = MO_IDEMS_MAX + MO_IDEMS_MAX / 2;

	for (int64_t i = 0; i < n; i++) {
		add(c, "ada", i, i);
		assert_true(s->n_idems <= MO_IDEMS_MAX);
	}
	assert_int_equal(job_of(c, "ada", 0, n), MO_NONE);
	for (int64_t i = n - (int64_t)s->n_idems; i < n; i += 97)
		assert_int_equal(job_of(c, "ada", i, n), i);
	assert_true(s->n_idems > MO_IDEMS_MAX / 2);
	/* two days later each new key makes room for itself */
	for (int64_t i = 0; i < 200; i++)
		add(c, "ada", n + i, 2 * MO_IDEM_RETAINED_US + i);
	assert_true(s->n_idems < 2000);
	assert_int_equal(job_of(c, "ada", n + 199, 2 * MO_IDEM_RETAINED_US + 300), n + 199);
	assert_int_equal(job_of(c, "ada", n - 1, 2 * MO_IDEM_RETAINED_US + 300), MO_NONE);
}

static void test_load(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default),
					  *fresh = core_new(&core_config_default);
	struct state copy;

	for (int64_t i = 0; i < 3000; i++)
		add(c, "ada", i, i);
	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, core_state(c));
	core_load(fresh, &copy);
	for (int64_t i = 0; i < 3000; i++)
		assert_int_equal(job_of(fresh, "ada", i, 4000), i);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scope),
					    cmocka_unit_test(test_age_and_number),
					    cmocka_unit_test(test_load) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
