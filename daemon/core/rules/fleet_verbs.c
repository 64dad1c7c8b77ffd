/* What people ask of nodes: drain, undrain, take note of a finding (ack), and say that one is off
 * (fence), which proves its ranks dead. Only operators may. Also the rule by which a drain is
 * done. */
#include "daemon/core/rules/fleet_verbs.h"

#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/learn.h"
#include "daemon/core/rules/proof.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/way_back.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/heard.h"

/* Which findings of a check a person may take note of: those since the boot go into *ret
 * (texts), and what ends the first one that is so now into *ret_now (caller frees). Returns
 * whether there is any. */
static bool find_ack(const struct node *n, const char *check, struct record *ret, char **ret_now)
{
	bool found = false;

	for (size_t i = 0; n->health && i < n->health->n_results; i++) {
		const struct check_result *c = &n->health->results[i];
		_cleanup_(mo_freep) char *finding = finding_name(c);

		if (!mo_streq(c->check, check) || c->state != CHECK_CRIT)
			continue;
		found = true;
		if (!c->since_boot && !*ret_now)
			*ret_now = finding_next(n, c);
		else if (c->since_boot && !finding_acked(n, c))
			mo_strs_add(&ret->ack->findings, &ret->ack->n_findings, finding);
	}
	return found;
}

/* Takes what r holds. */
static void acked(struct turn *t, struct record *r, const char *check, const char *user)
{
	_cleanup_(mo_freep) char *what = mo_strdup(r->ack->findings[0]), *node = mo_strdup(r->node);
	size_t more = r->ack->n_findings - 1;

	turn_emit(t, r);
	event_emit(t, EVENT_HEALTH_ACKED, MO_NONE, node, MO_NONE, MO_NONE, NULL,
		   "node %s: %s knows of %s%s%s: it keeps no job away before the next boot, unless "
		   "it counts more",
		   node, user, what, more ? " and others of " : "", more ? check : "");
}

/* A finding since the boot is known to a person, who wants the node to work: no job is kept away
 * by it before it counts more, or the next boot. */
static void ack(struct turn *t, const struct node *n)
{
	const char *check = t->input->ack->check;
	const char *user = t->input->by.user ? t->input->by.user : "an operator";
	_cleanup_(mo_freep) char *now = NULL;
	struct record r;

	record_init(&r, REC_ACK);
	if (!find_ack(n, check, &r, &now)) {
		turn_reply(t, 404, MO_NONE,
			   "node %s: no finding of %s keeps work away; see 'moectl node %s'",
			   n->name, check, n->name);
	} else if (now) {
		turn_reply(t, 409, MO_NONE,
			   "node %s: what %s says is so now, and goes when it is mended: %s",
			   n->name, check, now);
	} else {
		r.node = mo_strdup(n->name);
		r.ack->by = mo_strdup(user);
		if (r.ack->n_findings)
			acked(t, &r, check, user);
		turn_reply(t, 200, MO_NONE, NULL);
	}
	mo_desc_done(&record_desc, &r);
}

static void drain(struct turn *t)
{
	const struct in_drain *in = t->input->drain;
	const char *when = in->when ? in->when : "idle";
	struct record r;

	if (!mo_streq(when, "idle") && !mo_streq(when, "checkpoint") && !mo_streq(when, "now")) {
		turn_reply(t, 422, MO_NONE, "drain --when %s: it must be idle, checkpoint or now",
			   when);
		return;
	}
	record_init(&r, REC_DRAIN);
	r.node = mo_strdup(in->node);
	r.drain->step = DRAIN_ON;
	r.drain->reason = mo_strdup(in->reason);
	r.drain->when = mo_strdup(when);
	turn_emit(t, &r);
	audit_emit(t, EVENT_AUDIT_DRAINED, in->node, "drained node %s (%s)%s%s", in->node, when,
		   in->reason ? ": " : "", in->reason ? in->reason : "");
	event_emit(t, EVENT_NODE_DRAINING, MO_NONE, in->node, MO_NONE, MO_NONE, NULL,
		   "node %s is being drained (%s)%s%s", in->node, when, in->reason ? ": " : "",
		   in->reason ? in->reason : "");
	health_cordon_more(t);
	turn_reply(t, 200, MO_NONE, NULL);
}

static void undrain(struct turn *t, const struct node *n)
{
	const char *name = t->input->undrain->node;

	if (!n->drain.asked) {
		turn_reply(t, 409, MO_NONE, "node %s: it is not drained", name);
		return;
	}
	if (!t->input->undrain->force && way_back_leads(t->core, n)) {
		way_back_begin(t, n);
		return;
	}
	audit_emit(t, EVENT_AUDIT_UNDRAINED, name, "undrained node %s%s", name,
		   t->input->undrain->force ? " by force" : "");
	way_back_open(t, name);
	turn_reply(t, 200, MO_NONE, NULL);
}

