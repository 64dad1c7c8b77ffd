/* How processes ended, as others see it: of a child not reaped yet, and of one that its parent
 * reaped. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/proc.h"

/* A child that ends at once, by the signal or with the status; its descriptor. */
static int ended_child(int sig, int code, pid_t *ret)
{
	*ret = fork();
	assert_true(*ret >= 0);
	if (*ret == 0) {
		const struct sigaction dfl = { .sa_handler = SIG_DFL };
		if (sig) {
			sigaction(sig, &dfl, NULL);
			raise(sig);
		}
		_exit(code);
	}
	int fd = (int)syscall(SYS_pidfd_open, *ret, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 20000), 1);
	return fd;
}

static void test_exit_status(void **state)
{
	const struct {
		int sig, code;
	} all[] = { { 0, 0 }, { 0, 7 }, { SIGTERM, 0 }, { SIGKILL, 0 } };

	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		pid_t pid;
		int status = -1, seen = -1;
		_cleanup_(mo_closep) int fd = ended_child(all[i].sig, all[i].code, &pid);
		assert_int_equal(mo_proc_exit_status(fd, pid, &seen), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(seen, status);
		seen = -1;
		int r = mo_proc_exit_status(fd, pid, &seen);
		/* an older kernel cannot say any more, and does not guess */
		assert_true(r == -ENODATA ? seen == -1 : r == 0 && seen == status);
	}
}

static void test_of_the_living(void **state)
{
	_cleanup_(mo_closep) int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int seen = -1;

	assert_int_equal(mo_proc_exit_status(fd, getpid(), &seen), -ENODATA);
	assert_int_equal(seen, -1);
}

/* A child in a mount namespace of its own; *ret_mnt: its number. */
static pid_t apart(uint64_t *ret_mnt)
{
	int ready[2];
	char c;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		bool made = unshare(CLONE_NEWNS) == 0;
		if (write(ready[1], made ? "y" : "n", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/ns/mnt", (int)pid);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	*ret_mnt = st.st_ino;
	if (c == 'n') {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return 0;
	}
	return pid;
}

/* Both must be right: the number, and what the marker reads there. */
static void test_kill_in(void **state)
{
	char marker[] = "/tmp/moe-test-proc-XXXXXX";
	int fd = mkstemp(marker), status;
	uint64_t mnt;
	assert_int_equal(write(fd, "j1.a1\n", 6), 6);
	close(fd);
	pid_t pid = apart(&mnt);
	if (!pid) { /* who runs this may make none */
		unlink(marker);
		return;
	}
	assert_int_equal(mo_proc_kill_in(mnt, marker, "j1.a2\n"), 0);
	assert_int_equal(mo_proc_kill_in(mnt, "/nonexistent", "j1.a1\n"), 0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(mo_proc_kill_in(mnt, marker, "j1.a1\n"), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(mo_proc_kill_in(mnt, marker, "j1.a1\n"), 0);
	unlink(marker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_status),
		cmocka_unit_test(test_of_the_living),
		cmocka_unit_test(test_kill_in),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
