/* The controller's records and snapshots on disk (store.h says what is promised to callers: the
 * shell's turn, start, snapshot child, quarantine and backup). It knows nothing of what a record
 * says. What never happens: a batch half stored; a start that replays what is damaged, or that
 * takes a lost database for a new one; a number that is given twice.
 *
 * Tables: records(seq, sum, text), snapshot(one row: seq = last record folded in,
 * sum, text), meta(key, value). Every text has a checksum and sequence numbers have no gaps, so
 * that damage inside SQLite's pages is found and reported, never replayed. DIR/store.id repeats an
 * id of the database: a lost or emptied database file beside it is an error, not a fresh start.
 * The database is opened with exclusive locking (no shared memory file; nobody reads it beside
 * us); what is deleted is not overwritten with zeros, as Debian's SQLite would, which doubled
 * what a transaction writes. A snapshot lies in a file of its own, DIR/snapshot-SEQ (struct
 * head, text), because putting a large one into the database stops whoever does it; the row has
 * the file's name as its text and the checksum of what is in the file. Version 1 had the text
 * itself in the row: such a row is read, and the next snapshot makes the database version 2. */
#include "lib/store/store.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/store/log_whole.h"

#define APPLICATION_ID 0x6d6f6564 /* "moed" */
#define SCHEMA_VERSION 2
#define BALLAST_BYTES (16LL << 20)
#define BALLAST_FREE_MIN (64LL << 20)
/* deleted with each transaction at least: they are gone long before the next snapshot */
#define TRIM_RECORDS 32
#define WRITE_BYTES (1 << 20) /* a snapshot is written and synced in such pieces, */
/* with rests of so many times what a piece took: records need the disk too */
#define WRITE_REST 3
#define SNAPSHOT_MAX (4LL << 30)
#define SNAPSHOT_PREFIX "snapshot-"
#define NEW_SUFFIX ".new"
#define SNAPSHOT_MAGIC "moe-snap"

/* of a snapshot's file; n: bytes of text after it */
struct head {
	char magic[8];
	int64_t seq, n, sum;
};

struct store {
	char *dir;
	int lock;
	sqlite3 *db;
	sqlite3_stmt *insert, *trim, *begin, *commit, *rollback;
	/* the snapshot's text is in its row: written by version 1 */
	bool inside;
	bool opened; /* moe.db-open is ours */
	struct log_whole log;
	int64_t last_seq; /* newest record, or the snapshot's */
	int64_t folded;   /* the snapshot's; 0 = none */
	int64_t oldest;   /* no record below is stored */
	int64_t damaged;  /* the first record that could not be read; 0 = none */
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
		return mo_error_set(err, e,
				    "%s/moe.db: the database is damaged (%s): restore the state "
				    "directory from a backup",
				    s->dir, sqlite3_errmsg(s->db));
	return mo_error_set(err, e, "%s/moe.db: %s: %s", s->dir, what, sqlite3_errmsg(s->db));
}

/* Finds flipped bits and cut texts (each step is a bijection, so one changed word always shows);
 * not meant against an attacker, who owns the directory anyway. */
static int64_t checksum(const char *text, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u ^ n;

	mo_assert(text || n == 0);
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

static void statement_done(sqlite3_stmt **q)
{
	sqlite3_finalize(*q);
}

/* First column of the first row; -1 on any error or no row (the callers' values are never
 * negative). */
static int64_t number(struct store *s, const char *sql)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK ||
	    sqlite3_step(q) != SQLITE_ROW)
		return -1;
	return sqlite3_column_int64(q, 0);
}

static char *word(struct store *s, const char *sql)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK ||
	    sqlite3_step(q) != SQLITE_ROW)
		return NULL;
	return mo_strdup((const char *)sqlite3_column_text(q, 0));
}

/* The id is written after the schema is durable: a crash between leaves an empty database
 * without an id file, which is simply filled in at the next start. */
