/* Files with secrets and the mode they may have; URLs over which no token is sent. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/address.h"
#include "lib/base/fd.h"
#include "lib/base/secret.h"

static void loopback(void **state)
{
	static const char *const yes[] = { "127.0.0.1", "127.255.1.2", "::1", "::ffff:127.0.0.1" };
	static const char *const no[] = { "",
					  "128.0.0.1",
					  "10.0.0.1",
					  "0.0.0.0",
					  "::",
					  "::2",
					  "localhost",
					  "127.0.0.1.evil.example",
					  "::ffff:10.0.0.1" };

	for (size_t i = 0; i < ELEMENTSOF(yes); i++)
		assert_true(mo_address_loopback(yes[i]));
	for (size_t i = 0; i < ELEMENTSOF(no); i++)
		assert_false(mo_address_loopback(no[i]));
}

static void clear_text(void **state)
{
	static const char *const fine[] = {
		"unix:/run/moe/moed.sock", "https://controller:7070", "http://127.0.0.1:7070",
		"http://localhost",        "http://LOCALHOST:1/",     "http://[::1]:7070/v1",
		"http://127.0.0.1/?a=@b",
	};
	static const char *const refused[] = {
		"http://controller:7070",
		"http://10.0.0.1",
		"HTTP://10.0.0.1",
		"http://127.0.0.1@10.0.0.1:7070",
		"http://localhost:1@evil.example/",
		"http://127.0.0.1.evil.example",
		"http://[::2]:7070",
		"http://[fe80::1",
		"http://0.0.0.0:7070",
	};

	for (size_t i = 0; i < ELEMENTSOF(fine); i++)
		assert_false(mo_url_clear_text(fine[i]));
	for (size_t i = 0; i < ELEMENTSOF(refused); i++)
		assert_true(mo_url_clear_text(refused[i]));
}

static int judged(const char *path, mode_t mode)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	assert_int_equal(chmod(path, mode), 0);
	int r = mo_secret_check(path, &err);
	assert_true((r == 0) == (err.text == NULL));
	assert_true(r != -EPERM || strstr(err.text, "chmod 600"));
	return r;
}

static void modes(void **state)
{
	char dir[] = "/tmp/moe-secret-XXXXXX";
	bool root = geteuid() == 0;

	assert_non_null(mkdtemp(dir));
	_cleanup_(mo_freep) char *path = mo_path(dir, "token"), *token = NULL;
	assert_int_equal(mo_write_file(path, " moe_1\r\nmore\n", 13, 0600, false), 0);
	assert_int_equal(judged(path, 0600), 0);
	assert_int_equal(judged(path, 0400), 0);
	assert_int_equal(judged(path, 0644), -EPERM);
	assert_int_equal(judged(path, 0604), -EPERM);
	assert_int_equal(judged(path, 0602), -EPERM);
	assert_int_equal(judged(path, 0620), -EPERM);
	/* root:moe, for a service's group */
	assert_int_equal(judged(path, 0640), root ? 0 : -EPERM);
	if (root) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(judged(path, 0640), -EPERM);
		assert_int_equal(judged(path, 0600), 0);
	}
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(mo_token_read(path, &token, NULL), 0);
	assert_string_equal(token, "moe_1");
	assert_int_equal(mo_write_file(path, "\n", 1, 0600, false), 0);
	assert_int_equal(mo_token_read(path, &token, NULL), -ENODATA);
	assert_int_equal(mo_secret_check(dir, NULL), -EISDIR);
	assert_int_equal(mo_rm_rf(dir), 0);
	assert_int_equal(mo_secret_check(path, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(loopback),
					    cmocka_unit_test(clear_text), cmocka_unit_test(modes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
