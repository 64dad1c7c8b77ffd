/* GET /metrics of the agent (metrics_listen): what this node's GPUs, cards, checks and ranks do,
 * for Prometheus; the controller tells no more than what concerns the cluster (GET /v1/sd of moed
 * lists the agents). */
#pragma once
#include "agent/manager.h"

/* With metrics_port -1 it listens nowhere; nor where the port cannot be had, which is said, and
 * keeps no steps from being adopted. */
struct metrics *metrics_new(struct manager *m);
struct metrics *metrics_free(struct metrics *e);
/* Where it listens; MO_NONE: nowhere. */
int64_t metrics_port(const struct metrics *e);
