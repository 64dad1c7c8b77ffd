/* The controller's records and snapshots on disk (store.h says what is promised to callers: the
 * shell's turn, start, snapshot child, quarantine and backup). It knows nothing of what a record
 * says. What never happens: a batch half stored; a start that replays what is damaged, or that
 * takes a lost database for a new one; a number that is given twice.
 *
 * The database (database.c) holds records(seq, sum, text) and snapshot(one row: seq = last record
 * folded in, sum, text). Every text has a checksum and sequence numbers have no gaps, so that
 * damage inside SQLite's pages is found and reported, never replayed. A snapshot lies in a file of
 * its own (snapshot_file.c); the row has the file's name as its text and the checksum of what is
 * in the file. Version 1 had the text itself in the row: such a row is read, and the next snapshot
 * makes the database the newest version; one of version 2 becomes that with its first record. */
#include "lib/store/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/util.h"
#include "lib/store/ballast.h"
#include "lib/store/checksum.h"
#include "lib/store/database.h"
#include "lib/store/log_whole.h"
#include "lib/store/snapshot_file.h"

/* deleted with each transaction at least: they are gone long before the next snapshot */
#define TRIM_RECORDS 32

struct store {
	char *dir;
	int lock;
	struct database database;
	sqlite3_stmt *insert, *trim, *begin, *commit, *rollback, *raw;
	bool opened; /* moe.db-open is ours */
	struct log_whole log;
	int64_t last_seq; /* newest record, or the snapshot's */
	int64_t folded;   /* the snapshot's; 0 = none */
	char *snapshot;   /* the name of its file; NULL: none, or its text is in its row */
	int64_t oldest;   /* no record below is stored */
	int64_t damaged;  /* the first record that could not be read; 0 = none */
	int64_t through;  /* the last process stored up to this one at least; 0 = not known */
};

