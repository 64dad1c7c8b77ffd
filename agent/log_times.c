/* See log_times.h. */
#include "agent/log_times.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/core/stepd/log_time.h"
#include "lib/base/fd.h"

/* Of the first entry of the file that is younger: its byte, else INT64_MAX; -ENOENT without a file.
 * A clock that was set back leaves times out of order: then the place is one of several that
 * fit. */
static int64_t find_in(const char *path, int64_t after_us)
{
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;
	struct log_time t;

	if (fd < 0 || mo_stat_fd(fd, &st) < 0)
		return -ENOENT;
	int64_t low = 0, high = st.st_size / (int64_t)sizeof(t), found = INT64_MAX;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (mo_read_at(fd, &t, sizeof(t), middle * (int64_t)sizeof(t)) != sizeof(t))
			break; /* rotated just now */
		if (t.at_us > after_us) {
			found = t.byte;
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return found;
}

int64_t log_times_find(const char *dir, int64_t rank, int64_t since_us)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, LOG_TIMES, (long long)rank);
	_cleanup_(mo_freep) char *old = mo_path(dir, LOG_TIMES_OLD, (long long)rank);
	/* what follows an entry was written within a step of it */
	int64_t after_us = since_us - LOG_TIMES_STEP_US;
	/* In this order: what a rotation in between moves is read twice, not left out. */
	int64_t newer = find_in(path, after_us), older = find_in(old, after_us);

	return newer < 0 ? older : older < 0 ? newer : MO_MIN(older, newer);
}
