/* What /proc says of a helper that hangs. */
#include "tests/unit/unit.h"

#include "agent/core/agent/stuck_words.h"
#include "lib/base/util.h"

static void test_call(void **state)
{
	static const struct stuck_number calls[] = { { 0, false }, { 257, true } };
	struct stuck_call c;

	assert_true(stuck_call_read("257 0xffffff9c 0x7ffd10 0x0", calls, 2, &c));
	assert_true(c.has_path);
	assert_int_equal(c.fd, -100); /* AT_FDCWD */
	assert_int_equal(c.path_address, 0x7ffd10);
	assert_true(stuck_call_read("0 0x7 0x1000", calls, 2, &c));
	assert_false(c.has_path);
	assert_int_equal(c.fd, 7);
	assert_false(stuck_call_read("39 0x7 0x1000", calls, 2, &c));
	assert_false(stuck_call_read("running", calls, 2, &c));
	assert_false(stuck_call_read("", calls, 2, &c));
}

static void test_orphan(void **state)
{
	static const char discover[] = "moe-discover\0--at\0/run/moe/at\0--root\0/fake",
			  probe[] = "moe-probe\0--sensors\0gpu\0"
				    "0000:01:00.0",
			  bare[] = "moe-probe";
	struct helper_words w;

	helper_words_read(discover, sizeof(discover), &w);
	assert_string_equal(w.at, "/run/moe/at");
	assert_true(helper_is_orphan("moe-discover", "systemd", &w, "/fake"));
	assert_false(helper_is_orphan("moe-discover", "systemd", &w, NULL));
	assert_false(helper_is_orphan("moe-discover", "moe-agent", &w, "/fake"));
	assert_false(helper_is_orphan("moe-discover", "moectl", &w, "/fake"));
	assert_false(helper_is_orphan("moe-probe", "systemd", &w, "/fake"));
	assert_false(helper_is_orphan("cat", "systemd", &w, "/fake"));
	helper_words_read(probe, sizeof(probe), &w);
	assert_string_equal(w.area, "gpu");
	assert_non_null(w.object);
	assert_true(helper_is_orphan("moe-probe", "systemd", &w, NULL));
	helper_words_read(bare, sizeof(bare), &w);
	assert_false(helper_is_orphan("moe-probe", "systemd", &w, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_orphan),
	};

	return cmocka_run_group_tests_name("stuck_words", tests, NULL, NULL);
}
