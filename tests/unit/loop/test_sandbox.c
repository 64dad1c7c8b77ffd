/* lib/loop/sandbox.h: what a unit's directives mean for the places of an option. systemd itself is
 * asked in tests/booted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "lib/base/fd.h"
#include "lib/loop/sandbox.h"

static char *words(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void expect(const struct mo_sandbox *s, const char *dir, const char *wanted)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = mo_sandbox_writes(s, "state_dir", dir, &err);

	if (!wanted)
		assert_int_equal(r, 0);
	else if (r != -EACCES || !strstr(err.text, wanted))
		fail_msg("%s: %d, '%s', not '%s'", dir, r, err.text ? err.text : "", wanted);
}

static void test_strict(void **state)
{
	char *writable[] = { words("/data/moe/") },
	     *made[] = { words("/var/lib/moe"), words("/run/moe") };
	struct mo_sandbox s = { .unit = words("moed.service"),
				.user = words("moe"),
				.protect_system = words("strict"),
				.protect_home = words("yes"),
				.private_tmp = true,
				.writable = writable,
				.n_writable = 1,
				.made = made,
				.n_made = 2 };

	expect(&s, "/var/lib/moe", NULL); /* systemd makes it: it need not be there */
	expect(&s, "/var/lib/moe/below", NULL);
	expect(&s, "/var/lib/moe2", "`systemctl edit moed.service`");
	expect(&s, "/srv", "ReadWritePaths=/srv");
	expect(&s, "/home/ada", "ProtectHome=");
	expect(&s, "/tmp/x", "PrivateTmp=");
	expect(&s, "", NULL);
	expect(&s, NULL, NULL);
}

static void test_full(void **state)
{
	struct mo_sandbox s = { .unit = words("moe-agent.service"),
				.protect_system = words("full"),
				.protect_home = words("no") };

	expect(&s, "/usr/x", "ProtectSystem=");
	expect(&s, "/etc/moe", "ProtectSystem=");
	if (geteuid() == 0)
		expect(&s, "/var/lib", NULL);
	s.protect_system = words("yes");
	s.protect_home = words("read-only");
	expect(&s, "/root", "ProtectHome=");
	expect(&s, "/boot", "ProtectSystem=");
}

/* Without a unit only the files themselves count. */
static void test_nothing_is_known(void **state)
{
	const struct mo_sandbox s = { 0 };
	char top[] = "/tmp/moe-sandbox-XXXXXX";
	_cleanup_(mo_error_done) struct mo_error missing = { 0 }, under = { 0 };

	assert_non_null(mkdtemp(top));
	_cleanup_(mo_freep) char *file = mo_path(top, "file"), *deep = mo_path(top, "a/b/c"),
				 *below_file = mo_path(file, "x");
	assert_int_equal(mo_sandbox_reads(&s, "tls_key", file, &missing), -ENOENT);
	assert_non_null(strstr(missing.text, "tls_key: "));
	assert_int_equal(mo_write_file(file, "x", 1, 0600, false), 0);
	assert_int_equal(mo_sandbox_reads(&s, "tls_key", file, NULL), 0);
	assert_int_equal(mo_sandbox_writes(&s, "state_dir", deep, NULL), 0);
	assert_int_equal(mo_sandbox_writes(&s, "state_dir", below_file, &under), -ENOTDIR);
	assert_int_equal(mo_rm_rf(top), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_nothing_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
