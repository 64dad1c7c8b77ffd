/* Files, locks, look-up of data files, core time, log lines: in a directory of its own. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/coretime.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

static char dir[64];

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/moe-unit-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	return mo_rm_rf(dir);
}

static void test_write_read(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "file%d", 1),
				 *missing = mo_path(dir, "no/such"), *tmp = NULL;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct stat st;

	assert_int_equal(mo_write_file(path, "hello", 5, 0600, true), 0);
	assert_int_equal(mo_write_file(path, "world!", 6, 0640, false), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	mo_buf_str(&b, "kept ");
	assert_int_equal(mo_read_file(path, 5, &b), -EFBIG);
	assert_string_equal(b.data, "kept ");
	assert_int_equal(mo_read_file(path, 6, &b), 0);
	assert_string_equal(b.data, "kept world!");
	assert_int_equal(mo_read_file(missing, 100, &b), -ENOENT);
	assert_int_equal(mo_read_file(dir, 100, &b), -EISDIR);
	assert_int_equal(mo_write_file(missing, "x", 1, 0600, true), -ENOENT);
	/* a failed replacement leaves no temporary file: the directory can be removed */
	tmp = mo_path(dir, "sub");
	assert_int_equal(mo_mkdir_p(tmp, 0700, false), 0);
	assert_int_equal(mo_write_file(tmp, "x", 1, 0600, true), -EISDIR);
	assert_int_equal(rmdir(tmp), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void test_mkdir_rm(void **state)
{
	_cleanup_(mo_freep) char *deep = mo_path(dir, "a/b/c"), *top = mo_path(dir, "a"),
				 *outside = mo_path(dir, "outside"),
				 *link = mo_path(dir, "a/b/link");
	_cleanup_(mo_freep) char *file = mo_path(dir, "file"), *below = mo_path(dir, "file/x"),
				 *retained = mo_path(outside, "kept");

	assert_int_equal(mo_mkdir_p(deep, 0700, false), 0);
	assert_int_equal(mo_mkdir_p(deep, 0700, false), 0);
	assert_int_equal(mo_mkdir_p(outside, 0700, false), 0);
	assert_int_equal(mo_write_file(retained, "", 0, 0600, false), 0);
	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(mo_write_file(file, "", 0, 0600, false), 0);
	assert_int_equal(mo_mkdir_p(file, 0700, false), -ENOTDIR);
	assert_int_equal(mo_mkdir_p(below, 0700, false), -ENOTDIR);
	assert_int_equal(mo_rm_rf(top), 0);
	assert_int_equal(access(top, F_OK), -1);
	assert_int_equal(access(retained, F_OK), 0);
	assert_int_equal(mo_rm_rf(top), 0);
	assert_int_equal(mo_rm_rf(file), 0);
	assert_int_equal(mo_rm_rf(outside), 0);
}

static void test_rm_depth(void **state)
{
	_cleanup_(mo_freep) char *top = mo_path(dir, "deep");
	_cleanup_(mo_closep) int at = -1;

	assert_int_equal(mkdir(top, 0700), 0);
	at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 300; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0700), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		mo_close(at);
		at = next;
	}
	assert_int_equal(mo_rm_rf(top), -ELOOP);
	/* bring the lower part up: both halves are below the limit */
	{
		_cleanup_(mo_buf_done) struct mo_buf from = { 0 };
		_cleanup_(mo_freep) char *to = mo_path(dir, "half");

		mo_buf_str(&from, top);
		for (int i = 0; i < 150; i++)
			mo_buf_str(&from, "/d");
		assert_int_equal(rename(from.data, to), 0);
		assert_int_equal(mo_rm_rf(to), 0);
		assert_int_equal(mo_rm_rf(top), 0);
	}
}

/* A child between fork and exec keeps the lock of its parent for a moment longer. */
static void test_lock_soon(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "lock");
	int fd = mo_lock_file(path), go[2], status;
	char c;

	assert_true(fd >= 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		close(go[1]);
		_exit(read(go[0], &c, 1) || poll(NULL, 0, 50));
	}
	mo_close(fd);
	assert_int_equal(mo_lock_file(path), -EWOULDBLOCK);
	close(go[1]);
	close(go[0]);
	fd = mo_lock_file_soon(path);
	assert_true(fd >= 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	mo_close(fd);
	unlink(path);
}

static void test_lock(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "lock"), *missing = mo_path(dir, "no/lock");
	int fd = mo_lock_file(path), other;
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(mo_lock_file(path), -EWOULDBLOCK);
	assert_int_equal(mo_lock_file(missing), -ENOENT);
	fd = mo_close(fd);
	assert_int_equal(fd, -1);
	assert_int_equal(mo_close(-1), -1);
	other = mo_lock_file(path);
	assert_true(other >= 0);
	mo_close(other);
	unlink(path);
}

static void test_identity(void **state)
{
	_cleanup_(mo_freep) char *boot = NULL, *fake = NULL, *a = mo_random_hex(16),
				 *b = mo_random_hex(16);

	unsetenv("MOE_BOOT_ID");
	boot = mo_boot_id();
	assert_int_equal(strlen(boot), 32);
	assert_int_equal(strspn(boot, "0123456789abcdef"), 32);
	setenv("MOE_BOOT_ID", "made-up", 1);
	fake = mo_boot_id();
	unsetenv("MOE_BOOT_ID");
	assert_string_equal(fake, "made-up");
	assert_int_equal(strlen(a), 32);
	assert_string_not_equal(a, b);
}