static int create_schema(struct store *s, const char *id_file, struct mo_error *err)
{
	_cleanup_(mo_freep) char *id = mo_random_hex(16);
	_cleanup_(mo_freep) char *sql =
		mo_printf("BEGIN IMMEDIATE;CREATE TABLE records(seq INTEGER PRIMARY KEY, sum "
			  "INTEGER NOT NULL, text BLOB NOT NULL);CREATE TABLE snapshot(one INTEGER "
			  "PRIMARY KEY CHECK(one=1), seq INTEGER NOT NULL, sum INTEGER NOT NULL, "
			  "text BLOB NOT NULL);CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT "
			  "NOT NULL);INSERT INTO meta VALUES('id','%s');PRAGMA application_id=%d; "
			  "PRAGMA user_version=%d;COMMIT;",
			  id, APPLICATION_ID, SCHEMA_VERSION);
	int rc = run(s, sql);

	if (rc != SQLITE_OK)
		return database_error(s, rc, err, "creating it");
	int r = mo_write_file(id_file, id, strlen(id), 0600, true);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	return 0;
}

static int check_existing(struct store *s, const char *id_file, const char *want_id,
			  struct mo_error *err)
{
	if (number(s, "PRAGMA application_id") != APPLICATION_ID)
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: not a database of moed: choose another state_dir",
				    s->dir);
	int64_t version = number(s, "PRAGMA user_version");
	s->inside = version == 1;
	if (version < 1 || version > SCHEMA_VERSION)
		return mo_error_set(err, -EINVAL,
				    "%s/moe.db: written by a newer moed (store version %lld, this "
				    "one knows %d): start that version",
				    s->dir, (long long)version, SCHEMA_VERSION);
	_cleanup_(mo_freep) char *verdict = word(s, "PRAGMA quick_check(1)");
	if (!mo_streq(verdict, "ok"))
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: the database is damaged (%s): restore the state "
				    "directory from a backup",
				    s->dir, verdict ? verdict : sqlite3_errmsg(s->db));
	_cleanup_(mo_freep) char *id = word(s, "SELECT value FROM meta WHERE key='id'");
	if (!id)
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: the database is damaged (no id): restore the state "
				    "directory from a backup",
				    s->dir);
	if (want_id && strcmp(id, want_id) != 0)
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: not the database that belongs to store.id: restore "
				    "both from the same backup",
				    s->dir);
	if (!want_id) {
		int r = mo_write_file(id_file, id, strlen(id), 0600, true);
		if (r < 0)
			return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	}
	return 0;
}

static int prepare(struct store *s, struct mo_error *err)
{
	int rc = sqlite3_prepare_v3(s->db, "INSERT INTO records VALUES(?,?,?)", -1,
				    SQLITE_PREPARE_PERSISTENT, &s->insert, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->db, "DELETE FROM records WHERE seq<=?", -1,
					SQLITE_PREPARE_PERSISTENT, &s->trim, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->db, "BEGIN IMMEDIATE", -1, SQLITE_PREPARE_PERSISTENT,
					&s->begin, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->db, "COMMIT", -1, SQLITE_PREPARE_PERSISTENT, &s->commit,
					NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->db, "ROLLBACK", -1, SQLITE_PREPARE_PERSISTENT,
					&s->rollback, NULL);
	if (rc != SQLITE_OK)
		return database_error(s, rc, err, "preparing statements");
	int64_t oldest = number(s, "SELECT ifnull(min(seq),0) FROM records"),
		newest = number(s, "SELECT ifnull(max(seq),0) FROM records");
	s->folded = number(s, "SELECT ifnull(max(seq),0) FROM snapshot");
	if (oldest < 0 || newest < 0 || s->folded < 0)
		return database_error(s, sqlite3_errcode(s->db), err, "counting records");
	s->last_seq = MO_MAX(s->folded, newest);
	s->oldest = oldest > 0 ? oldest : s->folded + 1;
	mo_assert(s->folded <= s->last_seq && s->oldest > 0);
	return 0;
}

static char *snapshot_path(const struct store *s, int64_t seq, const char *suffix)
{
	mo_assert(seq >= 0);
	return mo_path(s->dir, SNAPSHOT_PREFIX "%lld%s", (long long)seq, suffix);
}

