/* The tokens of a node on a disk that fails: what is spoken with is there when power was lost. */
#include "tests/unit/seams/agent/bed.h"

#include <errno.h>

#include "agent/token.h"

#define STATE "/var/lib/moe"
#define GIVEN "moej_0123456789"
#define FIRST "moe_agent_first_0123456789"
#define SECOND "moe_agent_second_0123456789"

static const struct agent_config config = { .token_file = (char *)"/etc/moe/token",
					    .state_dir = (char *)STATE };

/* The keeping of a second token fails at its n-th change; whether it did. *ret_spoken: what the
 * node speaks with then, borrowed by t. */
static bool keep_fails_at(struct node_token *t, size_t n, const char **ret_spoken)
{
	seam_alive();
	seam_put("/etc/moe/token", GIVEN "\n");
	assert_int_equal(node_token_keep(t, FIRST), 0);
	seam_fail_after(n, ENOSPC);
	bool failed = node_token_keep(t, SECOND) < 0;

	seam_fail_after(0, 0);
	*ret_spoken = node_token_choose(t);
	return failed;
}

static void assert_lasts(const char *spoken)
{
	struct node_token *after;

	seam_power_loss(0);
	after = node_token_new(&config);
	assert_string_equal(node_token_choose(after), spoken);
	node_token_free(after);
	seam_disk_done();
}

static void test_not_kept(void **state)
{
	bool failed = true, second = false;

	for (size_t n = 1; failed && n < 100; n++) {
		struct node_token *t = node_token_new(&config);
		_cleanup_(mo_freep) char *spoken = NULL;
		const char *chosen;

		failed = keep_fails_at(t, n, &chosen);
		spoken = mo_strdup(chosen);
		second |= failed && mo_streq(spoken, SECOND);
		node_token_free(t);
		assert_lasts(spoken);
	}
	assert_false(failed);
	assert_true(second); /* its name was there, unsynced, once */
}

/* For as long as the disk fails, the one before is spoken with. */
static void test_still_not_kept(void **state)
{
	bool failed = true;

	for (size_t n = 1; failed && n < 100; n++) {
		struct node_token *t = node_token_new(&config);
		const char *chosen;

		assert_int_equal(node_token_keep(t, FIRST), 0);
		seam_fail_after(n, ENOSPC);
		failed = node_token_keep(t, SECOND) < 0;
		chosen = node_token_choose(t);
		assert_string_equal(chosen, failed ? FIRST : SECOND);
		seam_fail_after(0, 0);
		node_token_free(t);
		seam_disk_done();
		seam_alive();
	}
	assert_false(failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_kept),
		cmocka_unit_test(test_still_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
