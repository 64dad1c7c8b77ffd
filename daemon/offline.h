/* The state of a controller that does not run, opened to be repaired: its store, and a core into
 * which the caller replays what can be read. Nothing is changed before offline_store(). */
#pragma once
#include "daemon/core/core.h"
#include "daemon/journal.h"
#include "lib/model/event_type.h"
#include "lib/store/store.h"

struct offline {
	const char *state_dir;
	struct store *store;
	struct journal *journal;
	struct core *core;
};
/* Becomes who owns the state. 0, or a negative errno with err. */
int offline_open(struct offline *s, const char *state_dir, struct mo_error *err);
void offline_done(struct offline *s);
/* Adds an event to the state, of a job or of none (MO_NONE). */
void offline_event(struct offline *o, enum event_type type, int64_t job, const char *message);
/* The state as it is now is what the next start reads. */
int offline_store(struct offline *s, struct mo_error *err);
