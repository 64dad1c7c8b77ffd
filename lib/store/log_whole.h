/* Whether the database's write-ahead log is still the one that the last process left. SQLite takes
 * a log that was cut for one that ended there, and one that was removed for none: what was synced
 * into it would be lost without a word. While the database is open a file beside it, moe.db-open,
 * says so, which log is its own, and that this is at least LOG_WHOLE_BYTES long; a clean end
 * removes it first. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "lib/base/error.h"

/* what a log grows to before SQLite begins at its start again: 1,000 pages and a little */
#define LOG_WHOLE_BYTES (4352LL << 10)

/* Before the database is opened. -EBADMSG with err: the log was cut or removed. */
int log_whole_check(const char *dir, struct mo_error *err);
/* Lengthens the log of an opened database, which something was written into, then makes the file.
 * Without it everything works, slower and unguarded: a full disk. */
void log_whole_open(const char *dir);
/* Before the database is closed. */
void log_whole_close(const char *dir);
