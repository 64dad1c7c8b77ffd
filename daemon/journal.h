/* Records and snapshots as the text that the store keeps. */
#pragma once
#include "daemon/core/core.h"
#include "lib/base/buf.h"
#include "lib/store/store.h"

char *journal_record_text(const struct record *r);                 /* caller frees */
void journal_snapshot_text(const struct state *s, struct mo_buf *ret);
/* Fills the core from the store: snapshot, then core_update for each record. 0, or a negative errno with err: damaged, or written by a newer moed; nothing may be started then. */
int journal_replay(struct core *core, struct store *store, struct mo_error *err);
