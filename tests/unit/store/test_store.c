/* Records and snapshots: order, survival of reopening, refusal of damage, one controller at a time,
 * a full disk. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>
#include "lib/base/fd.h"
#include "lib/store/database.h"
#include "lib/store/store.h"

static char dir[64];

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/store-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	return mo_rm_rf(dir);
}

struct seen {
	int snapshots;
	char *snapshot;
	size_t snapshot_n;
	int records;
	int64_t first, last;
	char *text;
	int stop_at;
};

static int on_snapshot(void *arg, const char *text, size_t n)
{
	struct seen *s = arg;

	s->snapshots++;
	s->snapshot = text ? mo_strndup(text, n) : NULL;
	s->snapshot_n = n;
	return 0;
}

static int on_record(void *arg, int64_t seq, const char *text, size_t n)
{
	struct seen *s = arg;

	if (!s->records++)
		s->first = seq;
	assert_true(s->records == 1 || seq == s->last + 1);
	s->last = seq;
	free(s->text);
	s->text = mo_strndup(text, n);
	return s->stop_at && s->records == s->stop_at ? -ECANCELED : 0;
}

static void seen_done(struct seen *s)
{
	free(s->snapshot);
	free(s->text);
}

static struct store *open_ok(void)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct store *s = NULL;

	int r = store_open(dir, &s, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	return s;
}

static void append(struct store *s, int from, int n)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	char *texts[64] = { 0 };

	for (int i = 0; i < n; i++)
		texts[i] = mo_printf("{\"n\":%d}", from + i);
	assert_int_equal(store_append(s, texts, (size_t)n, &err), 0);
	for (int i = 0; i < n; i++)
		free(texts[i]);
}

static void test_append_and_read(void **state)
{
	_cleanup_(seen_done) struct seen none = { 0 }, all = { 0 }, stopped = { .stop_at = 2 };

	struct store *s = open_ok();
	assert_int_equal(store_read(s, on_snapshot, on_record, &none, NULL), 0);
	assert_int_equal(none.snapshots, 1);
	assert_null(none.snapshot);
	assert_int_equal(none.records, 0);
	assert_int_equal(store_append(s, NULL, 0, NULL), 0);
	append(s, 0, 3);
	append(s, 3, 1);
	assert_null(store_free(s));
	s = open_ok();
	assert_int_equal(store_read(s, on_snapshot, on_record, &all, NULL), 0);
	assert_int_equal(all.records, 4);
	assert_int_equal(all.first, 1);
	assert_string_equal(all.text, "{\"n\":3}");
	assert_int_equal(store_read(s, on_snapshot, on_record, &stopped, NULL), -ECANCELED);
	assert_int_equal(stopped.records, 2);
	store_free(s);
}

/* As the controller does it: another process writes, this one goes on and takes the file over at
 * the end. */
static void write_snapshot(struct store *s, int64_t seq, const char *text)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(-store_write_snapshot(s, seq, text, strlen(text)));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void snapshot(struct store *s, const char *text)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int64_t bytes = 0, seq = store_seq(s);

	write_snapshot(s, seq, text);
	assert_int_equal(store_adopt_snapshot(s, seq, &bytes, &err), 0);
	assert_int_equal(bytes, strlen(text));
}

static void sql(const char *text)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db");
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t count(const char *sql)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db");
	sqlite3 *db = NULL;
	sqlite3_stmt *q = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

static void test_snapshot(void **state)
{
	_cleanup_(seen_done) struct seen seen = { 0 };

	struct store *s = open_ok();
	append(s, 0, 5);
	assert_int_equal(store_records_since_snapshot(s), 5);
	snapshot(s, "one");
	append(s, 5, 2);
	snapshot(s, "two");
	assert_int_equal(store_records_since_snapshot(s), 0);
	append(s, 7, 2);
	store_free(s);
	s = open_ok();
	assert_int_equal(store_records_since_snapshot(s), 2);
	assert_int_equal(store_read(s, on_snapshot, on_record, &seen, NULL), 0);
	assert_string_equal(seen.snapshot, "two");
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.first, 8);
	assert_string_equal(seen.text, "{\"n\":8}");
	store_free(s);
}

/* Records that come while it is written are after it; one that was written and never taken over is
 * forgotten, and so is the one before. */
