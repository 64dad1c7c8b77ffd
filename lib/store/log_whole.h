/* Whether the database's write-ahead log is still the one that the last process left. SQLite takes
 * a log that was cut for one that ended there, and one that was removed for none: what was synced
 * into it would be lost without a word. While the database is open a file beside it, moe.db-open,
 * says so, how long its log is at least, and which log that is; a clean end removes it first. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "lib/base/error.h"

/* what a log grows to before SQLite begins at its start again: 1,000 pages and a little */
#define LOG_WHOLE_BYTES (4352LL << 10)
/* to what SQLite cuts a longer one itself when it begins at its start again */
#define LOG_KEEP_BYTES (64LL << 20)

/* What the file says. bytes: 0 = there is none: a full disk. based: moe.db's time when it was
 * written. */
struct log_whole {
	int64_t bytes;
	bool has_line;
	struct timespec based;
};

/* Before the database is opened. -EBADMSG with err: the log was cut or removed. A short one that
 * another process began (an earlier version, behind a kill) is whole. */
int log_whole_check(const char *dir, struct mo_error *err);
/* Lengthens the log of an opened database, then makes the file. Without it everything works,
 * slower and unguarded. */
void log_whole_open(struct log_whole *g, const char *dir);
/* After each transaction. One that made the log longer, or behind which SQLite wrote into moe.db,
 * is noted in the file: two stats, else. */
void log_whole_written(struct log_whole *g, const char *dir);
/* Before the database is closed. */
void log_whole_close(const char *dir);
