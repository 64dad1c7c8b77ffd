/* A controller's state is made on purpose, never by a start: moed --init, moed --restore FILE. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/options.h"
#include "lib/store/store.h"

/* Does the directory hold the state of a controller? */
bool begin_there(const char *state_dir);
/* -ENOENT with err, which says what to do, when there is none; -EBUSY when a restore was cut
 * short. */
int begin_check(const char *state_dir, struct mo_error *err);
/* -EBADMSG with err: its log holds nothing, not even what every state begins with. */
int begin_begun(const char *state_dir, const struct store *store, struct mo_error *err);
/* The record with which this state begins an incarnation; backup_time: of the backup that it is
 * of, MO_NONE = of none. */
struct record begin_incarnation(const struct state *s, int64_t backup_time);
/* What the options ask for (init or restore). Says on stdout what was made. */
int begin_run(const struct options *o, struct mo_error *err);
