/* Deaths that speak against the checkpoint that an attempt loaded. Called by policy.c, when every
 * step of the attempt is dead and the incident is recorded. */
#pragma once
#include "daemon/core/rules/blame.h"

struct turn;

/* Whether the death counts against the checkpoint that was loaded, whatever is known of that by
 * now: nothing else explains it. */
bool suspect_counts(const struct state *s, const struct job *j, const struct blame *b);
/* Counts it: the second makes it suspect, and it is resumed no more unless a person names it. The
 * job is found anew behind it. */
void suspect_blame(struct turn *t, int64_t id, const struct blame *b, const char *cause);
/* Too many in a row: it is not the checkpoints. Caller frees; NULL = another attempt follows. */
char *suspect_give_up(const struct job *j, const char *cause);
/* What follows, in the words of a reason: the next attempt, and which checkpoint it does not take.
 * Caller frees. */
char *suspect_next(const struct job *j);
