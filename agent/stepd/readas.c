/* Small files that a recipe names (env: {file: PATH}), read in a short-lived child as the user
 * the ranks run as: what lies on a dead network mount cannot even be killed, and nobody waits for
 * it. */
#include "agent/stepd/readas.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/stepd/process.h"
#include "lib/base/fd.h"

/* before the text of each file */
struct frame {
	int32_t error;
	uint32_t n;
};

/* O_NONBLOCK: a FIFO in the file's place must not hang its reader. */
static int read_plain(const char *path, size_t max, struct mo_buf *b)
{
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;

	if (fd < 0 || mo_stat_fd(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	char chunk[4096];
	for (;;) {
		ssize_t n = mo_read(fd, chunk, sizeof(chunk));

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

struct asked {
	const struct file_text *files;
	size_t n, max;
};

static void read_all(void *arg)
{
	const struct asked *a = arg;

	for (size_t i = 0; i < a->n; i++) {
		_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

		if (say(PROCESS_FIRST_FD, read_plain(a->files[i].path, a->max, &text), &text) < 0)
			return;
	}
}

pid_t read_files_as(const struct mo_identity *who, const struct file_text *files, size_t n,
		    size_t max, int *ret_fd)
{
	struct asked a = { .files = files, .n = n, .max = max };
	int ours, theirs, r = process_pipe(0, &ours, &theirs);

	if (r < 0)
		return r;
	pid_t pid = process_as(&(struct process_work){
		.who = who, .fds = &theirs, .n_fds = 1, .run = read_all, .arg = &a });
	mo_close(theirs);
	if (pid < 0)
		mo_close(ours);
	else
		*ret_fd = ours;
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