/* What an operator put beside them is nobody's to remove. */
static bool is_snapshot(const char *name)
{
	const char *number = name + strlen(SNAPSHOT_PREFIX),
		   *suffix = mo_starts_with(name, SNAPSHOT_PREFIX)
				     ? number + strspn(number, "0123456789")
				     : number;

	return suffix > number && (!*suffix || mo_streq(suffix, NEW_SUFFIX));
}

void store_remove_strays(struct store *s)
{
	_cleanup_(mo_freep) char *keep =
		s->inside || !s->folded ? NULL : snapshot_path(s, s->folded, "");
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, s->dir, 0);

	for (const char *name; (name = mo_dir_next(d));) {
		_cleanup_(mo_freep) char *path = mo_path(s->dir, "%s", name);
		if (is_snapshot(name) && !mo_streq(path, keep))
			mo_remove_at(AT_FDCWD, path, 0);
	}
}

static int open_database(struct store *s, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "moe.db");
	_cleanup_(mo_freep) char *id_file = mo_path(s->dir, "store.id");
	_cleanup_(mo_buf_done) struct mo_buf id = { 0 };

	int r = mo_read_file(id_file, 64, &id);
	if (r < 0 && r != -ENOENT)
		return mo_error_set(err, r, "%s: %s", id_file, strerror(-r));
	bool known = r >= 0;
	r = log_whole_check(s->dir, err);
	if (r < 0)
		return r;
	int rc = sqlite3_open_v2(path, &s->db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 NULL);
	if (rc != SQLITE_OK)
		return database_error(s, rc, err, "opening it");
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	_cleanup_(mo_freep) char *pragmas =
		mo_printf("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA "
			  "synchronous=FULL; PRAGMA secure_delete=OFF; PRAGMA "
			  "journal_size_limit=%lld; PRAGMA cell_size_check=1",
			  LOG_KEEP_BYTES);
	rc = run(s, pragmas);
	if (rc != SQLITE_OK)
		return database_error(s, rc, err, "opening it");
	int64_t tables = number(s, "SELECT count(*) FROM sqlite_master");
	if (tables < 0)
		return database_error(s, sqlite3_errcode(s->db), err, "reading it");
	if (tables == 0 && known)
		return mo_error_set(err, -EBADMSG,
				    "%s/moe.db: the database is gone or empty but store.id says "
				    "there was one: restore the state directory from a backup",
				    s->dir);
	r = tables == 0 ? create_schema(s, id_file, err)
			: check_existing(s, id_file, known ? id.data : NULL, err);
	if (r >= 0)
		r = prepare(s, err);
	return r;
}

int store_open(const char *dir, struct store **ret, struct mo_error *err)
{
	_cleanup_(store_freep) struct store *s = mo_alloc(sizeof(*s));

	assert(dir && ret);
	s->lock = -1;
	s->dir = mo_strdup(dir);
	int r = mo_mkdir_p(dir, 0700);
	if (r < 0)
		return mo_error_set(err, r,
				    "%s: %s: make the state directory writable or choose another "
				    "state_dir",
				    dir, strerror(-r));
	_cleanup_(mo_freep) char *lock = mo_path(dir, "lock");
	s->lock = mo_lock_file_soon(lock);
	if (s->lock == -EWOULDBLOCK)
		return mo_error_set(err, s->lock,
				    "%s: another moed is running on this state directory: stop it "
				    "or choose another state_dir",
				    dir);
	if (s->lock < 0)
		return mo_error_set(err, s->lock,
				    "%s: %s: make the state directory writable or choose another "
				    "state_dir",
				    lock, strerror(-s->lock));
	r = open_database(s, err);
	if (r < 0)
		return r;
	store_make_ballast(s);
	log_whole_open(&s->log, s->dir);
	/* with a transaction in it the log has a line, and whoever closes the database after a
	 * kill, by whatever program, writes into moe.db */
	if (run(s, s->inside ? "PRAGMA user_version=1" : "PRAGMA user_version=2") == SQLITE_OK)
		log_whole_written(&s->log, s->dir);
	s->opened = true;
	*ret = TAKE_PTR(s);
	return 0;
}

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	sqlite3_finalize(s->insert);
	sqlite3_finalize(s->trim);
	sqlite3_finalize(s->begin);
	sqlite3_finalize(s->commit);
	sqlite3_finalize(s->rollback);
	if (s->opened)
		log_whole_close(s->dir);
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
	int64_t trimmed = MO_MIN(s->folded, s->oldest - 1 + MO_MAX(TRIM_RECORDS, 2 * (int64_t)n));

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
	if (rc == SQLITE_OK && trimmed >= s->oldest) {
		sqlite3_bind_int64(s->trim, 1, trimmed);
		rc = step_once(s->trim);
	}
	if (rc == SQLITE_OK)
		rc = step_once(s->commit);
	if (rc != SQLITE_OK)
		return abandon(s, rc, err, "storing records");
	log_whole_written(&s->log, s->dir);
	s->last_seq += (int64_t)n;
	s->oldest = MO_MAX(s->oldest, trimmed + 1);
	mo_assert(s->last_seq >= s->folded && s->oldest <= s->last_seq + 1);
	return 0;
}

