/* See cordon_lift.h. */
#include "daemon/core/rules/cordon_lift.h"

#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/health.h"

#define DISK_CHECK "host.disk" /* config/health/host.yaml */
#define DISK_FULL DISK_CHECK " "

void cordon_lift(struct turn *t, const char *node)
{
	const struct node *n = node_find(&t->core->state, node);
	_cleanup_(mo_freep) char *cordon = mo_strdup(n->drain.asked ? n->drain.cordon : NULL);
	const struct check_result *other = health_cordon_reason(n);
	_cleanup_(mo_freep) char *name = other ? finding_name(other) : NULL;
	struct record r;

	if (!cordon || !mo_starts_with(cordon, DISK_FULL) || !n->health ||
	    !n->health->preflight_done ||
	    health_find(n->health, DISK_CHECK, cordon + strlen(DISK_FULL)))
		return;
	record_init(&r, REC_DRAIN);
	r.node = mo_strdup(node);
	r.drain->step = other ? DRAIN_ON : DRAIN_OFF;
	if (other) {
		r.drain->reason = mo_printf("%s: %s", name, other->text ? other->text : "CRIT");
		r.drain->when = mo_strdup("idle");
		r.drain->finding = mo_strdup(name);
		r.drain->broken_hardware = other->hardware;
	}
	turn_emit(t, &r);
	if (other)
		event_emit(t, EVENT_NODE_DRAINING, MO_NONE, node, MO_NONE, MO_NONE, NULL,
			   "node %s: %s is ok again, and it stays cordoned: %s", node, cordon,
			   name);
	else
		event_emit(t, EVENT_NODE_UNDRAINED, MO_NONE, node, MO_NONE, MO_NONE, NULL,
			   "node %s takes work again: %s, which cordoned it, is ok", node, cordon);
}