static void test_snapshot_beside_appends(void **state)
{
	_cleanup_(seen_done) struct seen seen = { 0 };
	_cleanup_(mo_freep) char *old = mo_path(dir, "snapshot-5"),
				 *new = mo_path(dir, "snapshot-8"),
				 *stray = mo_path(dir, "snapshot-9"),
				 *half = mo_path(dir, "snapshot-7.new");
	_cleanup_(mo_freep) char *others = mo_path(dir, "snapshot-before-upgrade.tar"),
				 *others2 = mo_path(dir, "snapshot-2026.tar");
	int64_t bytes;

	struct store *s = open_ok();
	append(s, 0, 5);
	snapshot(s, "one");
	append(s, 5, 3);
	write_snapshot(s, 8, "two");
	append(s, 8, 2);
	assert_int_equal(store_adopt_snapshot(s, 8, &bytes, NULL), 0);
	assert_int_equal(store_records_since_snapshot(s), 2);
	append(s, 10, 1);
	write_snapshot(s, 9, "never taken over");
	assert_int_equal(mo_write_file(half, "x", 1, 0600, false), 0);
	assert_int_equal(mo_write_file(others, "x", 1, 0600, false), 0);
	assert_int_equal(mo_write_file(others2, "x", 1, 0600, false), 0);
	store_free(s);
	s = open_ok();
	/* the database may be a wrong one */
	assert_int_equal(access(stray, F_OK) + access(half, F_OK), 0);
	assert_int_equal(store_read(s, on_snapshot, on_record, &seen, NULL), 0);
	assert_int_equal(access(old, F_OK), -1);
	assert_int_equal(access(stray, F_OK), -1);
	assert_int_equal(access(half, F_OK), -1);
	assert_int_equal(access(new, F_OK), 0);
	assert_int_equal(access(others, F_OK) + access(others2, F_OK), 0);
	assert_string_equal(seen.snapshot, "two");
	assert_int_equal(seen.first, 9);
	assert_int_equal(seen.records, 3);
	store_free(s);
}

/* A file that is not what was written does not become the snapshot; a text that could not be read
 * again is not written. */
static void test_bad_files_are_not_taken_over(void **state)
{
	_cleanup_(seen_done) struct seen seen = { 0 };
	_cleanup_(mo_freep) char *path = mo_path(dir, "snapshot-2");
	_cleanup_(mo_error_done) struct mo_error none = { 0 }, cut = { 0 }, other = { 0 };
	int64_t bytes;

	struct store *s = open_ok();
	append(s, 0, 1);
	snapshot(s, "one");
	append(s, 1, 1);
	assert_int_equal(store_adopt_snapshot(s, 2, &bytes, &none), STORE_NO_SNAPSHOT);
	assert_non_null(strstr(none.text, "No such file"));
	write_snapshot(s, 2, "two");
	assert_int_equal(truncate(path, 34), 0);
	assert_int_equal(store_adopt_snapshot(s, 2, &bytes, &cut), STORE_NO_SNAPSHOT);
	assert_non_null(strstr(cut.text, "not what was written"));
	assert_int_equal(truncate(path, 3), 0);
	assert_int_equal(store_adopt_snapshot(s, 2, &bytes, &other), STORE_NO_SNAPSHOT);
	assert_non_null(strstr(other.text, "it is cut"));
	store_remove_strays(s);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(store_write_snapshot(s, 2, "", (size_t)5 << 30), -EFBIG);
	store_free(s);
	s = open_ok();
	assert_int_equal(store_read(s, on_snapshot, on_record, &seen, NULL), 0);
	assert_string_equal(seen.snapshot, "one");
	assert_int_equal(seen.records, 1);
	store_free(s);
}

/* Folded records go with the appends after it, a few with each, and not at once. */
static void test_folded_records_go_little_by_little(void **state)
{
	struct store *s = open_ok();

	for (int i = 0; i < 10; i++)
		append(s, 20 * i, 20);
	snapshot(s, "all");
	append(s, 200, 1);
	store_free(s);
	assert_int_equal(count("SELECT min(seq) FROM records"), 33);
	s = open_ok();
	for (int i = 0; i < 6; i++)
		append(s, 201 + i, 1);
	store_free(s);
	assert_int_equal(count("SELECT min(seq) FROM records"), 201);
	assert_int_equal(count("SELECT count(*) FROM records"), 7);
}

