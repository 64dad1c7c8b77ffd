/* A node in one word and one sentence, as every document shows it: of `nodes`, `node`, `why` and
 * the cluster's counts. Reads only. */
#pragma once
#include "daemon/core/state/state.h"

/* Of the drain, of its silence, or why it takes no work; NULL none; caller frees. */
char *node_reason(const struct state *s, const struct node *n);
