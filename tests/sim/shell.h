/* What of production's agent runs on each node: its fence (agent/fence.c) on the node's disk, its
 * steps (steps.h), its link (agent/link.c) with tokens, over a network that loses (network.c), with
 * what health.c finds. An epoch obeyed and an attempt given out are still known after any end of
 * the agent, the epoch after a loss of power too. */
#pragma once
#include "tests/sim/sim.h"

#include "agent/manager.h"
#include "tests/unit/seams/world.h"

struct watch {
	struct shell *shell;
};
/* An agent's, while it lives. */
struct shell {
	struct sim *sim;
	int node;
	struct agent_config config;
	struct manager m; /* of which there is what those ask for */
	struct watch watch;
	struct controller *controller;
	struct seam_life life;
	bool draining;
	size_t taken; /* of what is queued */
};

/* The disk as an agent finds it, whose fence reaches its core. */
void shell_open(struct sim *s, int node);
/* What it queued reaches its core. */
void shell_drain(struct sim *s, int node);
/* AX_FENCE, within which the agent may die, or its node. */
void shell_fence(struct sim *s, int node, const struct agent_effect *x);
void shell_hello(struct sim *s, int node);
void shell_sync(struct sim *s, int node);
void shell_urgent(struct sim *s, int node);
/* While it writes what comes next it may fail, or die. */
void shell_risk(struct shell *sh);
void shell_die(struct sim *s, int node); /* its node may with it */
/* The agent is gone; its files stay. */
void shell_close(struct simnode *n);
void shell_power_loss(struct sim *s, int node);
void shell_free(struct simnode *n);

/* Clocks and disk are that node's, between these two. */
void shell_enter(struct shell *sh);
void shell_leave(void);
struct shell *shell_of(struct manager *m);
struct simnode *shell_node(const struct shell *sh);