static void expect_unreadable(const char *words)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(seen_done) struct seen seen = { 0 };
	struct store *s = open_ok();

	assert_int_equal(store_read(s, on_snapshot, on_record, &seen, &err), -EBADMSG);
	assert_int_equal(seen.snapshots + seen.records, 0);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
	store_free(s);
}

/* Forgetting what was folded could start an attempt twice: nothing is read then. */
static void test_damaged_snapshot(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "snapshot-5"), *away = mo_path(dir, "away");

	struct store *s = open_ok();
	append(s, 0, 5);
	snapshot(s, "a state that is long enough");
	append(s, 5, 2);
	store_free(s);
	assert_int_equal(rename(path, away), 0);
	expect_unreadable("No such file");
	assert_int_equal(rename(away, path), 0);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "X", 1, 40), 1);
	mo_close(fd);
	expect_unreadable("damaged (checksum)");
	assert_int_equal(truncate(path, 20), 0);
	expect_unreadable("damaged (checksum)");
}

/* Its log is cut before the snapshot that lies beside it: what was acknowledged is not there any
 * more. */
static void test_snapshot_of_lost_records(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "snapshot-9"),
				 *stray = mo_path(dir, "snapshot-10.new");
	struct store *s = open_ok();

	append(s, 0, 8);
	store_free(s);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mo_write_file(i ? stray : path, "x", 1, 0600, false), 0);
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		_cleanup_(seen_done) struct seen seen = { 0 };
		s = open_ok();
		assert_int_equal(store_read(s, on_snapshot, on_record, &seen, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "ends with record 8, but snapshot-"));
		store_free(s);
		assert_int_equal(unlink(i ? stray : path), 0);
	}
	store_free(open_ok());
}

/* An older database alone was put back: what the right one needs is still there when that is put
 * back too. */
static void test_wrong_database_removes_nothing(void **state)
{
	_cleanup_(seen_done) struct seen seen = { 0 };
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db"), *away = mo_path(dir, "away");
	_cleanup_(mo_buf_done) struct mo_buf older = { 0 };

	struct store *s = open_ok();
	append(s, 0, 5);
	snapshot(s, "one");
	store_free(s);
	assert_int_equal(mo_read_file(path, 1 << 20, &older), 0);
	s = open_ok();
	append(s, 5, 5);
	snapshot(s, "two");
	store_free(s);
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(mo_write_file(path, older.data, older.len, 0600, false), 0);
	expect_unreadable("snapshot-5: No such file");
	assert_int_equal(rename(away, path), 0);
	s = open_ok();
	assert_int_equal(store_read(s, on_snapshot, on_record, &seen, NULL), 0);
	assert_string_equal(seen.snapshot, "two");
	store_free(s);
}

/* Version 1 kept the text in the row. It is read; the next snapshot makes the database version 2,
 * which an older moed refuses by name. */
static void test_snapshot_of_version_1(void **state)
{
	_cleanup_(seen_done) struct seen seen = { 0 }, later = { 0 };

	struct store *s = open_ok();
	append(s, 0, 3);
	store_free(s);
	/* the checksum of "old" by version 1's program */
	sql("INSERT INTO snapshot VALUES(1,3,-2338923762863331897,'old'); DELETE FROM records; "
	    "PRAGMA user_version=1");
	s = open_ok();
	append(s, 3, 1);
	assert_int_equal(store_read(s, on_snapshot, on_record, &seen, NULL), 0);
	assert_string_equal(seen.snapshot, "old");
	assert_int_equal(seen.first, 4);
	store_free(s);
	assert_int_equal(count("PRAGMA user_version"), 1);
	s = open_ok();
	snapshot(s, "new");
	store_free(s);
	assert_int_equal(count("PRAGMA user_version"), DATABASE_VERSION);
	s = open_ok();
	assert_int_equal(store_read(s, on_snapshot, on_record, &later, NULL), 0);
	assert_string_equal(later.snapshot, "new");
	assert_int_equal(later.records, 0);
	store_free(s);
}

/* As quarantine and a put back make one behind the other, with no record between: until the second
 * is adopted the first counts, and is whole. */
