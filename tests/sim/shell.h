/* What production's agent has on its node's disk (agent/fence.c): an epoch obeyed and an attempt
 * given out are still known after any end of the agent, the epoch after a loss of power too. */
#pragma once
#include "tests/sim/sim.h"

/* The disk as an agent finds it, whose fence reaches its core. */
void shell_open(struct sim *s, int node);
/* AX_FENCE, within which the agent may die, or its node. */
void shell_fence(struct sim *s, int node, const struct agent_effect *x);
/* The agent is gone; its files stay. */
void shell_close(struct simnode *n);
void shell_power_loss(struct sim *s, int node);
/* What the fence has promised is nobody's any more. */
void shell_free(struct simnode *n);