/* Text of the snapshot's file into b; -EBADMSG with err when it is not what the row says. */
static int read_file(struct store *s, const char *name, int64_t seq, int64_t sum, struct mo_buf *b,
		     struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "%s", name);
	struct head head = { 0 };

	int r = mo_read_file(path, SNAPSHOT_MAX, b);
	if (r < 0)
		return mo_error_set(err, r == -ENOENT ? -EBADMSG : r,
				    "%s: %s: the newest snapshot cannot be read: restore the state "
				    "directory from a backup",
				    path, strerror(-r));
	if (b->len >= sizeof(head))
		memcpy(&head, b->data, sizeof(head));
	if (memcmp(head.magic, SNAPSHOT_MAGIC, sizeof(head.magic)) != 0 || head.seq != seq ||
	    head.sum != sum || head.n != (int64_t)(b->len - sizeof(head)) ||
	    checksum(b->data + sizeof(head), b->len - sizeof(head)) != sum)
		return mo_error_set(err, -EBADMSG,
				    "%s: the snapshot is damaged (checksum): restore the state "
				    "directory from a backup",
				    path);
	mo_buf_consume(b, sizeof(head));
	return 0;
}

static int read_snapshot(struct store *s, int (*fn)(void *arg, const char *text, size_t n),
			 void *arg, struct mo_error *err)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;
	_cleanup_(mo_buf_done) struct mo_buf file = { 0 };

	int rc = sqlite3_prepare_v2(s->db, "SELECT seq, sum, text FROM snapshot", -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_DONE)
		return fn(arg, NULL, 0);
	if (rc != SQLITE_ROW)
		return database_error(s, rc, err, "reading the snapshot");
	int64_t seq = sqlite3_column_int64(q, 0), sum = sqlite3_column_int64(q, 1);
	const char *text = sqlite3_column_blob(q, 2);
	size_t n = (size_t)sqlite3_column_bytes(q, 2);
	if (s->inside) {
		if (checksum(text, n) != sum)
			return mo_error_set(err, -EBADMSG,
					    "%s/moe.db: the snapshot is damaged (checksum): "
					    "restore the state directory from a backup",
					    s->dir);
		return fn(arg, text, n);
	}
	_cleanup_(mo_freep) char *name = mo_strndup(text, n);
	int r = read_file(s, name, seq, sum, &file, err);
	return r < 0 ? r : fn(arg, file.data, file.len);
}

/* A snapshot is written of records that are synced: a file of a later one than the database ends
 * with says that the end of the database is gone (its write-ahead log was cut or removed). */
static int check_end(const struct store *s, struct mo_error *err)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, s->dir, 0);

	for (const char *name; (name = mo_dir_next(d));) {
		const char *number = is_snapshot(name) ? name + strlen(SNAPSHOT_PREFIX) : "0";
		_cleanup_(mo_freep) char *digits = mo_strndup(number, strspn(number, "0123456789"));
		int64_t seq = 0;

		if (mo_parse_i64(digits, 0, INT64_MAX, &seq) == 0 && seq > s->last_seq)
			return mo_error_set(err, -EBADMSG,
					    "%s/moe.db: the database ends with record %lld, but %s "
					    "beside it "
					    "is of a later one: records are lost (moe.db-wal was "
					    "cut or "
					    "removed): restore the state directory from a backup",
					    s->dir, (long long)s->last_seq, name);
	}
	return 0;
}

