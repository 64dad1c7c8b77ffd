/* The document of a node (see view.h); see view_node.c. */
#pragma once
#include "daemon/core/view/view.h"

void node_view(const struct state *s, const struct node *n, int64_t now, bool with_info,
	       struct node_view *ret);