/* Nor any step that was never stored. */
static void nothing_left(struct turn *t, const char *name)
{
	const struct node *n = node_find(&t->core->state, name);
	struct record r;

	if (!n->strays.any && !n->unseen)
		return;
	record_init(&r, REC_STRANGE);
	r.node = mo_strdup(name);
	r.strange->fenced = true;
	turn_emit(t, &r);
}

void fleet_fenced(struct turn *t, const struct node *n, const char *how)
{
	event_emit(t, EVENT_NODE_FENCED, MO_NONE, n->name, MO_NONE, MO_NONE, NULL,
		   "node %s %s: its ranks are taken for dead", n->name, how);
	proof_node(t, n->name, NULL, how);
	nothing_left(t, n->name);
}

static void fence(struct turn *t, const struct node *n)
{
	_cleanup_(mo_freep) char *how =
		mo_printf("fenced by %s", t->input->by.user ? t->input->by.user : "an operator");
	const char *seen = t->input->fence->boot_seen;

	if (n->state == NODE_UP) {
		turn_reply(t, 409, MO_NONE,
			   "node %s: it is up (heard %lld ms ago), so it cannot be powered off; "
			   "drain it instead",
			   n->name,
			   (long long)((t->now - node_heard_at(&t->core->state, n)) / 1000));
		return;
	}
	/* said late, or of what was seen earlier: what runs in the boot of now was not meant */
	if (seen && !mo_streq(seen, n->boot.id)) {
		turn_reply(t, 409, MO_NONE,
			   "node %s: it is in boot %s now, not in %s any more, whose ranks count "
			   "as dead already; if it is off, look at it and fence it again",
			   n->name, n->boot.id, seen);
		return;
	}
	audit_emit(t, EVENT_AUDIT_FENCED, n->name,
		   "fenced node %s (boot %s): its ranks are taken for dead", n->name, n->boot.id);
	fleet_fenced(t, n, how);
	turn_reply(t, 200, MO_NONE, NULL);
}

/* That the verb is about. */
static const char *verb_node(const struct core_input *in)
{
	switch (in->type) {
	case IN_DRAIN: return in->drain->node;
	case IN_UNDRAIN: return in->undrain->node;
	case IN_ACK: return in->ack->node;
	default: return in->fence->node;
	}
}

void fleet_verb(struct turn *t)
{
	const struct core_input *in = t->input;
	const char *name = verb_node(in);
	const struct node *n = node_find(&t->core->state, name);

	if (!n)
		turn_reply(t, 404, MO_NONE, "node %s: no such node; see 'moectl nodes'",
			   name ? name : "?");
	else if (!in->by.may_all)
		turn_reply(t, 403, MO_NONE, "node %s: only an operator may do that", n->name);
	else if (in->type == IN_FENCE)
		fence(t, n);
	else if (in->type == IN_ACK && in->ack->learned)
		learn_ack(t, n);
	else if (in->type == IN_ACK)
		ack(t, n);
	else if (in->type == IN_UNDRAIN)
		undrain(t, n);
	else
		drain(t);
}

/* Drains that are done: no rank is left on the node. */
bool fleet_drain(struct turn *t)
{
	bool emitted = false;

	for (size_t i = 0; t->core->n_draining > 0 && i < t->core->state.n_nodes; i++) {
		const struct node *n = t->core->state.nodes[i];
		const struct live *l = t->core->lives[i];
		bool busy = !n->drain.asked || n->drain.done;
		struct record r;

		for (size_t k = 0; !busy && k < l->n_jobs; k++) {
			const struct job *j = job_find(&t->core->state, l->jobs[k]);

			for (const struct step *st = j ? step_next(j, n->name, -1) : NULL; st;
			     st = step_next(j, n->name, st->attempt))
				busy |= !st->gone ||
					(j->run.n_places > 0 && st->attempt == j->attempt);
		}
		if (busy)
			continue;
		record_init(&r, REC_DRAIN);
		r.node = mo_strdup(n->name);
		r.drain->step = DRAIN_DONE;
		turn_emit(t, &r);
		event_emit(t, EVENT_NODE_DRAINED, MO_NONE, t->core->state.nodes[i]->name, MO_NONE,
			   MO_NONE, NULL, "node %s is drained: no rank is left on it",
			   t->core->state.nodes[i]->name);
		emitted = true;
	}
	return emitted;
}
