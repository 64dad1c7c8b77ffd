/* Whether a node is heard; see silence.c. */
#pragma once
#include "daemon/core/state/live.h"

struct turn;

/* The node said something now: one that was silent is up again. */
void fleet_heard(struct turn *t, const char *name);
/* Called when liveness_at was reached: checks every node and sets the next time to check. */
void fleet_silence(struct turn *t);
/* The controller itself was late by so many microseconds, for which nobody can be blamed. */
void fleet_late(struct core *c, int64_t by, int64_t now);