static int prepare(struct store *s, struct mo_error *err)
{
	int rc = sqlite3_prepare_v3(s->database.db, "INSERT INTO records VALUES(?,?,?)", -1,
				    SQLITE_PREPARE_PERSISTENT, &s->insert, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->database.db, "DELETE FROM records WHERE seq<=?", -1,
					SQLITE_PREPARE_PERSISTENT, &s->trim, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->database.db, "BEGIN IMMEDIATE", -1,
					SQLITE_PREPARE_PERSISTENT, &s->begin, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->database.db, "COMMIT", -1, SQLITE_PREPARE_PERSISTENT,
					&s->commit, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->database.db, "ROLLBACK", -1, SQLITE_PREPARE_PERSISTENT,
					&s->rollback, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v3(s->database.db,
					"SELECT seq, text FROM records WHERE seq>=? ORDER BY seq",
					-1, SQLITE_PREPARE_PERSISTENT, &s->raw, NULL);
	if (rc != SQLITE_OK)
		return database_error(&s->database, rc, err, "preparing statements");
	int64_t oldest = database_number(&s->database, "SELECT ifnull(min(seq),0) FROM records"),
		newest = database_number(&s->database, "SELECT ifnull(max(seq),0) FROM records");
	s->folded = database_number(&s->database, "SELECT ifnull(max(seq),0) FROM snapshot");
	if (oldest < 0 || newest < 0 || s->folded < 0)
		return database_error(&s->database, sqlite3_errcode(s->database.db), err,
				      "counting records");
	if (s->folded > 0 && s->database.version > 1)
		s->snapshot = database_text(&s->database, "SELECT text FROM snapshot");
	s->last_seq = MO_MAX(s->folded, newest);
	s->oldest = oldest > 0 ? oldest : s->folded + 1;
	mo_assert(s->folded <= s->last_seq && s->oldest > 0);
	return 0;
}

static void guard(struct store *s)
{
	log_whole_open(&s->log, s->dir, s->last_seq);
	/* with a transaction in it the log has a line, and whoever closes the database after a
	 * kill, by whatever program, writes into moe.db */
	if (database_set_version(&s->database, s->database.version) == SQLITE_OK)
		log_whole_written(&s->log, s->dir, s->last_seq);
	s->opened = true;
}

int store_open(const char *dir, struct store **ret, struct mo_error *err)
{
	_cleanup_(store_freep) struct store *s = mo_alloc(sizeof(*s));

	assert(dir && ret);
	s->lock = -1;
	s->dir = mo_strdup(dir);
	int r = mo_mkdir_p(dir, 0700, true);
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
	ballast_before_start(dir);
	r = database_open(&s->database, s->dir, err);
	if (r >= 0)
		r = prepare(s, err);
	if (r < 0)
		return r;
	store_make_ballast(s);
	s->through = log_whole_through(s->dir);
	if (s->through <= s->last_seq)
		guard(s);
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
	sqlite3_finalize(s->raw);
	if (s->opened)
		log_whole_close(s->dir);
	sqlite3_close(s->database.db);
	if (s->lock >= 0)
		mo_close(s->lock);
	free(s->snapshot);
	free(s->dir);
	free(s);
	return NULL;
}

static int abandon(struct store *s, int rc, struct mo_error *err, const char *what)
{
	int r = database_error(&s->database, rc, err, what);

	/* SQLite has often rolled back by itself after a full disk. */
	if (!sqlite3_get_autocommit(s->database.db))
		database_step(s->rollback);
	return r;
}

int store_append(struct store *s, char *const *texts, size_t n, struct mo_error *err)
{
	int64_t trimmed = MO_MIN(s->folded, s->oldest - 1 + MO_MAX(TRIM_RECORDS, 2 * (int64_t)n));
	/* with its first record here, not before: a start that fails bars no older moed. Of
	 * version 1 the snapshot in its row is as it was until the next */
	int64_t version = s->database.version == 1 ? 1 : DATABASE_VERSION;

	if (n == 0)
		return 0;
	int rc = database_step(s->begin);
	if (rc == SQLITE_OK && version != s->database.version)
		rc = database_set_version(&s->database, version);
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		size_t length = strlen(texts[i]);
		sqlite3_bind_int64(s->insert, 1, s->last_seq + 1 + (int64_t)i);
		sqlite3_bind_int64(s->insert, 2, store_checksum(texts[i], length));
		sqlite3_bind_blob64(s->insert, 3, texts[i], length, SQLITE_STATIC);
		rc = database_step(s->insert);
	}
	if (rc == SQLITE_OK && trimmed >= s->oldest) {
		sqlite3_bind_int64(s->trim, 1, trimmed);
		rc = database_step(s->trim);
	}
	if (rc == SQLITE_OK)
		rc = database_step(s->commit);
	if (rc != SQLITE_OK)
		return abandon(s, rc, err, "storing records");
	s->database.version = version;
	s->last_seq += (int64_t)n;
	if (s->opened)
		log_whole_written(&s->log, s->dir, s->last_seq);
	s->oldest = MO_MAX(s->oldest, trimmed + 1);
	mo_assert(s->last_seq >= s->folded && s->oldest <= s->last_seq + 1);
	return 0;
}

static int read_snapshot(struct store *s, int (*fn)(void *arg, const char *text, size_t n),
			 void *arg, struct mo_error *err)
{
	_cleanup_(statement_done) sqlite3_stmt *q = NULL;
	_cleanup_(mo_buf_done) struct mo_buf file = { 0 };

	int rc = sqlite3_prepare_v2(s->database.db, "SELECT seq, sum, text FROM snapshot", -1, &q,
				    NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_DONE)
		return fn(arg, NULL, 0);
	if (rc != SQLITE_ROW)
		return database_error(&s->database, rc, err, "reading the snapshot");
	int64_t seq = sqlite3_column_int64(q, 0), sum = sqlite3_column_int64(q, 1);
	const char *text = sqlite3_column_blob(q, 2);
	size_t n = (size_t)sqlite3_column_bytes(q, 2);
	if (s->database.version == 1) {
		if (store_checksum(text, n) != sum)
			return mo_error_set(err, -EBADMSG,
					    "%s/moe.db: the snapshot is damaged (checksum): "
					    "restore the state directory from a backup",
					    s->dir);
		return fn(arg, text, n);
	}
	_cleanup_(mo_freep) char *name = mo_strndup(text, n);
	int r = snapshot_file_read(s->dir, name, &(struct snapshot_head){ .seq = seq, .sum = sum },
				   &file, err);
	return r < 0 ? r : fn(arg, file.data, file.len);
}

