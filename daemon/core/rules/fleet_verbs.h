/* What people ask of nodes; see fleet_verbs.c. */
#pragma once
#include <stdbool.h>

struct turn;

/* IN_DRAIN, IN_UNDRAIN, IN_ACK, IN_FENCE */
void fleet_verb(struct turn *t);
/* Drains that are done: no rank is left on the node. True when it emitted something. */
bool fleet_drain(struct turn *t);
