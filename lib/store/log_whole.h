/* Whether the database's write-ahead log is still the one that the last process left. SQLite takes
 * a log that was cut, or of which one bit is another, for one that ended there, and one that was
 * removed for none: what was synced into it would be lost without a word. While the database is
 * open a file beside it, moe.db-open, says so, how long its log is at least, which log that is, and
 * which record was stored last; a clean end removes it first. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

/* what a log grows to before SQLite begins at its start again: 1,000 pages and a little */
#define LOG_WHOLE_BYTES (4352LL << 10)
/* to what SQLite cuts a longer one itself when it begins at its start again */
#define LOG_KEEP_BYTES (64LL << 20)

/* What the file says. bytes: 0 = there is none: a full disk. */
struct log_whole {
	int64_t bytes, line, n; /* n: how often it was written */
	bool has_line;
};

/* Before the database is opened. -EBADMSG with err: the log was cut or removed. A short one that
 * another process began (an earlier version, behind a kill) is whole. */
int log_whole_check(const char *dir, struct mo_error *err);
/* The same: up to which record at least the database must go; 0: nothing says so. */
int64_t log_whole_through(const char *dir);
/* Lengthens the log of an opened database, then makes the file. Without it everything works,
 * slower and unguarded. */
void log_whole_open(struct log_whole *g, const char *dir, int64_t through);
/* After each transaction: a stat, and a line written in its place, which nobody waits for. It is
 * never more than what was synced. */
void log_whole_written(struct log_whole *g, const char *dir, int64_t through);
/* Before the database is closed. */
void log_whole_close(const char *dir);