void store_remove_strays(struct store *s)
{
	snapshot_file_remove_others(s->dir, s->snapshot);
}

static int damaged_at(struct store *s, int64_t seq, struct mo_error *err)
{
	s->damaged = seq;
	return mo_error_set(err, -EBADMSG,
			    "%s/moe.db: record %lld is damaged or missing, and whose it was cannot "
			    "be told: 'moed --quarantine' goes back to the moment before it; or "
			    "restore a backup, when that is newer",
			    s->dir, (long long)seq);
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
	int rc = sqlite3_prepare_v2(s->database.db,
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
		    store_checksum(text, n) != sqlite3_column_int64(q, 1))
			return damaged_at(s, seq + 1, err);
		seq++;
		r = on_record(arg, seq, text, n);
		if (r != 0)
			return r;
	}
	if (rc != SQLITE_DONE)
		return database_error(&s->database, rc, err, "reading records");
	/* SQLite takes a log of which one bit is another for one that ended there */
	if (s->through > s->last_seq)
		return damaged_at(s, s->last_seq + 1, err);
	r = snapshot_file_check_end(s->dir, s->last_seq, err);
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
	int rc = sqlite3_bind_int64(s->raw, 1, from);
	bool more = rc == SQLITE_OK;

	mo_assert(fn && from >= 0);
	while (more) {
		rc = sqlite3_step(s->raw);
		more = rc == SQLITE_ROW &&
		       fn(arg, sqlite3_column_int64(s->raw, 0), sqlite3_column_blob(s->raw, 1),
			  (size_t)sqlite3_column_bytes(s->raw, 1)) == 0;
	}
	int r = rc == SQLITE_ROW || rc == SQLITE_DONE
			? 0
			: database_error(&s->database, rc, err, "reading records");
	sqlite3_reset(s->raw);
	return r;
}

int64_t store_first(const struct store *s)
{
	return s->oldest;
}

int64_t store_damaged(const struct store *s)
{
	return s->damaged;
}

int store_write_snapshot(const struct store *s, int64_t seq, const char *text, size_t n)
{
	_cleanup_(mo_freep) char *name = snapshot_file_name(seq, s->snapshot);

	return snapshot_file_write(s->dir, name, seq, text, n);
}

int store_adopt_snapshot(struct store *s, int64_t seq, int64_t *ret_bytes, struct mo_error *err)
{
	_cleanup_(mo_freep) char *name = snapshot_file_name(seq, s->snapshot);
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "%s", name);
	_cleanup_(mo_freep) char *old = s->snapshot ? mo_path(s->dir, "%s", s->snapshot) : NULL;
	_cleanup_(statement_done) sqlite3_stmt *put = NULL;
	struct snapshot_head head;

	if (snapshot_file_head(path, seq, &head, err) < 0)
		return STORE_NO_SNAPSHOT;
	int rc = sqlite3_prepare_v2(s->database.db,
				    "INSERT OR REPLACE INTO snapshot VALUES(1,?,?,?)", -1, &put,
				    NULL);
	if (rc == SQLITE_OK)
		rc = database_step(s->begin);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(put, 1, seq);
		sqlite3_bind_int64(put, 2, head.sum);
		sqlite3_bind_blob64(put, 3, name, strlen(name), SQLITE_STATIC);
		rc = database_step(put);
	}
	if (rc == SQLITE_OK && s->database.version < DATABASE_VERSION)
		rc = database_set_version(&s->database, DATABASE_VERSION);
	if (rc == SQLITE_OK)
		rc = database_step(s->commit);
	if (rc != SQLITE_OK)
		return abandon(s, rc, err, "storing a snapshot");
	if (s->through > s->last_seq) /* who makes one of what is left goes on without the rest */
		log_whole_close(s->dir);
	s->through = 0;
	if (old)
		mo_remove_at(AT_FDCWD, old, 0);
	free(s->snapshot);
	s->snapshot = TAKE_PTR(name);
	s->database.version = DATABASE_VERSION;
	s->folded = seq;
	*ret_bytes = head.bytes;
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
	return ballast_there(s->dir);
}

bool store_release_ballast(struct store *s)
{
	return ballast_release(s->dir);
}

int store_make_ballast(struct store *s)
{
	return ballast_make(s->dir);
}
