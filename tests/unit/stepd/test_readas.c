/* Files that a recipe names are read by a child, whatever it meets: its read that never comes back,
 * and its end that never comes after its last word. Whoever asked hears of each file, or of
 * none. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/stepd/readas.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define SOON_MS 200
#define LONG_MS 60000
#define LOCK_FD 77

static enum { NOWHERE, IN_READ, AT_END } hangs;
static pid_t test_pid;
static char dir[] = "/tmp/moe-readas-XXXXXX";

/* In the place of libc's, for the reader alone: a file system that does not answer. */
ssize_t read(int fd, void *to, size_t n)
{
	if (hangs == IN_READ && getpid() != test_pid) {
		if (fcntl(LOCK_FD, F_GETFD) >= 0)
			syscall(SYS_write, 3, "lock", 4);
		pause();
	}
	return syscall(SYS_read, fd, to, n);
}

void _exit(int status)
{
	if (hangs == AT_END && getpid() != test_pid) {
		syscall(SYS_close_range, 0U, ~0U, 0U);
		pause();
	}
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

/* What it says within that time. */
static void listen_to(int fd, int64_t ms, struct mo_buf *b)
{
	int64_t end = mo_clock_boot_us() / 1000 + ms;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = end - mo_clock_boot_us() / 1000;
		char chunk[4096];

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return;
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n <= 0)
			return;
		mo_buf_add(b, chunk, (size_t)n);
	}
}

/* Whether it ended by itself; else it is killed. */
static bool read_them(struct file_text *files, size_t n, size_t max, int64_t ms)
{
	_cleanup_(mo_buf_done) struct mo_buf said = { 0 };
	struct mo_identity me = { 0 };
	const struct mo_identity_rule rule = { true, 0 };
	int fd = -1, status = 0;

	assert_int_equal(mo_identity_resolve(NULL, &rule, &me, NULL), 0);
	pid_t pid = read_files_as(&me, files, n, max, &fd);
	assert_true(pid > 0);
	listen_to(fd, ms, &said);
	close(fd);
	if (hangs != NOWHERE)
		kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	read_files_take(&said, -ETIMEDOUT, files, n);
	mo_identity_done(&me);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool read_it(const char *name, size_t max, int64_t ms, struct mo_buf *ret, int *ret_error)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);
	struct file_text f = { .path = path };
	bool ended = read_them(&f, 1, max, ms);

	*ret = f.text;
	*ret_error = f.error;
	return ended;
}

static int setup(void **state)
{
	_cleanup_(mo_freep) char *fifo = NULL, *file = NULL;

	test_pid = getpid();
	assert_non_null(mkdtemp(dir));
	fifo = mo_path(dir, "fifo");
	file = mo_path(dir, "file");
	return mkfifo(fifo, 0600) < 0 || mo_write_file(file, "value\n", 6, 0600, false) < 0;
}

static int teardown(void **state)
{
	return mo_rm_rf(dir);
}

static void reads(void **state)
{
	static const struct {
		const char *name;
		size_t max;
		int error;
		const char *text;
	} rows[] = {
		{ "file", 6, 0, "value\n" },     { "file", 5, -EFBIG, NULL },
		{ "nothing", 6, -ENOENT, NULL }, { "fifo", 6, -EMEDIUMTYPE, NULL },
		{ ".", 6, -EMEDIUMTYPE, NULL },
	};

	hangs = NOWHERE;
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		int error = 1;

		assert_true(read_it(rows[i].name, rows[i].max, LONG_MS, &b, &error));
		assert_int_equal(error, rows[i].error);
		assert_true(mo_streq(b.len ? b.data : NULL, rows[i].text));
	}
}

/* In their order, and each has its own answer, however the words of the reader are cut. */
static void many(void **state)
{
	_cleanup_(mo_freep) char *file = mo_path(dir, "file"), *none = mo_path(dir, "nothing");
	struct file_text files[] = { { .path = file }, { .path = none }, { .path = file } };

	hangs = NOWHERE;
	assert_true(read_them(files, ELEMENTSOF(files), 6, LONG_MS));
	assert_string_equal(files[0].text.data, "value\n");
	assert_int_equal(files[1].error, -ENOENT);
	assert_string_equal(files[2].text.data, "value\n");
	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		mo_buf_done(&files[i].text);
	static const char said[] = "\0\0\0\0\2\0\0\0ok\xfe\xff\xff\xff\0\0\0\0";
	for (size_t n = 0; n < sizeof(said); n++) {
		struct file_text two[2] = { { .path = file }, { .path = none } };
		const struct mo_buf b = { .data = (char *)(uintptr_t)said, .len = n };

		read_files_take(&b, -EIO, two, 2);
		assert_int_equal(two[0].error, n < 10 ? -EIO : 0);
		assert_int_equal(two[1].error, n < 18 ? -EIO : -ENOENT);
		assert_int_equal(two[0].text.len, n < 10 ? 0 : 2);
		mo_buf_done(&two[0].text);
		mo_buf_done(&two[1].text);
	}
}

static void hanging(int where, int error)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int got = 1;

	hangs = where;
	assert_false(read_it("file", 6, SOON_MS, &b, &got));
	assert_int_equal(got, error);
	assert_int_equal(b.len, error ? 0 : 6);
}

static void never_read(void **state)
{
	hanging(IN_READ, -ETIMEDOUT);
}
static void never_ends(void **state)
{
	hanging(AT_END, 0);
}

/* A reader that cannot be killed must not look like a living supervisor. */
static void has_no_lock(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int error = 1;

	assert_int_equal(dup2(STDERR_FILENO, LOCK_FD), LOCK_FD);
	hangs = IN_READ;
	assert_false(read_it("file", 6, SOON_MS, &b, &error));
	assert_int_equal(error, -ETIMEDOUT);
	close(LOCK_FD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),       cmocka_unit_test(many),
		cmocka_unit_test(never_read),  cmocka_unit_test(never_ends),
		cmocka_unit_test(has_no_lock),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
