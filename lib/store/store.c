/* See store.h. Tables: records(seq, sum, text), snapshot(one row: seq = last record folded in, sum, text), meta(key, value). Every text has a checksum and sequence numbers have no
 * gaps, so that damage inside SQLite's pages is found and told, never replayed. DIR/store.id repeats an id of the database: a lost or emptied database file beside it is
 * an error, not a fresh start. The database is opened with exclusive locking (no shared memory file; nobody reads it beside us). */
#include "lib/store/store.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/base/parse.h"

#define APPLICATION_ID 0x6d6f6564      /* "moed" */
#define SCHEMA_VERSION 1
#define BALLAST_BYTES (16LL << 20)
#define BALLAST_FREE_MIN (64LL << 20)
#define WAL_KEEP_BYTES (64LL << 20)

struct store {
	char *dir;
	int lock;
	sqlite3 *db;
	sqlite3_stmt *insert, *begin, *commit, *rollback;
	int64_t last_seq;                    /* newest record, or the snapshot's */
	int64_t since_snapshot;
};

static int errno_of(struct store *s, int rc)
{
	int e = sqlite3_system_errno(s->db);

	if ((rc & 0xff) == SQLITE_FULL || e == ENOSPC || e == EDQUOT)
		return -ENOSPC;
	if ((rc & 0xff) == SQLITE_NOTADB || (rc & 0xff) == SQLITE_CORRUPT)
		return -EBADMSG;
	return e > 0 ? -e : -EIO;
}

static int database_error(struct store *s, int rc, struct mo_error *err, const char *what)
{
	int e = errno_of(s, rc);

	if (e == -EBADMSG)
		return mo_error_set(err, e, "%s/moe.db: the database is damaged (%s): restore the state directory from a backup", s->dir, sqlite3_errmsg(s->db));
	return mo_error_set(err, e, "%s/moe.db: %s: %s", s->dir, what, sqlite3_errmsg(s->db));
}

/* Finds flipped bits and cut texts (each step is a bijection, so one changed word always shows); not meant against an attacker, who owns the directory anyway. */
static int64_t checksum(const char *text, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u ^ n;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = 0;
		memcpy(&word, text + i, MO_MIN(n - i, 8));
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	return (int64_t)h;
}

static int run(struct store *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL);
}

static int step_once(sqlite3_stmt *q)
{
	int rc = sqlite3_step(q);

	sqlite3_reset(q);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static void statement_done(sqlite3_stmt **q) { sqlite3_finalize(*q); }

/* First column of the first row; -1 on any error or no row (the callers' values are never negative). */
static int64_t number(struct store *s, const char *sql)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
		return -1;
	return sqlite3_column_int64(q, 0);
}

static char *word(struct store *s, const char *sql)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
		return NULL;
	return mo_strdup((const char *)sqlite3_column_text(q, 0));
}

/* The id is written after the schema is durable: a crash between leaves an empty database without an id file, which is simply filled in at the next start. */
static int create_schema(struct store *s, const char *id_file, struct mo_error *err)
{
	_cleanup_(mo_freep) char *id = mo_random_hex(16);
	_cleanup_(mo_freep) char *sql = mo_printf(
		"BEGIN IMMEDIATE;"
		"CREATE TABLE records(seq INTEGER PRIMARY KEY, sum INTEGER NOT NULL, text BLOB NOT NULL);"
		"CREATE TABLE snapshot(one INTEGER PRIMARY KEY CHECK(one=1), seq INTEGER NOT NULL, sum INTEGER NOT NULL, text BLOB NOT NULL);"
		"CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
		"INSERT INTO meta VALUES('id','%s');"
		"PRAGMA application_id=%d; PRAGMA user_version=%d;"
		"COMMIT;", id, APPLICATION_ID, SCHEMA_VERSION);
	int rc = run(s, sql);

	if (rc != SQLITE_OK)
		return database_error(s, rc, err, "creating it");
	int r = mo_write_file(id_file, id, strlen(id), 0600, true);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	return 0;
}