static void test_second_snapshot_of_a_record(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "snapshot-3");
	static const char *const texts[] = { "first", "second", "third" };
	struct store *s = open_ok();

	append(s, 0, 3);
	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		_cleanup_(seen_done) struct seen before = { 0 }, after = { 0 };
		assert_int_equal(store_write_snapshot(s, 3, texts[i], strlen(texts[i])), 0);
		store_free(s);
		s = open_ok();
		assert_int_equal(store_read(s, on_snapshot, on_record, &before, NULL), 0);
		if (i > 0)
			assert_string_equal(before.snapshot, texts[i - 1]);
		snapshot(s, texts[i]);
		assert_int_equal(store_read(s, on_snapshot, on_record, &after, NULL), 0);
		assert_string_equal(after.snapshot, texts[i]);
		assert_int_equal(mo_access(path, F_OK) == 0, i != 1);
	}
	store_free(s);
}

/* From the first record on an older moed refuses the file by its version, and never says that it
 * were damaged; until then it may take it back. */
static void test_a_record_bars_older_versions(void **state)
{
	store_free(open_ok());
	sql("PRAGMA user_version=2");
	struct store *s = open_ok();
	store_free(s);
	assert_int_equal(count("PRAGMA user_version"), 2);
	s = open_ok();
	append(s, 0, 1);
	store_free(s);
	assert_int_equal(count("PRAGMA user_version"), DATABASE_VERSION);
}

/* The log is as long as it gets before the first record comes (a sync then waits for nobody's
 * metadata), and the zeros behind the records of one who was killed are none. */
static void test_long_log(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db-wal");
	struct stat st;
	int status;

	for (int from = 0; from < 9; from += 3) {
		_cleanup_(seen_done) struct seen seen = { 0 };
		pid_t pid = fork();

		if (pid == 0) {
			append(open_ok(), from, 3);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size >= 4352 << 10);
		struct store *s = open_ok();
		assert_int_equal(store_read(s, on_snapshot, on_record, &seen, NULL), 0);
		assert_int_equal(seen.records, from + 3);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size >= 4352 << 10 && st.st_size < 5 << 20);
		store_free(s);
	}
}

static void test_one_controller(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct store *second = NULL, *s = open_ok();

	assert_int_equal(store_open(dir, &second, &err), -EWOULDBLOCK);
	assert_non_null(strstr(err.text, "another moed is running"));
	assert_null(second);
	store_free(s);
	store_free(open_ok());
}

static void expect_refusal(int code, const char *words)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct store *s = NULL;

	assert_int_equal(store_open(dir, &s, &err), code);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

static void test_lost_database(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db");

	store_free(open_ok());
	assert_int_equal(truncate(path, 0), 0);
	expect_refusal(-EBADMSG, "gone or empty");
	assert_int_equal(unlink(path), 0);
	expect_refusal(-EBADMSG, "gone or empty");
}

static int on_raw(void *arg, int64_t seq, const char *text, size_t n)
{
	mo_buf_printf(arg, "%lld %.*s;", (long long)seq, (int)n, text);
	return 0;
}

static void append_big(struct store *s, size_t bytes)
{
	char *text = mo_alloc(bytes + 1);

	memset(text, 'x', bytes);
	assert_int_equal(store_append(s, &text, 1, NULL), 0);
	free(text);
}

static void killed(void (*work)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		work();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void work_little(void)
{
	append(open_ok(), 0, 3);
}
static void work_much(void)
{
	append_big(open_ok(), 6 << 20);
}
static void work_long(void)
{
	struct store *s = open_ok();

	for (int i = 0; i < 160; i++)
		append_big(s, 100000);
}

/* Of a program that does not know the guard. */
static void work_unguarded(void)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db");
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=2", NULL, NULL, NULL), SQLITE_OK);
}

/* The log is cut to n bytes, or by as many. */
static void expect_cut(int64_t n)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db-wal");
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, n < 0 ? st.st_size + n : n), 0);
	expect_refusal(-EBADMSG, "moe.db-wal: it was cut: ");
}

/* It is known by its header from a short one that another process began: however often it began at
 * its start again. */
static void test_cut_logs(void **state)
{
	killed(work_little);
	expect_cut(32);
	assert_int_equal(teardown(state) + setup(state), 0);
	killed(work_long);
	expect_cut(4 << 20);
	assert_int_equal(teardown(state) + setup(state), 0);
	killed(work_much);
	expect_cut(-1);
}

/* A kill, then an earlier version that stops in order, begins again and is killed: its log is short
 * and whole. */
