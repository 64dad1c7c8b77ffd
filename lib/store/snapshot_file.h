/* The files DIR/snapshot-SEQ, or snapshot-SEQ-2, one snapshot each: a head with record, length and
 * checksum, then the text. A snapshot lies in a file of its own because putting a large one into
 * the database stops whoever does it. Which of them counts says the database (store.c); any process
 * may write one. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"

/* what the head of one says */
struct snapshot_head {
	int64_t seq;   /* the last record that is folded in */
	int64_t bytes; /* of the text */
	int64_t sum;
};
/* The name of a new one, never that of the one that counts, which stays whole until another does;
 * counts NULL: none does. Caller frees. */
char *snapshot_file_name(int64_t seq, const char *counts);
/* In pieces, with rests between them: records need the disk too. Under its name only when it is
 * whole and synced. 0; -ENOSPC: also when less than BALLAST_FREE_MIN would be left; -EFBIG; another
 * negative errno. */
int snapshot_file_write(const char *dir, const char *name, int64_t seq, const char *text, size_t n);
/* The head alone, checked against the length of the file. -EBADMSG or another negative errno, with
 * err. */
int snapshot_file_head(const char *path, int64_t seq, struct snapshot_head *ret,
		       struct mo_error *err);
/* The text of the file of that name, into b, which is empty; -EBADMSG with err when
 * it is not what is wanted. */
int snapshot_file_read(const char *dir, const char *name, const struct snapshot_head *want,
		       struct mo_buf *b, struct mo_error *err);
/* A snapshot is written of records that are synced: a file of a later one than the database ends
 * with (last) says that the end of the database is gone. 0, or -EBADMSG with err. */
int snapshot_file_check_end(const char *dir, int64_t last, struct mo_error *err);
/* Removes all but keep, also what writers left; NULL: all. What an operator put beside them is
 * nobody's to remove. */
void snapshot_file_remove_others(const char *dir, const char *keep);
