/* What a node tells of a failure after it was judged: lines of its kernel and checks, which come by
 * a pass of their own. What was done stays; why tells it, and a node whose part is broken is left
 * and cordoned as if that had been known. */
#pragma once
#include "daemon/core/state/state.h"

struct turn;

/* h was said, and is stored if it was to be; before: what was known till then, NULL: nothing. Its
 * findings that are new, or worse than before, are told of the last failures there of unfinished
 * jobs, and of jobs of which the node has a step. */
void later_told(struct turn *t, const char *node, const struct node_health *before,
		const struct node_health *h);
