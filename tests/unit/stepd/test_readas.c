/* Files that a recipe names are read until a deadline, whatever their reader meets: its read that never
 * comes back, and its end that never comes after its last word. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
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

static int64_t in(int64_t ms)
{
	return mo_clock_boot_us() / 1000 + ms;
}

static int read_it(const char *name, size_t max, int64_t ms, struct mo_buf *b)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);
	struct mo_identity me = { 0 };
	const struct mo_identity_rule rule = { true, 0 };

	assert_int_equal(mo_identity_resolve(NULL, &rule, &me, NULL), 0);
	int r = read_file_as(&me, path, max, in(ms), b);
	mo_identity_done(&me);
	return r;
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
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	hangs = NOWHERE;
	assert_int_equal(read_it("file", 6, LONG_MS, &b), 0);
	assert_string_equal(b.data, "value\n");
	assert_int_equal(read_it("file", 5, LONG_MS, &b), -EFBIG);
	assert_int_equal(read_it("nothing", 6, LONG_MS, &b), -ENOENT);
	assert_int_equal(read_it("fifo", 6, LONG_MS, &b), -EMEDIUMTYPE);
	assert_int_equal(read_it(".", 6, LONG_MS, &b), -EMEDIUMTYPE);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* all were taken */
}

/* Given up, killed and left to be taken. */
static void hanging(int where)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int status = 0;

	hangs = where;
	assert_int_equal(read_it("file", 6, SOON_MS, &b), -ETIMEDOUT);
	assert_int_equal(b.len, where == AT_END ? 6 : 0);
	assert_true(waitpid(-1, &status, 0) > 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void never_read(void **state) { hanging(IN_READ); }
static void never_ends(void **state) { hanging(AT_END); }

/* A reader that cannot be killed must not look like a living supervisor. */
static void has_no_lock(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	assert_int_equal(dup2(STDERR_FILENO, LOCK_FD), LOCK_FD);
	hangs = IN_READ;
	assert_int_equal(read_it("file", 6, SOON_MS, &b), -ETIMEDOUT);
	assert_true(waitpid(-1, NULL, 0) > 0);
	assert_int_equal(b.len, 0);
	close(LOCK_FD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(never_read),
		cmocka_unit_test(never_ends),
		cmocka_unit_test(has_no_lock),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
