/* Durable, ordered records: SQLite (WAL, synchronous=FULL) behind append(batch), read(from),
 * snapshot. No SQL beyond this file's contract, so that etcd can come. One controller per state
 * directory: an exclusive flock on DIR/lock for life. DIR/ballast (16 MiB) is given up when the
 * disk is full, so that running jobs still record. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"

struct store;
/* Opens or creates DIR (0700). -EWOULDBLOCK: another controller holds it; other negative errno
 * with err. A damaged database is an error that says so, never an empty start. */
int store_open(const char *dir, struct store **ret, struct mo_error *err);
struct store *store_free(struct store *s);
MO_DEFINE_CLEANUP(struct store, store_free)
/* One synced transaction of n texts (each one record's JSON). Sequence numbers go up by one. 0;
 * -ENOSPC (disk full even after nothing was written); other errno: fatal. Nothing of a failed
 * batch is kept. */
int store_append(struct store *s, char *const *texts, size_t n, struct mo_error *err);
/* Calls fn for the newest snapshot (text, or NULL when none) and then each record after it in
 * order. A non-zero return of fn stops and is returned. When all was read, what writers of other
 * snapshots left is removed. */
int store_read(struct store *s, int (*on_snapshot)(void *arg, const char *text, size_t n),
	       int (*on_record)(void *arg, int64_t seq, const char *text, size_t n), void *arg,
	       struct mo_error *err);
/* The record at which store_read() ended with -EBADMSG, because it is damaged or missing; 0: it did
 * not. */
int64_t store_damaged(const struct store *s);
/* Records from this number on as they lie there, whatever became of them, until fn says other than
 * 0. */
int store_read_raw(struct store *s, int64_t from,
		   int (*fn)(void *arg, int64_t seq, const char *text, size_t n), void *arg,
		   struct mo_error *err);
int64_t store_seq(const struct store *s); /* number of the newest record */
/* number of the first record that can be read; what was before is in the snapshot alone */
int64_t store_first(const struct store *s);
/* A snapshot is made in two parts, so that nobody who appends waits for the first: the text of
 * the state as it was after record seq goes into a file, written by any process (a child:
 * nothing of the database is touched; it may die at any time); -ENOSPC: also when less than 64
 * MiB would be left. Then it becomes the snapshot: records up to seq count no more, and are
 * deleted little by little with each append. */
int store_write_snapshot(const struct store *s, int64_t seq, const char *text, size_t n);
/* with err: the file is not whole or cannot be opened; nothing has changed */
#define STORE_NO_SNAPSHOT 1
int store_adopt_snapshot(struct store *s, int64_t seq, int64_t *ret_bytes, struct mo_error *err);
/* Removes files of snapshots but the one that counts: what a writer left that failed. None may
 * be at work. */
void store_remove_strays(struct store *s);
int64_t store_records_since_snapshot(const struct store *s);
/* Gives up the ballast (true when there was one) / makes it again when at least 64 MiB are free
 * (0, or -ENOSPC). */
bool store_release_ballast(struct store *s);
int store_make_ballast(struct store *s);
bool store_has_ballast(const struct store *s);
