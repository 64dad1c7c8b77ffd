/* See database.h. Tables: records(seq, sum, text), snapshot(one row: seq = last record folded in,
 * sum, text), meta(key, value). */
#include "lib/store/database.h"

#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/util.h"
#include "lib/store/log_whole.h"

#define APPLICATION_ID 0x6d6f6564 /* "moed" */

static int errno_of(const struct database *d, int rc)
{
	int e = sqlite3_system_errno(d->db);

	if ((rc & 0xff) == SQLITE_FULL || e == ENOSPC || e == EDQUOT)
		return -ENOSPC;
	if ((rc & 0xff) == SQLITE_NOTADB || (rc & 0xff) == SQLITE_CORRUPT)
		return -EBADMSG;
	return e > 0 ? -e : -EIO;
}

int database_error(const struct database *d, int rc, struct mo_error *err, const char *what)
{
	int e = errno_of(d, rc);

	if (e == -EBADMSG)
		return mo_error_set(err, e,
				    "%s/moe.db: the database is damaged (%s): restore the state "
				    "directory from a backup",
				    d->dir, sqlite3_errmsg(d->db));
	return mo_error_set(err, e, "%s/moe.db: %s: %s", d->dir, what, sqlite3_errmsg(d->db));
}

int database_run(const struct database *d, const char *sql)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL);
}

int database_step(sqlite3_stmt *q)
{
	int rc = sqlite3_step(q);

	sqlite3_reset(q);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

void statement_done(sqlite3_stmt **q)
{
	sqlite3_finalize(*q);
}

int database_set_version(const struct database *d, int64_t version)
{
	_cleanup_(mo_freep) char *sql = mo_printf("PRAGMA user_version=%lld", (long long)version);

	return database_run(d, sql);
}

int64_t database_number(const struct database *d, const char *sql)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;

	if (sqlite3_prepare_v2(d->db, sql, -1, &q, NULL) != SQLITE_OK ||
	    sqlite3_step(q) != SQLITE_ROW)
		return -1;
	return sqlite3_column_int64(q, 0);
}

char *database_text(const struct database *d, const char *sql)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;

	if (sqlite3_prepare_v2(d->db, sql, -1, &q, NULL) != SQLITE_OK ||
	    sqlite3_step(q) != SQLITE_ROW)
		return NULL;
	return mo_strdup((const char *)sqlite3_column_text(q, 0));
}

/* The id is written after the schema is durable: a crash between leaves an empty database
 * without an id file, which is simply filled in at the next start. */
static int create_schema(struct database *d, const char *id_file, struct mo_error *err)
{
	_cleanup_(mo_freep) char *id = mo_random_hex(16);
	_cleanup_(mo_freep) char *sql =
		mo_printf("BEGIN IMMEDIATE;CREATE TABLE records(seq INTEGER PRIMARY KEY, sum "
			  "INTEGER NOT NULL, text BLOB NOT NULL);CREATE TABLE snapshot(one INTEGER "
			  "PRIMARY KEY CHECK(one=1), seq INTEGER NOT NULL, sum INTEGER NOT NULL, "
			  "text BLOB NOT NULL);CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT "
			  "NOT NULL);INSERT INTO meta VALUES('id','%s');PRAGMA application_id=%d; "
			  "PRAGMA user_version=%d;COMMIT;",
			  id, APPLICATION_ID, DATABASE_VERSION);
	int rc = database_run(d, sql);

	if (rc != SQLITE_OK)
		return database_error(d, rc, err, "creating it");
	d->version = DATABASE_VERSION;
	int r = mo_write_file(id_file, id, strlen(id), 0600, true);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	return 0;
}

static int check_existing(struct database *d, const char *id_file, const char *want_id,
			  struct mo_error *err)
{
	if (database_number(d, "PRAGMA application_id") != APPLICATION_ID)
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: not a database of moed: choose another state_dir",
				    d->dir);
	d->version = database_number(d, "PRAGMA user_version");
	if (d->version < 1 || d->version > DATABASE_VERSION)
		return mo_error_set(err, -EINVAL,
				    "%s/moe.db: written by a newer moed (store version %lld, this "
				    "one knows %d): start that version",
				    d->dir, (long long)d->version, DATABASE_VERSION);
	_cleanup_(mo_freep) char *verdict = database_text(d, "PRAGMA quick_check(1)");
	if (!mo_streq(verdict, "ok"))
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: the database is damaged (%s): restore the state "
				    "directory from a backup",
				    d->dir, verdict ? verdict : sqlite3_errmsg(d->db));
	_cleanup_(mo_freep) char *id = database_text(d, "SELECT value FROM meta WHERE key='id'");
	if (!id)
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: the database is damaged (no id): restore the state "
				    "directory from a backup",
				    d->dir);
	if (want_id && strcmp(id, want_id) != 0)
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: not the database that belongs to store.id: restore "
				    "both from the same backup",
				    d->dir);
	if (!want_id) {
		int r = mo_write_file(id_file, id, strlen(id), 0600, true);
		if (r < 0)
			return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	}
	return 0;
}

int database_open(struct database *d, const char *dir, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db");
	_cleanup_(mo_freep) char *id_file = mo_path(dir, "store.id");
	_cleanup_(mo_buf_done) struct mo_buf id = { 0 };

	d->dir = dir;
	int r = mo_read_file(id_file, 64, &id);
	if (r < 0 && r != -ENOENT)
		return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	bool known = r >= 0;
	r = log_whole_check(d->dir, err);
	if (r < 0)
		return r;
	int rc = sqlite3_open_v2(path, &d->db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 NULL);
	if (rc != SQLITE_OK)
		return database_error(d, rc, err, "opening it");
	sqlite3_extended_result_codes(d->db, 1);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	_cleanup_(mo_freep) char *pragmas =
		mo_printf("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA "
			  "synchronous=FULL; PRAGMA secure_delete=OFF; PRAGMA "
			  "journal_size_limit=%lld; PRAGMA cell_size_check=1",
			  LOG_KEEP_BYTES);
	rc = database_run(d, pragmas);
	if (rc != SQLITE_OK)
		return database_error(d, rc, err, "opening it");
	int64_t tables = database_number(d, "SELECT count(*) FROM sqlite_master");
	if (tables < 0)
		return database_error(d, sqlite3_errcode(d->db), err, "reading it");
	if (tables == 0 && known)
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: the database is gone or empty but store.id says "
				    "there was one: restore the state directory from a backup",
				    d->dir);
	return tables == 0 ? create_schema(d, id_file, err)
			   : check_existing(d, id_file, known ? id.data : NULL, err);
}
