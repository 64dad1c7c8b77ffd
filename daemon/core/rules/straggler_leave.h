/* Whether a job leaves the node of the rank that makes it slow; see straggler_leave.c. */
#pragma once
#include "daemon/core/state/state.h"

struct turn;

/* So often within so long: verdicts that are wrong come to an end. */
#define LEAVES_MAX 3
#define LEAVES_US (86400LL * 1000000)

/* Its recipe asks for it and a rank stands out. */
bool straggler_may_leave(const struct job *j);
/* Why it stays, as of now; NULL: it leaves once its next checkpoint is complete. Caller frees. */
char *straggler_stays(const struct state *s, const struct job *j, int64_t now);
/* True when it leaves now. */
bool straggler_leave_act(struct turn *t, int64_t id);
