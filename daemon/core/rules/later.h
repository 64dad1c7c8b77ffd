/* What a node tells of a failure after it was judged: lines of its kernel and checks, which come by
 * a pass of their own. What was done stays; why tells it, and a node whose part is broken is left
 * and cordoned as if that had been known. Called by cordon.c. */
#pragma once
#include "daemon/core/state/state.h"

struct turn;

/* Those that are new, or worse than before (NULL: nothing was known); the caller frees the list,
 * what it points to is after's. */
const struct check_result **later_findings(const struct node_health *before,
					   const struct node_health *after, size_t *ret_n);
/* One of them, of an unfinished job's last failure there, or of a job of which the node has a
 * step. */
void later_found(struct turn *t, const char *node, const struct check_result *r);
