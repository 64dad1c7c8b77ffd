/* Nodes whose commands a record may have changed: only these are visited when the turn ends
 * (commands_wake), whatever the size of the cluster. Called by turn_emit() and by rules. */
#pragma once
#include "daemon/core/state/live.h"
#include "daemon/core/state/record.h"

/* not known: nothing */
void wake_node(struct core *c, const char *node);
void wake_changed(struct core *c, const struct record *r); /* after each record */
