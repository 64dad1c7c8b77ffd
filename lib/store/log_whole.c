/* See log_whole.h. A version that does not know the file leaves it where it is. When it ends in
 * order it puts its log into moe.db, which is newer than the file then; a log that it begins
 * anew is of another line. SQLite puts a log that grew long into moe.db while it goes on, too:
 * the file is written again behind that, so that only an end in order leaves moe.db newer. */
#include "lib/store/log_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/assert.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

#define OPEN_NAME "moe.db-open"
#define NO_LINE (-1)

/* SQLite's file format, "WAL header": numbers are big-endian */
enum { HEADER_BYTES = 32, MAGIC_AT = 0, CHECKPOINTS_AT = 12, SALT_AT = 16 };
#define WAL_MAGIC 0x377f0682 /* or 1 more */

static bool newer(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
						      : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static uint32_t number_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* What all headers of one log have in common, however often it began at its start again: each
 * time SQLite adds 1 to the first salt, which is random in a new log, and to the count. */
static int64_t line_of(const char *log)
{
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, log, O_RDONLY | O_NOFOLLOW, 0);
	uint8_t head[HEADER_BYTES];

	if (fd < 0 || mo_read_at(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    (number_at(head + MAGIC_AT) & ~1u) != WAL_MAGIC)
		return NO_LINE;
	return (uint32_t)(number_at(head + SALT_AT) - number_at(head + CHECKPOINTS_AT));
}

/* "BYTES LINE", or "BYTES"; of an earlier version, or of one whose machine lost power: empty. */
static void read_mark(const char *path, int64_t *ret_bytes, int64_t *ret_line)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char *space;

	*ret_bytes = LOG_WHOLE_BYTES;
	*ret_line = NO_LINE;
	if (mo_read_file(path, 64, &b) < 0 || b.len == 0)
		return;
	space = strchr(b.data, ' ');
	if (space)
		*space++ = '\0';
	if (mo_parse_i64(b.data, LOG_WHOLE_BYTES, LOG_KEEP_BYTES, ret_bytes) >= 0 && space)
		(void)mo_parse_i64(space, 0, UINT32_MAX, ret_line);
}

#define WAY_OUT \
	"restore the state directory from a backup; only where an older moed or another program " \
	"closed the database meanwhile, remove %s and start again"

int log_whole_check(const char *dir, struct mo_error *err)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME), *db = mo_path(dir, "moe.db"),
				 *log = mo_path(dir, "moe.db-wal");
	struct stat marked, base, there;
	int64_t bytes, line, found;

	if (mo_stat(mark, &marked) < 0 || mo_stat(db, &base) < 0)
		return 0;
	read_mark(mark, &bytes, &line);
	if (mo_stat(log, &there) >= 0 && there.st_size < bytes) {
		found = line_of(log);
		if (line != NO_LINE && found != NO_LINE && found != line)
			return 0;
		return mo_error_set(err, -EBADMSG,
				    "%s: it was cut: %lld bytes are there, of at least %lld: "
				    "records are lost: " WAY_OUT,
				    log, (long long)there.st_size, (long long)bytes, mark);
	}
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

/* The line of what was there may end with the first transaction: it is written behind that. */
void log_whole_open(struct log_whole *g, const char *dir)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME), *log = mo_path(dir, "moe.db-wal");
	_cleanup_(mo_freep) char *text = mo_printf("%lld\n", LOG_WHOLE_BYTES);

	log_whole_close(dir);
	g->bytes = lengthen(log) && mo_write_file(mark, text, strlen(text), 0600, false) >= 0
			   ? LOG_WHOLE_BYTES
			   : 0;
	g->has_line = false;
}

void log_whole_written(struct log_whole *g, const char *dir)
{
	_cleanup_(mo_freep) char *log = g->bytes ? mo_path(dir, "moe.db-wal") : NULL;
	_cleanup_(mo_freep) char *db = g->bytes ? mo_path(dir, "moe.db") : NULL;
	struct stat st, base;

	if (!log || mo_stat(log, &st) < 0 || mo_stat(db, &base) < 0)
		return;
	int64_t bytes = MO_MIN((int64_t)st.st_size, LOG_KEEP_BYTES);
	if (g->has_line && bytes <= g->bytes && same_time(&base.st_mtim, &g->based))
		return;
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME);
	_cleanup_(mo_freep) char *text =
		mo_printf("%lld %lld", (long long)MO_MAX(bytes, g->bytes), (long long)line_of(log));
	/* a full disk: with the next transaction */
	if (mo_write_file(mark, text, strlen(text), 0600, false) < 0)
		return;
	g->bytes = MO_MAX(bytes, g->bytes);
	g->has_line = true;
	g->based = base.st_mtim;
	mo_assert(g->bytes >= LOG_WHOLE_BYTES && g->bytes <= LOG_KEEP_BYTES);
}

void log_whole_close(const char *dir)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME);

	(void)mo_remove_at(AT_FDCWD, mark, 0);
}