static void test_short_log_of_an_earlier_version(void **state)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, "moe.db-open");
	_cleanup_(seen_done) struct seen seen = { 0 };

	killed(work_little);
	sql("PRAGMA user_version=2");
	killed(work_unguarded);
	struct store *s = open_ok();
	assert_int_equal(store_read(s, on_snapshot, on_record, &seen, NULL), 0);
	assert_int_equal(seen.records, 3);
	store_free(s);
	/* of a version that said no more than that there is one: nothing tells them apart */
	killed(work_unguarded);
	assert_int_equal(mo_write_file(mark, "", 0, 0600, false), 0);
	expect_refusal(-EBADMSG, "moe.db-wal: it was cut: ");
}

static void opens(void)
{
	open_ok();
}

static void aged(const char *name, time_t seconds)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);
	struct timespec at[2];

	clock_gettime(CLOCK_REALTIME, &at[0]);
	at[0].tv_sec -= seconds;
	at[1] = at[0];
	assert_int_equal(utimensat(AT_FDCWD, path, at, 0), 0);
}

/* Killed before it had written anything, and closed by another program, which removes the log:
 * nothing is missing. */
static void test_log_of_nothing(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db-wal");
	struct stat st;

	store_free(open_ok());
	killed(opens);
	aged("moe.db", 9);
	aged("moe.db-open", 5);
	sql("SELECT count(*) FROM records");
	assert_int_equal(stat(path, &st), -1);
	store_free(open_ok());
}

/* What could not be noted, because the disk was full say, is with the next transaction. */
static void test_guard_that_could_not_be_written(void **state)
{
	_cleanup_(mo_freep) char *mark = mo_path(dir, "moe.db-open");
	struct store *s = open_ok();
	struct stat st;

	assert_int_equal(unlink(mark) + mkdir(mark, 0700), 0);
	append_big(s, 6 << 20);
	assert_int_equal(rmdir(mark), 0);
	append(s, 1, 1);
	assert_int_equal(stat(mark, &st), 0);
	store_free(s);
}

static void work_in_steps(void)
{
	struct store *s = open_ok();

	for (int64_t i = 0; i < 3; i++)
		append(s, i, 1);
}

/* What stands in the log's third transaction and behind it is read as nothing. */
static void spoil_log(void)
{
	_cleanup_(mo_freep) char *log = mo_path(dir, "moe.db-wal");
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, log, O_WRONLY, 0);

	for (int64_t at = 3 * 4096; at < 1 << 20; at += 4096)
		assert_int_equal(mo_write_at(fd, "spoiled", 7, at), 7);
}

/* Killed while it noted a transaction: what it had noted before still counts. */
static void test_half_a_note(void **state)
{
	for (size_t torn = 0; torn < 2; torn++) {
		_cleanup_(mo_freep) char *mark = mo_path(dir, "moe.db-open");
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		_cleanup_(seen_done) struct seen seen = { 0 };
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		store_free(open_ok());
		killed(work_in_steps);
		assert_int_equal(mo_read_file(mark, 1024, &b), 0);
		memset(b.data + torn * (b.len / 2), 'x', 30);
		assert_int_equal(mo_write_file(mark, b.data, b.len, 0600, false), 0);
		spoil_log();
		struct store *s = open_ok();
		assert_int_equal(store_read(s, on_snapshot, on_record, &seen, &err), -EBADMSG);
		store_free(s);
		assert_int_equal(teardown(state) + setup(state), 0);
	}
}

/* Both refusals name the file that is in the way where nothing was lost. */
static void test_way_out_of_a_lost_log(void **state)
{
	_cleanup_(mo_freep) char *log = mo_path(dir, "moe.db-wal"),
				 *mark = mo_path(dir, "moe.db-open"),
				 *advice = mo_printf("remove %s and start again", mark);

	store_free(open_ok());
	killed(work_little);
	assert_int_equal(truncate(log, 5000), 0);
	expect_refusal(-EBADMSG, advice);
	assert_int_equal(unlink(log), 0);
	aged("moe.db", 9);
	expect_refusal(-EBADMSG, advice);
	assert_int_equal(unlink(mark), 0);
	store_free(open_ok());
}

/* SQLite has put a part of the log into moe.db by itself: that is no end in order. */
static void test_long_log_that_is_gone(void **state)
{
	_cleanup_(mo_freep) char *log = mo_path(dir, "moe.db-wal");

	killed(work_long);
	assert_int_equal(unlink(log), 0);
	expect_refusal(-EBADMSG, "moe.db-wal: it is gone");
}