int store_read(struct store *s, int (*on_snapshot)(void *arg, const char *text, size_t n),
	       int (*on_record)(void *arg, int64_t seq, const char *text, size_t n), void *arg,
	       struct mo_error *err)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;
	int64_t seq = s->folded;

	mo_assert(on_snapshot && on_record && seq >= 0);
	int r = read_snapshot(s, on_snapshot, arg, err);
	if (r != 0)
		return r;
	int rc = sqlite3_prepare_v2(s->db,
				    "SELECT seq, sum, text FROM records WHERE seq>? ORDER BY seq",
				    -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 1, s->folded);
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(q);
		if (rc != SQLITE_ROW)
			break;
		const char *text = sqlite3_column_blob(q, 2);
		size_t n = (size_t)sqlite3_column_bytes(q, 2);
		if (sqlite3_column_int64(q, 0) != seq + 1 ||
		    checksum(text, n) != sqlite3_column_int64(q, 1)) {
			s->damaged = seq + 1;
			return mo_error_set(err, -EBADMSG,
					    "%s/moe.db: record %lld is damaged or missing, and "
					    "whose it was cannot be told: 'moed --quarantine' goes "
					    "back to the moment before it; or restore a backup, "
					    "when that is newer",
					    s->dir, (long long)seq + 1);
		}
		seq++;
		r = on_record(arg, seq, text, n);
		if (r != 0)
			return r;
	}
	if (rc != SQLITE_DONE)
		return database_error(s, rc, err, "reading records");
	r = check_end(s, err);
	if (r < 0)
		return r;
	/* not before: an older database that was put back alone does not know the newest
	 * snapshot */
	store_remove_strays(s);
	return 0;
}

int store_read_raw(struct store *s, int64_t from,
		   int (*fn)(void *arg, int64_t seq, const char *text, size_t n), void *arg,
		   struct mo_error *err)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;
	int rc =
		sqlite3_prepare_v2(s->db, "SELECT seq, text FROM records WHERE seq>=? ORDER BY seq",
				   -1, &q, NULL);

	mo_assert(fn && from >= 0);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 1, from);
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(q);
		if (rc == SQLITE_ROW &&
		    fn(arg, sqlite3_column_int64(q, 0), sqlite3_column_blob(q, 1),
		       (size_t)sqlite3_column_bytes(q, 1)) != 0)
			return 0;
	}
	return rc == SQLITE_DONE ? 0 : database_error(s, rc, err, "reading records");
}

int64_t store_first(const struct store *s)
{
	return s->oldest;
}

int64_t store_damaged(const struct store *s)
{
	return s->damaged;
}

static int write_synced(int fd, const char *text, size_t n)
{
	int r = 0;

	mo_assert(fd >= 0);
	for (size_t at = 0; r >= 0 && at < n; at += WRITE_BYTES) {
		int64_t began = mo_clock_boot_us();
		r = mo_write_all(fd, text + at, MO_MIN(n - at, WRITE_BYTES));
		if (r >= 0 && mo_sync(fd, true) < 0)
			r = -errno;
		mo_clock_rest_ms(
			(int)MO_MIN(WRITE_REST * (mo_clock_boot_us() - began) / 1000, 1000));
	}
	return r;
}

