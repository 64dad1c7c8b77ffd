/* Files below a directory that somebody else filled. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/rooted.h"

static void files(void **state)
{
	static const struct {
		const char *path;
		int flags;
		size_t max;
		int result;
	} rows[] = {
		{ "in/file", 0, 4, 0 },
		{ "/in/file", 0, 4, 0 },
		{ "link", 0, 4, 0 }, /* to /in/file, which is in the directory */
		{ "link", O_NOFOLLOW, 4, -EINVAL },
		{ "in/file", 0, 3, -EFBIG },
		{ "fifo", 0, 4, -EINVAL },
		{ "in", 0, 4, -EINVAL },
		{ "none", 0, 4, -ENOENT },
		{ "in/file/none", 0, 4, -ENOTDIR },
		{ "../../in/file", 0, 4, 0 },
	};
	char top[] = "/tmp/moe-rooted-XXXXXX";

	assert_non_null(mkdtemp(top));
	_cleanup_(mo_closep) int root = mo_open_at(AT_FDCWD, top, O_PATH | O_DIRECTORY, 0);

	assert_int_equal(mkdirat(root, "in", 0755), 0);
	assert_int_equal(mkfifoat(root, "fifo", 0600), 0);
	assert_int_equal(symlinkat("/in/file", root, "link"), 0);
	_cleanup_(mo_freep) char *path = mo_path(top, "in/file");

	assert_int_equal(mo_write_file(path, "text", 4, 0600, false), 0);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		int r = mo_read_in(root, rows[i].path, rows[i].flags, rows[i].max, &b);

		if (r != rows[i].result || (r == 0) != (b.len == 4 && !memcmp(b.data, "text", 4)))
			fail_msg("row %zu: %d", i, r);
	}
	assert_int_equal(mo_rm_rf(top), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(files) };

	return cmocka_run_group_tests_name("base/rooted", tests, NULL, NULL);
}