static void test_damage(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf raw = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 }, err2 = { 0 };
	_cleanup_(seen_done) struct seen seen = { 0 }, seen2 = { 0 };
	_cleanup_(mo_freep) char *path = mo_path(dir, "moe.db");

	struct store *s = open_ok();
	append(s, 0, 5);
	store_free(s);
	sql("UPDATE records SET text='{\"n\":9}' WHERE seq=3");
	s = open_ok();
	assert_int_equal(store_read(s, on_snapshot, on_record, &seen, &err), -EBADMSG);
	assert_int_equal(seen.records, 2);
	assert_non_null(strstr(err.text, "record 3 is damaged or missing"));
	assert_int_equal(store_damaged(s), 3);
	assert_int_equal(store_read_raw(s, store_damaged(s), on_raw, &raw, NULL), 0);
	assert_memory_equal(raw.data, "3 {\"n\":9};4 ", 12);
	assert_non_null(strstr(raw.data, ";5 "));
	store_free(s);
	sql("DELETE FROM records WHERE seq=3");
	s = open_ok();
	assert_int_equal(store_read(s, on_snapshot, on_record, &seen2, &err2), -EBADMSG);
	assert_int_equal(store_damaged(s), 3);
	store_free(s);
	sql("PRAGMA user_version=99");
	expect_refusal(-EINVAL, "newer moed");
	sql("PRAGMA application_id=1");
	expect_refusal(-EBADMSG, "not a database of moed");
	assert_int_equal(mo_write_file(path,
				       "this is no database at all, only text that is long enough "
				       "to be looked at",
				       70, 0600, false),
			 0);
	expect_refusal(-EBADMSG, "damaged");
}

/* Of the store as test_every_cut() wrote it: 0 = all of it is read; 1 = its end is missing, what
 * stands before it is there; negative: it was refused, with why. */
static int look(void)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(seen_done) struct seen seen = { 0 };
	struct store *s = NULL;
	int r = store_open(dir, &s, &err);

	if (r >= 0)
		r = store_read(s, on_snapshot, on_record, &seen, &err);
	store_free(s);
	if (r < 0) {
		assert_non_null(err.text);
		assert_non_null(strstr(err.text, dir));
		return r;
	}
	if (seen.snapshot)
		assert_string_equal(seen.snapshot, "a state that is long enough");
	assert_true(seen.records == 0 || seen.first == (seen.snapshot ? 6 : 1));
	assert_true(seen.records <= (seen.snapshot ? 2 : 5));
	return !seen.snapshot || seen.records < 2;
}

/* A file of the store, cut at each length (a long one at steps of a prime number of bytes): it is
 * refused and says where, or nothing that was stored is missing. Of SQLite's own log the end may be
 * missing, as after a crash in the middle of a write; never what stood before it. */
static void cut_each(const char *name, bool log)
{
	size_t n_refused = 0;
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);
	_cleanup_(mo_buf_done) struct mo_buf whole = { 0 };
	size_t step;

	assert_int_equal(mo_read_file(path, 64 << 20, &whole), 0);
	step = whole.len > (1 << 20) ? 65521 : whole.len > 4096 ? 509 : 1;
	for (size_t n = 0; n < whole.len; n += step) {
		assert_int_equal(mo_write_file(path, whole.data, n, 0600, false), 0);
		int r = look();
		n_refused += r < 0;
		if (r > 0 && !log)
			fail_msg("%s of %zu bytes, cut at %zu: records are missing, and nobody "
				 "says so",
				 name, whole.len, n);
		assert_int_equal(mo_write_file(path, whole.data, whole.len, 0600, false), 0);
	}
	assert_int_equal(look(), 0);
	assert_true(n_refused > 0 || log);
}

/* The database as one who was killed leaves it: everything since the start is in the log. */
static void test_every_cut_of_the_log(void **state)
{
	static const char *const names[] = { "moe.db", "moe.db-wal", "snapshot-5" };
	struct mo_buf files[ELEMENTSOF(names)] = { 0 };
	struct store *s = open_ok();
	size_t n_read = 0;

	append(s, 0, 5);
	snapshot(s, "a state that is long enough");
	append(s, 5, 2);
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%s", names[i]);
		assert_int_equal(mo_read_file(path, 64 << 20, &files[i]), 0);
	}
	store_free(s);
	/* the log is long before there is anything in it: what was written is at its beginning */
	for (size_t n = 0; n<files[1].len; n += n> 131072 ? 1048573 : 509) {
		for (size_t i = 0; i < ELEMENTSOF(names); i++) {
			_cleanup_(mo_freep) char *path = mo_path(dir, "%s", names[i]);
			size_t length = i == 1 ? n : files[i].len;
			assert_int_equal(mo_write_file(path, files[i].data, length, 0600, false),
					 0);
		}
		n_read += look() >= 0;
	}
	assert_true(n_read > 0);
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		mo_buf_done(&files[i]);
}

