/* Nodes: hello, beats, silence, drains, fences; see fleet.c. */
#pragma once
#include "daemon/core/state/live.h"

struct turn;

void fleet_hello(struct turn *t);
void fleet_sync(struct turn *t);
/* IN_DRAIN, IN_UNDRAIN, IN_ACK, IN_FENCE */
void fleet_verb(struct turn *t);
void fleet_silence(struct turn *t);
void fleet_late(struct core *c, int64_t by, int64_t now);
void fleet_heard(struct turn *t, const char *name);
/* True when it emitted something. */
bool fleet_drain(struct turn *t);
