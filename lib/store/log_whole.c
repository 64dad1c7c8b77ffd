/* See log_whole.h. A version that does not know the file leaves it where it is; whatever it does
 * ends with a checkpoint into moe.db, which is newer than the file then. */
#include "lib/store/log_whole.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "lib/base/fd.h"

#define OPEN_NAME "moe.db-open"

static bool newer(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
						      : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

int log_whole_check(const char *dir, struct mo_error *err)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME), *db = mo_path(dir, "moe.db"),
				 *log = mo_path(dir, "moe.db-wal");
	struct stat marked, base, there;

	if (mo_stat(mark, &marked) < 0 || mo_stat(db, &base) < 0)
		return 0;
	if (mo_stat(log, &there) >= 0 && there.st_size < LOG_WHOLE_BYTES)
		return mo_error_set(err, -EBADMSG,
				    "%s: it was cut: %lld bytes are there, of at least %lld: "
				    "records are lost: restore the state directory from a backup",
				    log, (long long)there.st_size, LOG_WHOLE_BYTES);
	if (mo_stat(log, &there) < 0 && errno == ENOENT && !newer(&base, &marked))
		return mo_error_set(err, -EBADMSG,
				    "%s: it is gone, and what was written since the last start was "
				    "in it: bring it back, or restore the state directory from a "
				    "backup",
				    log);
	return 0;
}

/* A sync after a write behind the end of a file waits for the file system's journal, and with it
 * for whatever other programs wrote; one after a write into what is there does not. Zeros behind
 * the last transaction are none: SQLite stops at the first frame without its checksum. */
static bool lengthen(const char *path)
{
	static const char zeros[64 << 10];
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0 || mo_stat_fd(fd, &st) < 0)
		return false;
	for (int64_t at = st.st_size; at < LOG_WHOLE_BYTES; at += (int64_t)sizeof(zeros))
		if (mo_write_all(fd, zeros, sizeof(zeros)) < 0)
			return false;
	return mo_sync(fd, false) >= 0;
}

void log_whole_open(const char *dir)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME), *log = mo_path(dir, "moe.db-wal");

	log_whole_close(dir);
	if (lengthen(log))
		(void)mo_write_file(mark, "", 0, 0600, false);
}

void log_whole_close(const char *dir)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME);

	(void)mo_remove_at(AT_FDCWD, mark, 0);
}
