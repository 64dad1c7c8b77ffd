/* The ring of events: at most MO_EVENTS_MAX, ascending seq, with holes where some went. */
#pragma once
#include "daemon/core/state/state.h"

/* Room for one more (update.c): of a full ring an eighth goes, of those who hold most. */
void ring_make_room(struct state *s);
/* These leave (ascending seq); one that is not there did before. */
void ring_forget(struct state *s, const int64_t *seqs, size_t n);
/* Place of the first event with seq >= seq; n_events when there is none. */
size_t ring_find(const struct state *s, int64_t seq);
/* How many events after this seq are not held any more. */
int64_t ring_gone(const struct state *s, int64_t after);
