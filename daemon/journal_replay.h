/* What the store has, into an empty core: at the start, for a backup, in quarantine. */
#pragma once
#include "daemon/core/core.h"
#include "daemon/journal.h"
#include "lib/store/store.h"

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
