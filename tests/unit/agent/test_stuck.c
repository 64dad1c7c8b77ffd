/* Helpers that an agent left behind and that hang: which processes count, and which of the same
 * name do not. The helper is a script of that name; what hangs in the kernel is played by a process
 * that is traced and therefore does not end when it is killed. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/stuck.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define DEADLINE_US 30000000LL

static char dir[64];
static sd_event *loop;
static int n_ended;

static int setup(void **state)
{
	static const char text[] = "#!/bin/sh\necho ready\nread line\n";
	snprintf(dir, sizeof(dir), "/tmp/stuck-test-XXXXXX");
	if (!mkdtemp(dir) || sd_event_new(&loop) < 0)
		return -1;
	_cleanup_(mo_freep) char *script = mo_path(dir, "moe-probe");
	n_ended = 0;
	return mo_write_file(script, text, strlen(text), 0700, false);
}

static int teardown(void **state)
{
	sd_event_unref(loop);
	return mo_rm_rf(dir);
}

static void ended(void *arg, struct orphan *o)
{
	n_ended++;
	orphans_drop(arg, o);
}

/* A helper of the machine below dir that reads one GPU; it ends when *ret_in is closed. */
static pid_t helper(int *ret_in)
{
	_cleanup_(mo_freep) char *script = mo_path(dir, "moe-probe");
	char
		*argv[] = { script,        (char *)"--root",       dir,
			    (char *)"gpu", (char *)"0000:05:00.0", NULL },
		word[6];
	int in[2], out[2];
	assert_int_equal(pipe(in) + pipe(out), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execv(script, argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	assert_int_equal(read(out[0], word, sizeof(word)), sizeof(word));
	close(out[0]);
	*ret_in = in[1];
	return pid;
}

/* valgrind does not know them. */
static bool pidfds(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	mo_close(fd);
	return fd >= 0;
}

static void test_one_by_hand_is_none(void **state)
{
	struct orphans found = { 0 };
	int in;
	pid_t pid = helper(&in);
	assert_int_equal(orphans_find(loop, dir, ended, &found, &found), 0);
	assert_int_equal(found.n, 0);
	close(in);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_one_that_hangs(void **state)
{
	struct orphans found = { 0 }, elsewhere = { 0 };
	int64_t end = mo_clock_boot_us() + DEADLINE_US;
	int in, status;
	pid_t pid = helper(&in);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXIT), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(orphans_find(loop, "/elsewhere", ended, &elsewhere, &elsewhere), 0);
	assert_int_equal(elsewhere.n, 0);
	assert_int_equal(orphans_find(loop, dir, ended, &found, &found), 0);
	bool can = pidfds();
	assert_int_equal(found.n, can);
	if (can) {
		assert_int_equal(found.items[0]->pid, pid);
		assert_string_equal(found.items[0]->area, "gpu");
		assert_string_equal(found.items[0]->object, "0000:05:00.0");
	}
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	while (can && !n_ended && mo_clock_boot_us() < end)
		assert_true(sd_event_run(loop, 1000000) >= 0);
	assert_int_equal(n_ended, can);
	assert_int_equal(found.n, 0);
	orphans_done(&found);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_by_hand_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_that_hangs, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
