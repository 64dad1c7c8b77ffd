/* Small files that a recipe names (env: {file: PATH}), read in a short-lived child as the user
 * the ranks run as: what lies on a dead network mount cannot even be killed, and nobody waits for
 * it. Such a child has nothing of ours but its pipe, above all not the step's lock, whose holder
 * counts as the supervisor, and it ends with us. */
#include "agent/stepd/readas.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"

/* before the text of each file */
struct frame {
	int32_t error;
	uint32_t n;
};

/* O_NONBLOCK: a FIFO in the file's place must not hang its reader. */
static int read_plain(const char *path, size_t max, struct mo_buf *b)
{
	_cleanup_(mo_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	char chunk[4096];
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n <= 0)
			return n < 0 ? -errno : 0;
		mo_buf_add(b, chunk, (size_t)n);
		if (b->len > max)
			return -EFBIG;
	}
}

static int say(int out, int error, const struct mo_buf *text)
{
	struct frame f = { .error = error, .n = error ? 0 : (uint32_t)text->len };
	int r = mo_write_all(out, &f, sizeof(f));

	return r < 0 || !f.n ? r : mo_write_all(out, text->data, f.n);
}

static _Noreturn void read_child(const struct mo_identity *who, const struct file_text *files,
				 size_t n, size_t max, int out, pid_t parent)
{
	int to = fcntl(out, F_DUPFD_CLOEXEC, 3);

	if (to < 0 || dup2(to, 3) < 0)
		_exit(EMFILE);
	syscall(SYS_close_range, 4U, ~0U, 0U);
	if (mo_identity_become(who) < 0)
		_exit(EPERM);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

		if (say(3, read_plain(files[i].path, max, &text), &text) < 0)
			_exit(EPIPE);
	}
	_exit(0);
}

pid_t read_files_as(const struct mo_identity *who, const struct file_text *files, size_t n,
		    size_t max, int *ret_fd)
{
	pid_t self = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		read_child(who, files, n, max, ends[1], self);
	if (pid < 0)
		pid = -errno;
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	else
		*ret_fd = ends[0];
	return pid;
}

void read_files_take(const struct mo_buf *said, int missing, struct file_text *files, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		struct frame f = { .error = missing };
		size_t left = said->len - at;

		if (left >= sizeof(f))
			memcpy(&f, said->data + at, sizeof(f));
		if (left < sizeof(f) || f.n > left - sizeof(f)) {
			files[i].error = missing;
			at = said->len;
			continue;
		}
		files[i].error = f.error;
		mo_buf_add(&files[i].text, said->data + at + sizeof(f), f.n);
		at += sizeof(f) + f.n;
	}
}
