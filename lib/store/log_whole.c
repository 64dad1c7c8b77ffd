/* See log_whole.h. A version that does not know the file leaves it where it is. Its clean end is a
 * checkpoint into moe.db, which is newer than the file then; after that it makes a log of its own,
 * which has another birth than the file says. */
#include "lib/store/log_whole.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/base/fd.h"
#include "lib/base/parse.h"

#define OPEN_NAME "moe.db-open"
/* Of a log's head, each big-endian: how often SQLite began at its start again, and a number that
 * is random in a new file and one more each time. Their difference is of that file alone. */
#define HEAD_BYTES 32
#define RESTARTS_AT 12
#define SALT_AT 16

static bool newer(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
						      : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

static uint32_t number_at(const char *head, size_t at)
{
	uint32_t n;

	memcpy(&n, head + at, sizeof(n));
	return be32toh(n);
}

/* -1: it has no head. */
static int64_t birth_of(const char *log)
{
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, log, O_RDONLY | O_NOFOLLOW, 0);
	char head[HEAD_BYTES];

	if (fd < 0 || mo_read_at(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    number_at(head, 0) == 0)
		return -1;
	return (uint32_t)(number_at(head, SALT_AT) - number_at(head, RESTARTS_AT));
}

/* -1: it cannot be told. */
static int64_t birth_marked(const char *mark)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t birth;

	return mo_read_file(mark, 64, &b) >= 0 && b.data &&
			       mo_parse_i64(b.data, 0, UINT32_MAX, &birth) == 0
		       ? birth
		       : -1;
}

/* A version that does not know the file made it. */
static bool of_another(const char *log, const char *mark)
{
	int64_t birth = birth_of(log), marked = birth_marked(mark);

	return birth >= 0 && marked >= 0 && birth != marked;
}

#define WAY_OUT \
	"restore the state directory from a backup; only if an older moed, or you yourself, " \
	"closed " \
	"the database meanwhile, remove %s and start again"

int log_whole_check(const char *dir, struct mo_error *err)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME), *db = mo_path(dir, "moe.db"),
				 *log = mo_path(dir, "moe.db-wal");
	struct stat marked, base, there;

	if (mo_stat(mark, &marked) < 0 || mo_stat(db, &base) < 0)
		return 0;
	if (mo_stat(log, &there) >= 0 && there.st_size < LOG_WHOLE_BYTES && !of_another(log, mark))
		return mo_error_set(err, -EBADMSG,
				    "%s: it was cut: %lld bytes are there, of at least %lld: "
				    "records are lost: " WAY_OUT,
				    log, (long long)there.st_size, LOG_WHOLE_BYTES, mark);
	if (mo_stat(log, &there) < 0 && errno == ENOENT && !newer(&base, &marked))
		return mo_error_set(err, -EBADMSG,
				    "%s: it is gone, and what was written since the last start was "
				    "in it: bring it back, or " WAY_OUT,
				    log, mark);
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
	if (!lengthen(log) || birth_of(log) < 0)
		return;
	_cleanup_(mo_freep) char *birth = mo_printf("%lld", (long long)birth_of(log));
	(void)mo_write_file(mark, birth, strlen(birth), 0600, false);
}

void log_whole_close(const char *dir)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME);

	(void)mo_remove_at(AT_FDCWD, mark, 0);
}
