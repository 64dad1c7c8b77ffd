/* What the core has done with one step: its effects on a step directory, in the order in which they
 * were decided. An effect that ends at once queues its answer into the same turn. */
#pragma once
#include "agent/manager.h"

/* An effect on a step that is not here, or of another kind, does nothing. */
void step_effect(struct manager *m, struct agent_effect *x);