int store_write_snapshot(const struct store *s, int64_t seq, const char *text, size_t n)
{
	_cleanup_(mo_freep) char *path = snapshot_path(s, seq, "");
	_cleanup_(mo_freep) char *new = snapshot_path(s, seq, NEW_SUFFIX);
	struct head head = { .magic = SNAPSHOT_MAGIC, .seq = seq, .n = (int64_t)n };
	_cleanup_(mo_closep) int dir = mo_open_at(AT_FDCWD, s->dir, O_RDONLY | O_DIRECTORY, 0),
				 fd = -1;
	struct statvfs v;

	mo_assert(text && seq >= 0);
	if (n > SNAPSHOT_MAX - sizeof(head))
		return -EFBIG;
	if (dir < 0 || mo_space(s->dir, &v) < 0)
		return -errno;
	if ((int64_t)v.f_bavail * (int64_t)v.f_frsize < BALLAST_FREE_MIN + (int64_t)n)
		return -ENOSPC;
	fd = mo_open_at(AT_FDCWD, new, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return -errno;
	head.sum = checksum(text, n);
	int r = mo_write_all(fd, &head, sizeof(head));
	if (r >= 0)
		r = write_synced(fd, text, n);
	if (r >= 0 &&
	    (mo_sync(fd, false) < 0 || mo_rename(new, path) < 0 || mo_sync(dir, false) < 0))
		r = -errno;
	if (r < 0)
		mo_remove_at(AT_FDCWD, new, 0);
	return r;
}

int store_adopt_snapshot(struct store *s, int64_t seq, int64_t *ret_bytes, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = snapshot_path(s, seq, "");
	_cleanup_(mo_freep) char *old = snapshot_path(s, s->folded, "");
	_cleanup_(statement_done) sqlite3_stmt *put = NULL;
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_RDONLY, 0);
	struct head head = { 0 };
	struct stat st;

	if (fd < 0 || mo_read(fd, &head, sizeof(head)) != sizeof(head) || mo_stat_fd(fd, &st) < 0)
		return mo_error_set(err, STORE_NO_SNAPSHOT, "%s: it cannot be read: %s", path,
				    fd < 0 ? strerror(errno) : "it is cut");
	if (memcmp(head.magic, SNAPSHOT_MAGIC, sizeof(head.magic)) != 0 || head.seq != seq ||
	    head.n != st.st_size - (int64_t)sizeof(head))
		return mo_error_set(err, STORE_NO_SNAPSHOT, "%s: it is not what was written", path);
	const char *name = strrchr(path, '/') + 1;
	int rc = sqlite3_prepare_v2(s->db, "INSERT OR REPLACE INTO snapshot VALUES(1,?,?,?)", -1,
				    &put, NULL);
	if (rc == SQLITE_OK)
		rc = step_once(s->begin);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(put, 1, seq);
		sqlite3_bind_int64(put, 2, head.sum);
		sqlite3_bind_blob64(put, 3, name, strlen(name), SQLITE_STATIC);
		rc = step_once(put);
	}
	if (rc == SQLITE_OK && s->inside)
		rc = run(s, "PRAGMA user_version=2");
	if (rc == SQLITE_OK)
		rc = step_once(s->commit);
	if (rc != SQLITE_OK)
		return abandon(s, rc, err, "storing a snapshot");
	if (seq != s->folded)
		mo_remove_at(AT_FDCWD, old, 0);
	s->inside = false;
	s->folded = seq;
	*ret_bytes = head.n;
	return 0;
}

int64_t store_seq(const struct store *s)
{
	return s->last_seq;
}

int64_t store_records_since_snapshot(const struct store *s)
{
	mo_assert(s->last_seq >= s->folded);
	return s->last_seq - s->folded;
}

bool store_has_ballast(const struct store *s)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "ballast");
	struct stat st;

	return mo_stat(path, &st) == 0 && st.st_size >= BALLAST_BYTES;
}

bool store_release_ballast(struct store *s)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "ballast");

	return mo_remove_at(AT_FDCWD, path, 0) == 0;
}

int store_make_ballast(struct store *s)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "ballast");
	_cleanup_(mo_closep) int fd = -1;
	struct statvfs v;

	if (store_has_ballast(s))
		return 0;
	if (mo_space(s->dir, &v) < 0)
		return -errno;
	if ((int64_t)v.f_bavail * (int64_t)v.f_frsize < BALLAST_FREE_MIN)
		return -ENOSPC;
	fd = mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return -errno;
	int e = -mo_allocate(fd, BALLAST_BYTES);
	if (e != 0) {
		mo_remove_at(AT_FDCWD, path, 0);
		return -e;
	}
	return 0;
}