static int check_existing(struct store *s, const char *id_file, const char *want_id, struct mo_error *err)
{
	if (number(s, "PRAGMA application_id") != APPLICATION_ID)
		return mo_error_set(err, -EBADMSG, "%s/moe.db: not a database of moed: choose another state_dir", s->dir);
	int64_t version = number(s, "PRAGMA user_version");
	if (version != SCHEMA_VERSION)
		return mo_error_set(err, -EINVAL, "%s/moe.db: written by a newer moed (store version %lld, this one knows %d): start that version", s->dir, (long long)version, SCHEMA_VERSION);
	_cleanup_(mo_freep) char *verdict = word(s, "PRAGMA quick_check(1)");
	if (!mo_streq(verdict, "ok"))
		return mo_error_set(err, -EBADMSG, "%s/moe.db: the database is damaged (%s): restore the state directory from a backup", s->dir, verdict ? verdict : sqlite3_errmsg(s->db));
	_cleanup_(mo_freep) char *id = word(s, "SELECT value FROM meta WHERE key='id'");
	if (!id)
		return mo_error_set(err, -EBADMSG, "%s/moe.db: the database is damaged (no id): restore the state directory from a backup", s->dir);
	if (want_id && strcmp(id, want_id) != 0)
		return mo_error_set(err, -EBADMSG, "%s/moe.db: not the database that belongs to store.id: restore both from the same backup", s->dir);
	if (!want_id) {
		int r = mo_write_file(id_file, id, strlen(id), 0600, true);
		if (r < 0)
			return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	}
	return 0;
}

static int prepare(struct store *s, struct mo_error *err)
{
	int rc = sqlite3_prepare_v3(s->db, "INSERT INTO records VALUES(?,?,?)", -1, SQLITE_PREPARE_PERSISTENT, &s->insert, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->db, "BEGIN IMMEDIATE", -1, SQLITE_PREPARE_PERSISTENT, &s->begin, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->db, "COMMIT", -1, SQLITE_PREPARE_PERSISTENT, &s->commit, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->db, "ROLLBACK", -1, SQLITE_PREPARE_PERSISTENT, &s->rollback, NULL);
	if (rc != SQLITE_OK)
		return database_error(s, rc, err, "preparing statements");
	int64_t folded = number(s, "SELECT seq FROM snapshot");
	int64_t newest = number(s, "SELECT max(seq) FROM records");
	s->last_seq = MO_MAX(MO_MAX(folded, newest), 0);
	s->since_snapshot = number(s, "SELECT count(*) FROM records");
	return s->since_snapshot < 0 ? database_error(s, sqlite3_errcode(s->db), err, "counting records") : 0;
}

static int open_database(struct store *s, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "moe.db");
	_cleanup_(mo_freep) char *id_file = mo_path(s->dir, "store.id");
	_cleanup_(mo_buf_done) struct mo_buf id = {0};

	int r = mo_read_file(id_file, 64, &id);
	if (r < 0 && r != -ENOENT)
		return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	bool known = r >= 0;
	int rc = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK)
		return database_error(s, rc, err, "opening it");
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	_cleanup_(mo_freep) char *pragmas = mo_printf("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA journal_size_limit=%lld; PRAGMA cell_size_check=1",
						      WAL_KEEP_BYTES);
	rc = run(s, pragmas);
	if (rc != SQLITE_OK)
		return database_error(s, rc, err, "opening it");
	int64_t tables = number(s, "SELECT count(*) FROM sqlite_master");
	if (tables < 0)
		return database_error(s, sqlite3_errcode(s->db), err, "reading it");
	if (tables == 0 && known)
		return mo_error_set(err, -EBADMSG, "%s/moe.db: the database is gone or empty but store.id says there was one: restore the state directory from a backup", s->dir);
	r = tables == 0 ? create_schema(s, id_file, err) : check_existing(s, id_file, known ? id.data : NULL, err);
	return r < 0 ? r : prepare(s, err);
}

int store_open(const char *dir, struct store **ret, struct mo_error *err)
{
	_cleanup_(store_freep) struct store *s = mo_alloc(sizeof(*s));

	s->lock = -1;
	s->dir = mo_strdup(dir);
	int r = mo_mkdir_p(dir, 0700);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s: make the state directory writable or choose another state_dir", dir, strerror(-r));
	_cleanup_(mo_freep) char *lock = mo_path(dir, "lock");
	s->lock = mo_lock_file(lock);
	if (s->lock == -EWOULDBLOCK)
		return mo_error_set(err, s->lock, "%s: another moed is running on this state directory: stop it or choose another state_dir", dir);
	if (s->lock < 0)
		return mo_error_set(err, s->lock, "%s: %s: make the state directory writable or choose another state_dir", lock, strerror(-s->lock));
	r = open_database(s, err);
	if (r < 0)
		return r;
	store_make_ballast(s);
	*ret = TAKE_PTR(s);
	return 0;
}

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	sqlite3_finalize(s->insert);
	sqlite3_finalize(s->begin);
	sqlite3_finalize(s->commit);
	sqlite3_finalize(s->rollback);
	sqlite3_close(s->db);
	if (s->lock >= 0)
		mo_close(s->lock);
	free(s->dir);
	free(s);
	return NULL;
}

static int abandon(struct store *s, int rc, struct mo_error *err, const char *what)
{
	int r = database_error(s, rc, err, what);

	/* SQLite has often rolled back by itself after a full disk. */
	if (!sqlite3_get_autocommit(s->db))
		step_once(s->rollback);
	return r;
}

