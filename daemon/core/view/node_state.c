/* See node_state.h. */
#include "daemon/core/view/node_state.h"

#include "daemon/core/rules/refusal.h"
#include "daemon/core/state/health.h"

char *node_reason(const struct state *s, const struct node *n)
{
	_cleanup_(refusal_done) struct refusal r = { 0 };

	if (n->state == NODE_UP && n->drain.asked && n->drain.reason)
		return mo_strdup(n->drain.reason);
	if (n->reason)
		return mo_strdup(n->reason);
	if (n->drain.asked)
		return NULL;
	return node_refuses(s, n, &r) ? TAKE_PTR(r.text) : health_held_text(n);
}
