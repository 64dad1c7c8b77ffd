/* What this machine, or a recorded one, has: runs moe-discover with a deadline, because a file
 * of a wedged device can hang for ever. A helper that does not even die of SIGKILL is left
 * behind to init. Called by local_up.c. */
#include "cli/local_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/wire/decode.h"

#define PROBE_LIMIT_US (10 * 1000000LL)
#define AT_MAX 65536

struct child {
	pid_t pid;
	int out, err;
};

static int spawn(const char *path, char *const *argv, struct child *ret, struct mo_error *err)
{
	int out[2], errors[2];
	if (pipe2(out, O_CLOEXEC) < 0)
		return mo_error_set(err, -errno, "pipe: %s", strerror(errno));
	if (pipe2(errors, O_CLOEXEC) < 0) {
		mo_close(out[0]);
		mo_close(out[1]);
		return mo_error_set(err, -errno, "pipe: %s", strerror(errno));
	}
	*ret = (struct child){ .pid = fork(), .out = out[0], .err = errors[0] };
	if (ret->pid == 0) {
		if (dup2(out[1], STDOUT_FILENO) >= 0 && dup2(errors[1], STDERR_FILENO) >= 0)
			execv(path, argv);
		_exit(127);
	}
	mo_close(out[1]);
	mo_close(errors[1]);
	return ret->pid < 0 ? mo_error_set(err, -errno, "%s: fork: %s", path, strerror(errno)) : 0;
}

/* Until the helper closes its output; false: not by `end`. */
static bool read_until(int fd, int64_t end, struct mo_buf *b)
{
	char piece[65536];
	for (;;) {
		int64_t left = end - mo_clock_boot_us();
		struct pollfd p = { .fd = fd, .events = POLLIN };
		if (left <= 0 || (poll(&p, 1, (int)(left / 1000) + 1) < 0 && errno != EINTR))
			return false;
		ssize_t n = p.revents ? read(fd, piece, sizeof(piece)) : -1;
		if (n == 0)
			return true;
		if (n > 0)
			mo_buf_add(b, piece, (size_t)n);
	}
}

static int too_late(const struct child *c, const char *at, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, WNOHANG);
	const char *file =
		mo_read_file(at, AT_MAX, &b) == 0 && b.len && *b.data ? b.data : "a file";
	return mo_error_set(err, -ETIMEDOUT,
			    "discovery: %s could not be read within %lld s: the device that it is "
			    "of does not answer; look for it in the kernel's log",
			    file, PROBE_LIMIT_US / 1000000);
}

static int take(const struct child *c, const struct mo_buf *out, const struct mo_buf *errors,
		struct nodeinfo *ret, struct mo_error *err)
{
	static const char name[] = "moe-discover: ";
	int status = 0;
	if (waitpid(c->pid, &status, 0) >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return wire_decode(&nodeinfo_desc, out->data ? out->data : "", out->len, false, ret,
				   err);
	if (!errors->len)
		return mo_error_set(err, -EIO, "discovery: moe-discover failed without a word");
	const char *line = errors->data + (mo_starts_with(errors->data, name) ? strlen(name) : 0);
	return mo_error_set(err, -EIO, "%.*s", (int)strcspn(line, "\n"), line);
}

int local_probe(const struct local *l, bool is_root, bool count_gpus, struct nodeinfo *ret,
		struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_libexec("moe-discover"),
				 *at = local_path(l, "discover.at");
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 }, errors = { 0 };
	char *argv[8] = { (char *)"moe-discover", (char *)"--at", at };
	struct child c = { .out = -1, .err = -1 };
	size_t n = 3;
	if (!path)
		return mo_error_set(err, -ENOENT,
				    "moe-discover: the program is neither beside moectl nor "
				    "installed; build or install it");
	if (l->topology) {
		argv[n++] = is_root ? (char *)"--root" : (char *)"--xml";
		argv[n++] = l->topology;
	}
	if (!count_gpus)
		argv[n++] = (char *)"--only-fake";
	int64_t end = mo_clock_boot_us() + PROBE_LIMIT_US;
	int r = spawn(path, argv, &c, err);
	if (r == 0)
		r = read_until(c.out, end, &out) && read_until(c.err, end, &errors)
			    ? take(&c, &out, &errors, ret, err)
			    : too_late(&c, at, err);
	mo_close(c.out);
	mo_close(c.err);
	(void)unlink(at);
	return r;
}