int store_append(struct store *s, char *const *texts, size_t n, struct mo_error *err)
{
	if (n == 0)
		return 0;
	int rc = step_once(s->begin);
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		size_t length = strlen(texts[i]);
		sqlite3_bind_int64(s->insert, 1, s->last_seq + 1 + (int64_t)i);
		sqlite3_bind_int64(s->insert, 2, checksum(texts[i], length));
		sqlite3_bind_blob64(s->insert, 3, texts[i], length, SQLITE_STATIC);
		rc = step_once(s->insert);
	}
	if (rc == SQLITE_OK)
		rc = step_once(s->commit);
	if (rc != SQLITE_OK)
		return abandon(s, rc, err, "storing records");
	s->last_seq += (int64_t)n;
	s->since_snapshot += (int64_t)n;
	return 0;
}

static int read_snapshot(struct store *s, int (*fn)(void *arg, const char *text, size_t n), void *arg, int64_t *ret_seq, struct mo_error *err)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;

	int rc = sqlite3_prepare_v2(s->db, "SELECT seq, sum, text FROM snapshot", -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_DONE) {
		*ret_seq = 0;
		return fn(arg, NULL, 0);
	}
	if (rc != SQLITE_ROW)
		return database_error(s, rc, err, "reading the snapshot");
	const char *text = sqlite3_column_blob(q, 2);
	size_t n = (size_t)sqlite3_column_bytes(q, 2);
	if (checksum(text, n) != sqlite3_column_int64(q, 1))
		return mo_error_set(err, -EBADMSG, "%s/moe.db: the snapshot is damaged (checksum): restore the state directory from a backup", s->dir);
	*ret_seq = sqlite3_column_int64(q, 0);
	return fn(arg, text, n);
}

int store_read(struct store *s, int (*on_snapshot)(void *arg, const char *text, size_t n), int (*on_record)(void *arg, int64_t seq, const char *text, size_t n), void *arg, struct mo_error *err)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;
	int64_t seq = 0;

	int r = read_snapshot(s, on_snapshot, arg, &seq, err);
	if (r != 0)
		return r;
	int rc = sqlite3_prepare_v2(s->db, "SELECT seq, sum, text FROM records ORDER BY seq", -1, &q, NULL);
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(q);
		if (rc != SQLITE_ROW)
			break;
		const char *text = sqlite3_column_blob(q, 2);
		size_t n = (size_t)sqlite3_column_bytes(q, 2);
		if (sqlite3_column_int64(q, 0) != seq + 1 || checksum(text, n) != sqlite3_column_int64(q, 1))
			return mo_error_set(err, -EBADMSG, "%s/moe.db: record %lld is damaged or missing: restore the state directory from a backup", s->dir, (long long)seq + 1);
		seq++;
		r = on_record(arg, seq, text, n);
		if (r != 0)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : database_error(s, rc, err, "reading records");
}

int store_snapshot(struct store *s, const char *text, size_t n, struct mo_error *err)
{
	_cleanup_(statement_done) sqlite3_stmt *put = NULL;

	int rc = sqlite3_prepare_v2(s->db, "INSERT OR REPLACE INTO snapshot VALUES(1,?,?,?)", -1, &put, NULL);
	if (rc == SQLITE_OK)
		rc = step_once(s->begin);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(put, 1, s->last_seq);
		sqlite3_bind_int64(put, 2, checksum(text, n));
		sqlite3_bind_blob64(put, 3, text, n, SQLITE_STATIC);
		rc = step_once(put);
	}
	if (rc == SQLITE_OK)
		rc = run(s, "DELETE FROM records");
	if (rc == SQLITE_OK)
		rc = step_once(s->commit);
	if (rc != SQLITE_OK)
		return abandon(s, rc, err, "storing a snapshot");
	s->since_snapshot = 0;
	return 0;
}

int64_t store_records_since_snapshot(const struct store *s)
{
	return s->since_snapshot;
}

bool store_has_ballast(const struct store *s)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "ballast");
	struct stat st;

	return stat(path, &st) == 0 && st.st_size >= BALLAST_BYTES;
}

bool store_release_ballast(struct store *s)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "ballast");

	return unlink(path) == 0;
}

int store_make_ballast(struct store *s)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "ballast");
	_cleanup_(mo_closep) int fd = -1;
	struct statvfs v;

	if (store_has_ballast(s))
		return 0;
	if (statvfs(s->dir, &v) < 0)
		return -errno;
	if ((int64_t)v.f_bavail * (int64_t)v.f_frsize < BALLAST_FREE_MIN)
		return -ENOSPC;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int e = posix_fallocate(fd, 0, BALLAST_BYTES);
	if (e != 0) {
		unlink(path);
		return -e;
	}
	return 0;
}
