/* The file DIR/moe.db: opened, checked, and asked. store.c says what stands in it, and is its only
 * caller.
 *
 * DIR/store.id repeats an id of the database: a lost or emptied database file beside it is an
 * error, not a fresh start. It is opened with exclusive locking (no shared memory file; nobody
 * reads it beside us); what is deleted is not overwritten with zeros, as Debian's SQLite would,
 * which doubled what a transaction writes. */
#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

/* An older moed refuses a newer one's file by its version, before it looks at what is in it. */
#define DATABASE_VERSION 3

struct database {
	const char *dir; /* borrowed */
	sqlite3 *db;
	/* of the file: 1: a snapshot's text is in its row; 2: no record is of this moed, or one
	 * that knows as much; DATABASE_VERSION */
	int64_t version;
};
/* Opens or creates it; d is zero. -EBADMSG with err: it is damaged, lost, or somebody else's;
 * -EINVAL: of a newer moed; other negative errno. d->db is to be closed in any case. */
int database_open(struct database *d, const char *dir, struct mo_error *err);
/* What SQLite's rc means, as a negative errno, with err: -ENOSPC, -EBADMSG, another. */
int database_error(const struct database *d, int rc, struct mo_error *err, const char *what);
/* these: SQLITE_OK, or another code of SQLite */
int database_run(const struct database *d, const char *sql);
int database_step(sqlite3_stmt *q); /* once, then it is reset */
/* Writes it, within the transaction that is open, if one is; d is as it was. */
int database_set_version(const struct database *d, int64_t version);
/* First column of the first row; -1 on any error or no row (the callers' values are never
 * negative). */
int64_t database_number(const struct database *d, const char *sql);
/* The same of a text; NULL on any error or no row. Caller frees. */
char *database_text(const struct database *d, const char *sql);
void statement_done(sqlite3_stmt **q);
