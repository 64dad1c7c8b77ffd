/* What keeps new work away from a node, and what ends that: the one answer of `why`, `nodes`,
 * `node` and `undrain`. Placement asks the same three questions (node_unfit, step_uncertain,
 * health_standard) for all nodes at once; a test holds both against each other. Pure; called by
 * views and by fleet_verbs.c. */
#pragma once
#include "daemon/core/state/state.h"

struct refusal {
	char *text; /* why */
	char *next; /* what ends it: the command, or what to do first */
};
void refusal_done(struct refusal *r);
/* True: jobs with health.preflight: standard get nothing of this node; *ret is to be freed. */
bool node_refuses(const struct state *s, const struct node *n, struct refusal *ret);
