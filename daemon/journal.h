/* Records and snapshots as the text that the store keeps, and back. What submits have in common is
 * stored once (journal_parts.h); the start is journal_replay.h. */
#pragma once
#include "daemon/core/state/record.h"
#include "daemon/core/state/state.h"
#include "daemon/journal_parts.h"
#include "lib/base/buf.h"
#include "lib/base/error.h"

struct journal {
	struct parts_table parts; /* that stored texts may refer to */
};
struct journal *journal_new(void);
struct journal *journal_free(struct journal *j);
/* Caller frees. Texts must be stored in the order they were made: a later one refers to parts of
 * an earlier one. */
char *journal_record_text(struct journal *j, const struct record *r);
/* A snapshot's text, complete in itself. Whoever has it made, by whatever process, says so at
 * once: later records refer to no set that was stored before, and use none of the text's
 * numbers. A text that is never stored harms nothing. */
void journal_snapshot_text(const struct journal *j, const struct state *s, struct mo_buf *ret);
void journal_snapshot_taken(struct journal *j);
/* A snapshot's text behind its first line, parts first; NULL: it was written by a newer moed. */
const char *journal_snapshot_behind(const char *text, size_t *n);
/* A record, or a job of a snapshot, from such a text; ret initialised. */
int journal_read_record(struct journal *j, const char *text, size_t n, struct record *ret,
			struct mo_error *err);
/* A stored record without what it shares with others: of a submit its own part, with the number
 * of the rest in `parts`. Needs none of those before it; ret initialised. */
int journal_show_record(const char *text, size_t n, struct record *ret, struct mo_error *err);
int journal_read_job(struct journal *j, const char *text, size_t n, struct job *ret,
		     struct mo_error *err);
