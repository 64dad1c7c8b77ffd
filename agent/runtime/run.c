/* See run.h. */
#include "agent/runtime/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/core/stepd/runtime_image.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define SAID_MAX 4096 /* of its standard error, the end */
#define NOT_EXECUTED 127

/* A child and the reading ends of what it writes. */
struct command {
	pid_t pid;
	int fds[2]; /* standard output, standard error; -1: it has closed it */
	struct mo_buf said;
};

static _Noreturn void become(char *const *argv, int out, int err)
{
	int in = mo_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);

	setpgid(0, 0);
	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(err, STDERR_FILENO) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(NOT_EXECUTED);
	execvp(argv[0], argv);
	_exit(NOT_EXECUTED);
}

static int begin(char *const *argv, struct command *c)
{
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(err, O_CLOEXEC) < 0) {
		int r = -errno;

		mo_close(out[0]);
		mo_close(out[1]);
		return r;
	}
	c->pid = fork();
	if (c->pid == 0)
		become(argv, out[1], err[1]);
	int r = c->pid < 0 ? -errno : 0;

	mo_close(out[1]);
	mo_close(err[1]);
	c->fds[0] = out[0];
	c->fds[1] = err[0];
	return r;
}

static void close_stream(struct command *c, int i)
{
	c->fds[i] = mo_close(c->fds[i]);
}

static void read_stream(struct command *c, int i, struct mo_buf *out)
{
	char chunk[16384];
	ssize_t n = mo_read(c->fds[i], chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close_stream(c, i);
		return;
	}
	mo_buf_add(i == 0 ? out : &c->said, chunk, (size_t)n);
	if (c->said.len > SAID_MAX)
		mo_buf_consume(&c->said, c->said.len - SAID_MAX);
}

/* Until both streams are closed. 0, -ETIMEDOUT or -E2BIG. */
static int collect(struct command *c, int64_t end_us, struct mo_buf *out)
{
	while (c->fds[0] >= 0 || c->fds[1] >= 0) {
		struct pollfd p[] = { { .fd = c->fds[0], .events = POLLIN },
				      { .fd = c->fds[1], .events = POLLIN } };
		int64_t left = end_us - mo_clock_boot_us();

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(p, 2, (int)(left / 1000) + 1) < 0)
			continue;
		for (int i = 0; i < 2; i++)
			if (p[i].revents)
				read_stream(c, i, out);
		if (out->len > RUNTIME_ANSWER_MAX)
			return -E2BIG;
	}
	return 0;
}

/* It has closed its streams, so it is about to end. */
static int reap(const struct command *c, int64_t end_us, int *ret_status)
{
	for (;;) {
		pid_t pid = waitpid(c->pid, ret_status, WNOHANG);

		if (pid == c->pid)
			return 0;
		if (mo_clock_boot_us() >= end_us)
			return -ETIMEDOUT;
		mo_clock_rest_ms(1);
	}
}

static int failed(const struct command *c, const char *name, int status, struct mo_error *err)
{
	const char *text = c->said.data ? c->said.data : "";
	size_t n = c->said.len, start;

	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	for (start = n; start > 0 && text[start - 1] != '\n';)
		start--;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_EXECUTED && n == 0)
		return mo_error_set(err, -ENOENT, "%s is not installed", name);
	if (n > start)
		return mo_error_set(err, -EREMOTEIO, "%s says: %.*s", name, (int)(n - start),
				    text + start);
	return mo_error_set(err, -EREMOTEIO, "%s ended with %s %d", name,
			    WIFSIGNALED(status) ? "signal" : "status",
			    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int run_command(char *const *argv, int64_t end_us, struct mo_buf *out, struct mo_error *err)
{
	struct command c = { .fds = { -1, -1 } };
	int status = 0, r = begin(argv, &c);

	if (r < 0)
		return mo_error_set(err, r, "%s cannot be started: %s", argv[0], strerror(-r));
	r = collect(&c, end_us, out);
	if (r == 0)
		r = reap(&c, end_us, &status);
	if (r < 0) {
		kill(-c.pid, SIGKILL);
		kill(c.pid, SIGKILL); /* before it has a group of its own */
		waitpid(c.pid, NULL, WNOHANG);
	}
	if (r == -ETIMEDOUT)
		mo_error_set(err, r, "%s %s did not end in time", argv[0], argv[1] ? argv[1] : "");
	else if (r == -E2BIG)
		mo_error_set(err, r, "%s %s writes without an end", argv[0],
			     argv[1] ? argv[1] : "");
	else if (status != 0)
		r = failed(&c, argv[0], status, err);
	close_stream(&c, 0);
	close_stream(&c, 1);
	mo_buf_done(&c.said);
	mo_buf_str(out, "");
	return r;
}
