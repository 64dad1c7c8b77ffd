/* See way_back.h. */
#include "daemon/core/rules/way_back.h"

#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/refusal.h"
#include "daemon/core/rules/terms.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/health.h"

#define CHECKS_US (5 * 60 * 1000000LL) /* of all programs, one behind the other */

bool way_back_leads(const struct core *c, const struct node *n)
{
	const struct live *l = live_of(c, n->name);
	const char *by = n->drain.cordon ? n->drain.cordon : "";

	return l && l->doubts && n->state == NODE_UP &&
	       (mo_starts_with(by, "gpu.") || mo_starts_with(by, "klog.") || cordon_by_failures(n));
}

void way_back_begin(struct turn *t, const struct node *n)
{
	_cleanup_(mo_freep) char *name = mo_strdup(n->name);
	struct record r;

	if (!n->drain.done) {
		turn_reply(t, 409, MO_NONE,
			   "node %s: ranks are left on it, and its GPUs are tried when it is free, "
			   "before it takes work again; 'moectl undrain %s --force' does not wait",
			   name, name);
		return;
	}
	if (n->drain.back == MO_NONE) {
		record_init(&r, REC_DRAIN);
		r.node = mo_strdup(name);
		r.drain->step = DRAIN_CHECK;
		r.drain->until = t->now + CHECKS_US;
		terms_add(t->core, t->now + CHECKS_US);
		turn_emit(t, &r);
		audit_emit(t, EVENT_AUDIT_UNDRAINED, name,
			   "undrained node %s, when its GPUs compute right", name);
	}
	turn_reply(t, 200, MO_NONE, NULL);
}

/* What is said of what cordoned it: failures count no more, as it was looked after meanwhile. */
static char *forgiven(const struct node *n)
{
	return cordon_by_failures(n)
		       ? mo_printf("; what cordoned it counts no more against its GPUs: %s",
				   n->drain.reason ? n->drain.reason : n->drain.cordon)
		       : mo_strdup("");
}

void way_back_open(struct turn *t, const char *node)
{
	const struct node *n = node_find(&t->core->state, node);
	_cleanup_(mo_freep) char *anew = forgiven(n);
	_cleanup_(refusal_done) struct refusal refusal = { 0 };
	struct record r;

	record_init(&r, REC_DRAIN);
	r.node = mo_strdup(node);
	r.drain->step = DRAIN_OFF;
	turn_emit(t, &r);
	n = node_find(&t->core->state, node);
	if (health_unlooked(n))
		event_emit(t, EVENT_NODE_UNDRAINED, MO_NONE, node, MO_NONE, MO_NONE, NULL,
			   "node %s takes work again; its preflight checks are not done yet: what "
			   "they still find cordons it again%s",
			   node, anew);
	else if (node_refuses(&t->core->state, n, &refusal))
		event_emit(t, EVENT_NODE_UNDRAINED, MO_NONE, node, MO_NONE, MO_NONE, NULL,
			   "node %s is not drained any more, but gets no work: %s; %s%s", node,
			   refusal.text, refusal.next, anew);
	else
		event_emit(t, EVENT_NODE_UNDRAINED, MO_NONE, node, MO_NONE, MO_NONE, NULL,
			   "node %s takes work again%s", node, anew);
	health_cordon(t, node);
	health_cordon_more(t);
}

static void hold(struct turn *t, const char *node, const char *why)
{
	struct record r;

	record_init(&r, REC_DRAIN);
	r.node = mo_strdup(node);
	r.drain->step = DRAIN_CHECK;
	r.drain->reason = mo_strdup(why);
	turn_emit(t, &r);
	event_emit(t, EVENT_NODE_DRAINING, MO_NONE, node, MO_NONE, MO_NONE, NULL,
		   "node %s stays cordoned: %s; 'moectl undrain %s' tries it again, with --force "
		   "it takes work in spite of it",
		   node, why, node);
}

const struct check_result *way_back_against(const struct node *n)
{
	const struct check_result *worst = NULL;

	for (size_t i = 0; n->health && i < n->health->n_results; i++) {
		const struct check_result *r = &n->health->results[i];

		if (r->when == MO_NONE || !(r->when & WHEN_DOUBT) || r->action == ACTION_REPORT ||
		    finding_held(n, r))
			continue;
		if (!worst || health_rank(r->state) > health_rank(worst->state))
			worst = r;
	}
	return worst;
}

int64_t way_back_pass(struct turn *t, const struct node *n)
{
	_cleanup_(mo_freep) char *finding = NULL, *why = NULL;

	if (n->drain.back == MO_NONE)
		return INT64_MAX;
	if (health_checked(n->health, 0, n->drain.back)) {
		const struct check_result *r = way_back_against(n);

		finding = r ? finding_name(r) : NULL;
		why = r ? mo_printf("%s: %s", finding,
				    r->text ? r->text
					    : mo_enum_name(check_state_names, _CHECK_STATE_N,
							   r->state))
			: NULL;
	} else if (t->now < n->drain.back_until) {
		return n->drain.back_until;
	} else {
		why = mo_printf("its GPUs were not tried within %lld minutes",
				(long long)(CHECKS_US / 60000000));
	}
	if (why)
		hold(t, n->name, why);
	else
		way_back_open(t, n->name);
	return INT64_MAX;
}
