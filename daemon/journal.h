/* Records and snapshots as the text that the store keeps. A submit's engine description and
 * environment layers are seven eighths of its text and the same for most jobs: each distinct set
 * is stored once ("parts") and referred to by number. */
#pragma once
#include "daemon/core/core.h"
#include "lib/base/buf.h"
#include "lib/store/store.h"

struct journal; /* the parts that stored texts may refer to */
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
/* A snapshot's text into an empty core, as at the start. */
int journal_load(struct journal *j, struct core *core, const char *text, size_t n,
		 struct mo_error *err);
/* Fills the core from the store: snapshot, then core_update for each record. 0, or a negative
 * errno with err: damaged, or written by a newer moed; nothing may be started then. */
int journal_replay(struct journal *j, struct core *core, struct store *store, struct mo_error *err);

/* What of a store cannot be taken, and what follows it of the same job (daemon/quarantine.c). */
struct journal_rest {
	int64_t seq; /* of the record; MO_NONE: of the snapshot */
	/* of the snapshot: "jobs" ...; of the record, NULL = unknown */
	const char *list, *type;
	int64_t job;      /* MO_NONE: of no job */
	const char *text; /* complete in itself; "parts N JSON" lines, then JSON */
	/* NULL: nothing is wrong with it, but its job was taken out */
	const char *why;
};
/* 0 when it is kept. That of a job takes the job out of the core (but the snapshot's, whose job
 *   never was in it). */
typedef int (*journal_rest_fn)(void *arg, struct core *core, const struct journal_rest *rest,
			       struct mo_error *err);
/* As journal_replay(), and goes on behind what cannot be taken. -EBADMSG with *ret_end, the
 * number of a record: whose that one is cannot be told, so that nothing can be taken from there
 * on; the core is as it was before it. (0: the snapshot.) */
int journal_sift(struct journal *j, struct core *core, struct store *store, journal_rest_fn fn,
		 void *arg, int64_t *ret_end, struct mo_error *err);
/* A record, or a job of a snapshot, from such a text; ret initialised. */
int journal_read_record(struct journal *j, const char *text, size_t n, struct record *ret,
			struct mo_error *err);
/* A stored record without what it shares with others: of a submit its own part, with the number
 * of the rest in `parts`. Needs none of those before it; ret initialised. */
int journal_show_record(const char *text, size_t n, struct record *ret, struct mo_error *err);
int journal_read_job(struct journal *j, const char *text, size_t n, struct job *ret,
		     struct mo_error *err);
