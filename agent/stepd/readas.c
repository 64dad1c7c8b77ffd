/* A small file that a recipe names (env: {file: PATH}), read in a short-lived child as the user the ranks run as, with a deadline. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/stepd/child.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define READ_DEADLINE_MS 10000

/* O_NONBLOCK: a FIFO in the file's place must not hang the step. */
static int read_plain(const char *path, size_t max, int out) {
	_cleanup_(mo_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	char chunk[4096];
	size_t total = 0;
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
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

static _Noreturn void read_child(const struct mo_identity *who, const char *path, size_t max, int out) {
	if (mo_identity_become(who) < 0)
		_exit(EPERM);
	_exit(-read_plain(path, max, out));
}

int read_file_as(const struct mo_identity *who, const char *path, size_t max, struct mo_buf *b) {
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		read_child(who, path, max, fds[1]);
	close(fds[1]);
	_cleanup_(mo_closep) int in = fds[0];
	if (pid < 0)
		return -errno;
	int64_t end_ms = mo_clock_boot_us() / 1000 + READ_DEADLINE_MS;
	int r = 0;
	for (;;) { /* a child process with a deadline: the file may lie on a dead network mount */
		struct pollfd p = {.fd = in, .events = POLLIN};
		int64_t left = end_ms - mo_clock_boot_us() / 1000;
		if (left <= 0 || poll(&p, 1, (int)left) == 0) {
			r = -ETIMEDOUT;
			break;
		}
		char chunk[4096];
		ssize_t n = read(in, chunk, sizeof(chunk));
		if (n == 0)
			break;
		if (n > 0)
			mo_buf_add(b, chunk, (size_t)n);
	}
	if (r < 0) {
		kill(pid, SIGKILL); /* it may be stuck in the kernel: the subreaper takes it when it ends */
		return r;
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}
