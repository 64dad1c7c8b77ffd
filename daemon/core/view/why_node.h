/* Why a node is as it is; see why_node.c. */
#pragma once
#include "daemon/core/view/view.h"
#include "daemon/core/view/why_view.h"

/* Adds what its GPUs and cards were last seen to do to the reasons of a job that makes no
 * progress. */
void core_why_readings(const struct core *core, const struct job *j, int64_t now,
		       struct why_view *ret);
void node_why(const struct state *s, const struct node *n, int64_t now, struct why_view *ret);
