/* See log_whole.h. A version that does not know the file leaves it where it is. When it ends in
 * order it puts its log into moe.db, which is newer than the file then; a log that it begins
 * anew is of another line. SQLite puts a log that grew long into moe.db while it goes on, too:
 * the file is written behind each transaction, so that only an end in order leaves moe.db newer. */
#include "lib/store/log_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/assert.h"
#include "lib/base/crc32c.h"
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

struct mark {
	int64_t bytes, line, through, n;
};

/* The file has two of them, written by turns: of one that was cut by a kill the other is left, and
 * n says which is newer. */
enum { MARKS = 2, MARK_BYTES = 71 };

/* "BYTES LINE THROUGH N CHECKSUM", each as wide as it can become. Of an earlier version there is
 * one, without N, "BYTES LINE", "BYTES", or nothing, as of one whose machine lost power. */
static char *mark_text(const struct mark *k)
{
	_cleanup_(mo_freep) char *number =
		k->n ? mo_printf(" %019lld", (long long)k->n) : mo_strdup("");
	_cleanup_(mo_freep) char *text =
		mo_printf("%010lld %010lld %019lld%s", (long long)k->bytes, (long long)k->line,
			  (long long)k->through, number);

	return mo_printf("%s %08x\n", text, (unsigned)mo_crc32c(0, text, strlen(text)));
}

/* Whether all of it is there; bytes and line are taken from one of which the rest is not, too. */
static bool read_one(const char *text, struct mark *ret)
{
	_cleanup_(mo_freep) char *line = mo_printf("%.*s\n", (int)strcspn(text, "\n"), text);
	_cleanup_(mo_freep) char *left = mo_strdup(line), *again = NULL;
	char *rest = left, *words[5] = { 0 };
	struct mark k;

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		words[i] = strsep(&rest, " \n");
	(void)mo_parse_i64(words[0], LOG_WHOLE_BYTES, LOG_KEEP_BYTES, &ret->bytes);
	if (words[1])
		(void)mo_parse_i64(words[1], 0, UINT32_MAX, &ret->line);
	k = *ret;
	if (!words[2] || mo_parse_i64(words[2], 0, INT64_MAX, &k.through) < 0 || !words[4] ||
	    (*words[4] && mo_parse_i64(words[3], 1, INT64_MAX, &k.n) < 0))
		return false;
	again = mark_text(&k);
	if (!mo_streq(again, line))
		return false;
	*ret = k;
	return true;
}

static void read_mark(const char *path, struct mark *ret)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	*ret = (struct mark){ .bytes = LOG_WHOLE_BYTES, .line = NO_LINE };
	if (mo_read_file(path, MARKS * MARK_BYTES, &b) < 0 || b.len == 0)
		return;
	for (size_t i = 0; i < MARKS && i * MARK_BYTES < b.len; i++) {
		struct mark k = { .bytes = LOG_WHOLE_BYTES, .line = NO_LINE };
		bool whole = read_one(b.data + i * MARK_BYTES, &k);

		/* n: an earlier version, which writes the first one, knows no other */
		if (i == 0 || (whole && (k.through > ret->through ||
					 (k.through == ret->through && k.n > ret->n))))
			*ret = k;
	}
}

static void write_mark(const char *path, const struct mark *k)
{
	_cleanup_(mo_freep) char *text = mark_text(k);
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);

	mo_assert(strlen(text) == MARK_BYTES);
	/* a full disk: with the next transaction */
	if (fd >= 0)
		(void)mo_write_at(fd, text, MARK_BYTES, k->n % MARKS * MARK_BYTES);
}

#define WAY_OUT \
	"restore the state directory from a backup; only where an older moed or another program " \
	"closed the database meanwhile, remove %s and start again"

int log_whole_check(const char *dir, struct mo_error *err)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME), *db = mo_path(dir, "moe.db"),
				 *log = mo_path(dir, "moe.db-wal");
	struct stat marked, base, there;
	struct mark k;

	if (mo_stat(mark, &marked) < 0 || mo_stat(db, &base) < 0)
		return 0;
	read_mark(mark, &k);
	if (mo_stat(log, &there) >= 0 && there.st_size < k.bytes) {
		int64_t found = line_of(log);
		if (k.line != NO_LINE && found != NO_LINE && found != k.line)
			return 0;
		return mo_error_set(err, -EBADMSG,
				    "%s: it was cut: %lld bytes are there, of at least %lld: "
				    "records are lost: " WAY_OUT,
				    log, (long long)there.st_size, (long long)k.bytes, mark);
	}
	if (mo_stat(log, &there) < 0 && errno == ENOENT && !newer(&base, &marked))
		return mo_error_set(err, -EBADMSG,
				    "%s: it is gone, and what was written since the last start was "
				    "in it: bring it back, or " WAY_OUT,
				    log, mark);
	return 0;
}

int64_t log_whole_through(const char *dir)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, OPEN_NAME);
	struct mark k;

	read_mark(path, &k);
	return k.through;
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
void log_whole_open(struct log_whole *g, const char *dir, int64_t through)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME), *log = mo_path(dir, "moe.db-wal");

	struct mark before;

	read_mark(mark, &before);
	*g = (struct log_whole){ .line = NO_LINE, .n = before.n };
	if (!lengthen(log)) {
		log_whole_close(dir);
		return;
	}
	g->bytes = LOG_WHOLE_BYTES;
	write_mark(mark, &(struct mark){ g->bytes, NO_LINE, through, ++g->n });
}

void log_whole_written(struct log_whole *g, const char *dir, int64_t through)
{
	_cleanup_(mo_freep) char *log = g->bytes ? mo_path(dir, "moe.db-wal") : NULL;
	_cleanup_(mo_freep) char *mark = g->bytes ? mo_path(dir, OPEN_NAME) : NULL;
	struct stat st;

	if (!log || mo_stat(log, &st) < 0)
		return;
	g->bytes = MO_MAX(g->bytes, MO_MIN((int64_t)st.st_size, LOG_KEEP_BYTES));
	if (!g->has_line)
		g->line = line_of(log);
	g->has_line = true;
	write_mark(mark, &(struct mark){ g->bytes, g->line, through, ++g->n });
	mo_assert(g->bytes >= LOG_WHOLE_BYTES && g->bytes <= LOG_KEEP_BYTES);
}

void log_whole_close(const char *dir)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, OPEN_NAME);

	(void)mo_remove_at(AT_FDCWD, mark, 0);
}
