/* How processes ended, as others see it: of a child not reaped yet, and of one that its parent
 * reaped. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

static uint64_t own_namespace(void)
{
	struct stat st;

	return stat("/proc/thread-self/ns/mnt", &st) == 0 ? st.st_ino : 0;
}

/* Its end takes a while: what is open is closed after its namespaces are gone. */
static void open_many(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	l.rlim_cur = MO_MIN(l.rlim_max, 30000);
	setrlimit(RLIMIT_NOFILE, &l);
	for (int fds[2]; pipe(fds) == 0;)
		;
}

static _Noreturn void say_and_stay(int fd, uint64_t number)
{
	open_many();
	if (write(fd, &number, sizeof(number)) == sizeof(number))
		pause();
	_exit(1);
}

static void *outlive(void *arg)
{
	struct mo_proc p = { 0 };

	while (mo_proc_read(getpid(), &p) == 0 && p.state != 'Z')
		sched_yield();
	say_and_stay((int)(intptr_t)arg, own_namespace());
}

/* A child in a mount namespace of its own, whose number it says; 0: none can be made. headless: its
 * first thread has ended, and another goes on. */
static pid_t apart(bool headless, uint64_t *ret_mnt)
{
	int ready[2];
	pthread_t t;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a test that fails nothing is left */
		bool made = unshare(CLONE_NEWNS) == 0;
		if (!made || !headless)
			say_and_stay(ready[1], made ? own_namespace() : 0);
		if (pthread_create(&t, NULL, outlive, (void *)(intptr_t)ready[1]) == 0)
			pthread_exit(NULL);
		_exit(1);
	}
	assert_int_equal(read(ready[0], ret_mnt, sizeof(*ret_mnt)), sizeof(*ret_mnt));
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Until nobody that was found lives. */
static void hunt(uint64_t mnt, const char *marker, const char *text)
{
	struct mo_hunt h = { .mnt = mnt, .marker = marker, .text = text };

	while (mo_hunt_pass(&h) > 0)
		sched_yield();
	mo_hunt_done(&h);
}

/* Both must be right: the number, and what the marker reads there; and at the hunt's end it is
 * dead, with all that it held. */
static void check_kill_in(bool headless)
{
	char marker[] = "/tmp/moe-test-proc-XXXXXX";
	int fd = mkstemp(marker), status;
	uint64_t mnt;
	assert_int_equal(write(fd, "j1.a1\n", 6), 6);
	close(fd);
	pid_t pid = apart(headless, &mnt);
	if (mnt) {
		hunt(mnt, marker, "j1.a2\n");
		hunt(mnt, "/nonexistent", "j1.a1\n");
		hunt(0, marker, "j1.a1\n");
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		hunt(mnt, marker, "j1.a1\n");
		assert_int_equal(waitpid(pid, &status, WNOHANG), pid);
	} else { /* who runs this may make none */
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_int_equal(WTERMSIG(status), SIGKILL);
	unlink(marker);
}

/* What a process has put in the marker's place keeps nobody waiting, and no link of it is followed:
 * who looks is root. */
static void test_kill_in_evil(void **state)
{
	char dir[] = "/tmp/moe-test-proc-XXXXXX";
	uint64_t mnt;
	int status;

	assert_non_null(mkdtemp(dir));
	_cleanup_(mo_freep) char *fifo = mo_printf("%s/fifo", dir),
				 *real = mo_printf("%s/real", dir),
				 *link = mo_printf("%s/link", dir);
	pid_t pid = apart(false, &mnt);

	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(mo_write_file(real, "j1.a1\n", 6, 0600, false) >= 0);
	assert_int_equal(symlink("real", link), 0);
	alarm(60);
	if (mnt) {
		hunt(mnt, fifo, "j1.a1\n");
		hunt(mnt, link, "j1.a1\n");
	}
	alarm(0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(fifo);
	unlink(link);
	unlink(real);
	rmdir(dir);
}

static void test_kill_in(void **state)
{
	check_kill_in(false);
}

/* It must not be taken for a zombie: what its other threads hold, it holds. */
static void test_kill_headless(void **state)
{
	check_kill_in(true);
}

/* It runs a while and knows that; of one that is not there nobody does. */
static void test_sched(void **state)
{
	int64_t cpu = 0, delay = -1, first;

	assert_int_equal(mo_proc_sched(mo_proc_self(), &first, &delay), 0);
	assert_true(first >= 0 && delay >= 0);
	while (cpu < first + 20000)
		assert_int_equal(mo_proc_sched(mo_proc_self(), &cpu, &delay), 0);
	assert_int_equal(mo_proc_sched(INT32_MAX, &cpu, &delay), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_status),   cmocka_unit_test(test_of_the_living),
		cmocka_unit_test(test_kill_in_evil),  cmocka_unit_test(test_kill_in),
		cmocka_unit_test(test_kill_headless), cmocka_unit_test(test_sched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