static void test_every_cut(void **state)
{
	struct store *s = open_ok();

	append(s, 0, 5);
	snapshot(s, "a state that is long enough");
	append(s, 5, 2);
	store_free(s);
	assert_int_equal(look(), 0);
	cut_each("snapshot-5", false);
	cut_each("store.id", false);
	cut_each("moe.db", false);
}

static void test_other_database(void **state)
{
	_cleanup_(mo_freep) char *id = mo_path(dir, "store.id");

	store_free(open_ok());
	assert_int_equal(mo_write_file(id, "0123", 4, 0600, false), 0);
	expect_refusal(-EBADMSG, "belongs to store.id");
	assert_int_equal(unlink(id), 0);
	store_free(open_ok()); /* the id file is written again */
	assert_int_equal(access(id, F_OK), 0);
}

static void test_ballast(void **state)
{
	struct store *s = open_ok();

	assert_true(store_has_ballast(s));
	assert_true(store_release_ballast(s));
	assert_false(store_has_ballast(s));
	assert_false(store_release_ballast(s));
	assert_int_equal(store_make_ballast(s), 0);
	assert_true(store_has_ballast(s));
	store_free(s);
}

static void fill(const char *path)
{
	static const char zeros[100000];
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	mo_close(fd);
}

/* The log is gone, as after a good end; the ballast is there, and not a byte beside it. */
static int start_on_full_disk(const char *filler)
{
	char *texts[] = { (char *)"after" };
	struct store *s = NULL;

	if (unlink(filler) < 0 || store_open(dir, &s, NULL) < 0 || store_make_ballast(s) < 0)
		return 7;
	store_free(s);
	fill(filler);
	if (store_open(dir, &s, NULL) < 0 || store_has_ballast(s) ||
	    store_append(s, texts, 1, NULL) < 0)
		return 8;
	store_free(s);
	return 0;
}

/* In a mount namespace with a small tmpfs: the disk fills, the batch fails whole, the ballast makes
 * room for more. */
static int full_disk(void)
{
	_cleanup_(seen_done) struct seen seen = { 0 };
	_cleanup_(mo_freep) char *filler = mo_path(dir, "filler");
	char *big = mo_alloc(100001);
	struct store *s = NULL;
	int good = 0, r;

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=96M") < 0)
		return 1;
	if (store_open(dir, &s, NULL) < 0 || !store_has_ballast(s))
		return 2;
	memset(big, 'x', 100000);
	fill(filler);
	char *texts[] = { big, big };
	while ((r = store_append(s, texts, 2, NULL)) == 0)
		good++;
	if (r != -ENOSPC || store_make_ballast(s) != 0)
		return 3;
	if (!store_release_ballast(s) || store_append(s, texts, 2, NULL) != 0 ||
	    store_make_ballast(s) != -ENOSPC)
		return 4;
	store_free(s);
	if (store_open(dir, &s, NULL) < 0 || store_read(s, on_snapshot, on_record, &seen, NULL) < 0)
		return 5;
	store_free(s);
	r = seen.records == 2 * (good + 1) ? start_on_full_disk(filler) : 6;
	free(big);
	return r;
}

static void test_full_disk(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(full_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_unusable_directory(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *file = mo_path(dir, "file"), *below = mo_path(dir, "file/state");
	struct store *s = NULL;

	assert_int_equal(mo_write_file(file, "", 0, 0600, false), 0);
	assert_true(store_open(below, &s, &err) < 0);
	assert_non_null(strstr(err.text, "state_dir"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_append_and_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshot_of_lost_records, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshot_beside_appends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_files_are_not_taken_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_folded_records_go_little_by_little, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_damaged_snapshot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_database_removes_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_snapshot_of_version_1, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_snapshot_of_a_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_record_bars_older_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_controller, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_database, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_logs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short_log_of_an_earlier_version, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_log_of_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_log_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_half_a_note, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guard_that_could_not_be_written, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_way_out_of_a_lost_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_cut_of_the_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_database, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ballast, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unusable_directory, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
