/* Whether a node is heard; see silence.c. */
#pragma once
#include "daemon/core/state/live.h"

struct turn;

/* Nobody could be heard while there was no controller: all are as if heard now. */
void silence_begin(struct turn *t);
/* The node said something now: one that was silent is up again. */
void fleet_heard(struct turn *t, const char *name);
/* Called when liveness_at was reached: looks at who is silent for too long, and sets the next time
 * to look. */
void fleet_silence(struct turn *t);
/* The controller itself was late by so many microseconds, for which nobody can be blamed. */
void fleet_late(struct core *c, int64_t by, int64_t now);
