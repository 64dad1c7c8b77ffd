/* What nodes read of engines' own configurations, judged by the rules for recipes: FX_CONFIG of
 * the core is answered by IN_CONFIG. Everything is done in a child, one at a time: what a node
 * tells is of the job's user's making, and reading it takes longer than the loop may wait
 * (docs/decisions/008). */
#pragma once
#include "daemon/manager.h"

struct node_configs;
void node_configs_new(struct manager *m);
struct node_configs *node_configs_free(struct node_configs *c);
/* The job's; given once it is judged, or why it cannot be. */
void node_config_ask(struct manager *m, int64_t job);
