/* The first days of a node (health.learn). Checks of which `proven: false` is said were written
 * after documents and made machines: they never met the real hardware that they read, so a
 * mistake in one would take away a whole new cluster. Until node.learn_until their CRIT findings
 * are shown (events, nodes, why, doctor) and do nothing else.
 *   begins      with the record that makes the node (REC_NODE, value); nodes of an earlier
 *               version's state have had
 *               cordons all along and are not new
 *   ends        by itself, by `moectl ack NODE`, or by a shorter health.learn; what was found by
 *               then cordons at once
 * Called by silence.c, fleet_verbs.c and cordon.c; the predicates are in health.h. */
#include "daemon/core/rules/learn.h"

#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/health.h"

void learn_tell(struct turn *t, const char *node)
{
	const struct node *n = node_find(&t->core->state, node);
	struct live *l = core_live(t->core, node);
	_cleanup_(mo_freep) char *text = health_held_text(n);

	if (!text)
		l->held = false;
	else if (!l->held && may_tell_health(t, l)) {
		l->held = true;
		event_emit(t, EVENT_HEALTH_WOULD_CORDON, MO_NONE, node, MO_NONE, MO_NONE, NULL,
			   "node %s %s", node, text);
	}
}

/* who: NULL = it ends by itself. */
static void over(struct turn *t, const char *node, const char *who)
{
	_cleanup_(mo_freep) char *name = mo_strdup(node);
	struct record r;

	record_init(&r, REC_ACK);
	r.node = mo_strdup(node);
	r.ack->learning_over = true;
	r.ack->by = who ? mo_strdup(who) : NULL;
	turn_emit(t, &r);
	event_emit(t, EVENT_HEALTH_LEARNED, MO_NONE, name, MO_NONE, MO_NONE, NULL,
		   "node %s: %s%s: what its checks find cordons it from now on", name,
		   who ? who : "its time of learning is over", who ? " trusts its checks" : "");
	health_cordon(t, name);
}

int64_t learn_pass(struct turn *t, const struct node *n)
{
	int64_t end = n->findings.learn_until == MO_NONE
			      ? INT64_MAX
			      : MO_MIN(n->findings.learn_until,
				       n->registered_at + t->core->config.learn_us);

	if (end > t->now)
		return end;
	over(t, n->name, NULL);
	return INT64_MAX;
}

void learn_ack(struct turn *t, const struct node *n)
{
	if (n->findings.learn_until == MO_NONE) {
		turn_reply(t, 409, MO_NONE,
			   "node %s: it is not new, its findings cordon it already; 'moectl ack %s "
			   "CHECK' for one of them",
			   n->name, n->name);
		return;
	}
	over(t, n->name, t->input->by.user ? t->input->by.user : "an operator");
	turn_reply(t, 200, MO_NONE, NULL);
}
