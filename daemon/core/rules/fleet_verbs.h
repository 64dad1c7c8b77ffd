/* What people ask of nodes; see fleet_verbs.c. */
#pragma once
#include <stdbool.h>

struct node;
struct turn;

/* IN_DRAIN, IN_UNDRAIN, IN_ACK, IN_FENCE */
void fleet_verb(struct turn *t);
/* The machine is off: every step there is dead. how: "fenced by ada". */
void fleet_fenced(struct turn *t, const struct node *n, const char *how);
/* Drains that are done: no rank is left on the node. True when it emitted something. */
bool fleet_drain(struct turn *t);