static void test_data_file(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "thing.yaml"), *found = NULL, *tree = NULL;

	assert_int_equal(mo_write_file(path, "", 0, 0600, false), 0);
	setenv("MOE_DATA_DIR", dir, 1);
	found = mo_data_file("thing.yaml");
	assert_string_equal(found, path);
	assert_null(mo_data_file("nothing.yaml"));
	assert_null(mo_data_file("../thing.yaml"));
	assert_null(mo_data_file(path));
	assert_null(mo_data_file(""));
	/* this program lies in the source tree, so its config/ is the last place */
	tree = mo_data_file("engines/tiny_moe/train.py");
	assert_string_equal(tree, MO_SOURCE_DIR "/config/engines/tiny_moe/train.py");
	unsetenv("MOE_DATA_DIR");
	assert_null(mo_data_file("thing.yaml"));
	unlink(path);
}

static void test_libexec(void **state)
{
	_cleanup_(mo_freep) char *self = mo_libexec("test_fd");

	assert_non_null(self);
	assert_int_equal(access(self, X_OK), 0);
	assert_null(mo_libexec("no-such-program"));
}

static void test_coretime(void **state)
{
	int64_t wall = mo_clock_wall_us(), future = wall - wall % 1000 + 3600000000, first, last;
	struct mo_coretime t;

	mo_coretime_set(&t, wall, mo_clock_boot_us());
	first = mo_coretime_now(&t);
	assert_true(first >= wall - 1000 && first % 1000 == 0);
	for (int i = 0; i < 1000; i++) {
		last = mo_coretime_now(&t);
		assert_true(last >= first);
		first = last;
	}
	mo_coretime_set(&t, future, mo_clock_boot_us());
	assert_true(mo_coretime_now(&t) >= future);
	mo_coretime_set(&t, wall, mo_clock_boot_us()); /* the one way back */
	assert_true(mo_coretime_now(&t) < future);
	assert_true(mo_clock_mono_ns() > 0 && mo_clock_boot_us() > 0);
}

/* What a child with stderr on a pipe logs. */
static void test_log_lines(void **state)
{
	char text[16384] = "";
	int p[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		dup2(p[1], STDERR_FILENO);
		setenv("JOURNAL_STREAM", "1:2", 1); /* somebody else's */
		mo_log_open("unit", MO_INFO);
		mo_log(MO_WARNING, NULL,
		       &(struct mo_log_where){
			       .job = 7, .attempt = 2, .rank = 0, .node = "n1", .cause = "oom" },
		       "two\nlines %d", 5);
		mo_log(MO_DEBUG, NULL, NULL, "never");
		mo_log(MO_INFO, NULL, &(struct mo_log_where){ .rank = 3 }, "plain");
		_exit(0);
	}
	mo_close(p[1]);
	for (size_t len = 0; (n = read(p[0], text + len, sizeof(text) - len - 1)) > 0;
	     len += (size_t)n)
		text[len + (size_t)n] = 0;
	mo_close(p[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_string_equal(text, "<4>two lines 5 job=j-7 attempt=2 rank=0 node=n1 "
				  "cause=oom\n<6>plain\n");
}

/* The native protocol: fields with their length, whatever the value holds. */
static void test_log_journal(void **state)
{
	static const char expect[] =
		"MESSAGE\n\x07\0\0\0\0\0\0\0two\nl 5\nPRIORITY\n\x01\0\0\0\0\0\0\0"
		"3\nSYSLOG_IDENTIFIER\n\x04\0\0\0\0\0\0\0unit\nMESSAGE_ID\n\x04\0\0\0\0\0\0\0"
		"abcd\n"
		"MOE_JOB\n\x03\0\0\0\0\0\0\0j-7\nMOE_RANK\n\x01\0\0\0\0\0\0\0"
		"0\nMOE_NODE\n\x02\0\0\0\0\0\0\0n1\n";
	_cleanup_(mo_freep) char *path = mo_path(dir, "journal");
	_cleanup_(mo_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), other = -1;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char got[4096] = "", stream[64];
	struct stat st;
	int status, p[2];
	pid_t pid;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	other = p[0];
	assert_int_equal(fstat(p[1], &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	pid = fork();
	if (pid == 0) {
		dup2(p[1], STDERR_FILENO);
		setenv("JOURNAL_STREAM", stream, 1);
		setenv("MOE_JOURNAL_SOCKET", path, 1);
		mo_log_open("unit", MO_INFO);
		mo_log(MO_ERR, "abcd", &(struct mo_log_where){ .job = 7, .rank = 0, .node = "n1" },
		       "two\nl %d", 5);
		_exit(0);
	}
	mo_close(p[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), (ssize_t)sizeof(expect) - 1);
	assert_memory_equal(got, expect, sizeof(expect) - 1);
	assert_int_equal(read(other, got, sizeof(got)), 0); /* nothing on stderr */
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_read),  cmocka_unit_test(test_mkdir_rm),
		cmocka_unit_test(test_rm_depth),    cmocka_unit_test(test_lock),
		cmocka_unit_test(test_lock_soon),   cmocka_unit_test(test_identity),
		cmocka_unit_test(test_data_file),   cmocka_unit_test(test_libexec),
		cmocka_unit_test(test_coretime),    cmocka_unit_test(test_log_lines),
		cmocka_unit_test(test_log_journal),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
