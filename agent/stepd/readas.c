/* A small file that a recipe names (env: {file: PATH}), read in a short-lived child as the user
 * the ranks run as, until a deadline: what lies on a dead network mount cannot even be killed.
 * Such a child has nothing of ours but its pipe, above all not the step's lock, whose holder
 * counts as the supervisor, and it ends with us. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/stepd/readas.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

/* O_NONBLOCK: a FIFO in the file's place must not hang the step. */
static int read_plain(const char *path, size_t max, int out)
{
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;

	if (fd < 0 || mo_stat_fd(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	char chunk[4096];
	size_t total = 0;
	for (;;) {
		ssize_t n = mo_read(fd, chunk, sizeof(chunk));

		if (n <= 0)
			return n < 0 ? -errno : 0;
		total += (size_t)n;
		if (total > max)
			return -EFBIG;
		int r = mo_write_all(out, chunk, (size_t)n);

		if (r < 0)
			return r;
	}
}

static _Noreturn void read_child(const struct mo_identity *who, const char *path, size_t max,
				 int out, pid_t parent)
{
	int to = fcntl(out, F_DUPFD_CLOEXEC, 3);

	if (to < 0 || dup2(to, 3) < 0)
		_exit(EMFILE);
	syscall(SYS_close_range, 4U, ~0U, 0U);
	if (mo_identity_become(who) < 0)
		_exit(EPERM);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	_exit(-read_plain(path, max, 3));
}

/* 0 at its end, -ETIMEDOUT. */
static int listen_to(int in, int64_t end_ms, struct mo_buf *b)
{
	for (;;) {
		struct pollfd p = { .fd = in, .events = POLLIN };
		int64_t left = end_ms - mo_clock_boot_us() / 1000;

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return -ETIMEDOUT;
		char chunk[4096];
		ssize_t n = mo_read(in, chunk, sizeof(chunk));

		if (n == 0)
			return 0;
		if (n > 0)
			mo_buf_add(b, chunk, (size_t)n);
	}
}

/* Its end, which need not follow that of its output. -ETIMEDOUT: it lives still. */
static int wait_for(pid_t pid, int64_t end_ms, int *ret_status)
{
	_cleanup_(mo_closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -errno;
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		pid_t taken = waitpid(pid, ret_status, WNOHANG);
		int64_t left = end_ms - mo_clock_boot_us() / 1000;

		if (taken != 0 && (taken > 0 || errno != EINTR))
			return taken > 0 ? 0 : -errno;
		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return -ETIMEDOUT;
	}
}

int read_file_as(const struct mo_identity *who, const char *path, size_t max, int64_t end_ms,
		 struct mo_buf *b)
{
	pid_t self = getpid();
	int fds[2], status = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		read_child(who, path, max, fds[1], self);
	close(fds[1]);
	_cleanup_(mo_closep) int in = fds[0];
	if (pid < 0)
		return -errno;
	int r = listen_to(in, end_ms, b);

	if (r == 0)
		r = wait_for(pid, end_ms, &status);
	if (r < 0) {
		/* it may be stuck in the kernel: the subreaper takes it when it ends */
		kill(pid, SIGKILL);
		return r;
	}
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}
