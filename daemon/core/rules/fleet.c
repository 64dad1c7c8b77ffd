/* Nodes: hello, beats, silence, drains, fences. Proof of death made here: a changed boot id and
 * a fence. Silence only makes a node suspect, then down; it proves nothing. A hello alone
 * changes nothing on a known node: it may be a late copy of a dead agent's. The first beat or
 * news after its welcome shows that this instance lives now; only then it replaces the one
 * before, whose boot and instance cannot come back. */
#include "daemon/core/rules/fleet.h"

#include <signal.h>
#include <string.h>

#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/learn.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/refusal.h"
#include "daemon/core/rules/reports.h"
#include "daemon/core/rules/tokens.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/core_config.h"
#include "daemon/core/state/health.h"
#include "daemon/core/update/wake.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

#define HELLO_BURST 60
#define HELLO_EVERY_US (2 * 1000000LL)

static void node_state(struct turn *t, const char *name, int state, const char *reason)
{
	static const enum event_type types[] = {
		[NODE_UP] = EVENT_NODE_UP,
		[NODE_SUSPECT] = EVENT_NODE_SUSPECT,
		[NODE_DOWN] = EVENT_NODE_DOWN,
	};
	struct record r;

	record_init(&r, REC_NODE_STATE);
	r.node = mo_strdup(name);
	r.node_state->state = state;
	r.node_state->reason = mo_strdup(reason);
	turn_emit(t, &r);
	event_emit(t, types[state], MO_NONE, name, MO_NONE, MO_NONE, NULL, "node %s is %s%s%s",
		   name, node_state_names[state], reason ? ": " : "", reason ? reason : "");
}

void fleet_heard(struct turn *t, const char *name)
{
	const struct node *n = node_find(&t->core->state, name);

	core_live(t->core, name)->heard_at = t->now;
	t->core->liveness_at = MO_MIN(t->core->liveness_at, t->now + t->core->config.suspect_us);
	if (n->state != NODE_UP)
		node_state(t, name, NODE_UP, NULL);
}

/* Called when liveness_at was reached: looks at every node and sets the next time to look. */
void fleet_silence(struct turn *t)
{
	const struct core_config *config = &t->core->config;
	const struct state *s = &t->core->state;
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < s->n_nodes; i++) {
		char heard[32];
		int64_t silent = t->now - t->core->lives[i].heard_at;
		/* a moment, not a duration: the text is stored */
		_cleanup_(mo_freep) char *reason =
			mo_printf("not heard since %s",
				  mo_time_format(t->core->lives[i].heard_at, heard));

		if (s->nodes[i].state == NODE_UP && silent >= config->suspect_us)
			node_state(t, s->nodes[i].name, NODE_SUSPECT, reason);
		if (s->nodes[i].state == NODE_SUSPECT && silent >= config->down_us)
			node_state(t, s->nodes[i].name, NODE_DOWN, reason);
		if (s->nodes[i].state == NODE_UP)
			next = MO_MIN(next, t->core->lives[i].heard_at + config->suspect_us);
		else if (s->nodes[i].state == NODE_SUSPECT)
			next = MO_MIN(next, t->core->lives[i].heard_at + config->down_us);
		next = MO_MIN(next, learn_look(t, s->nodes[i].name));
	}
	t->core->liveness_at = next;
}

/* The controller itself was late: nobody can be blamed for that time. After so long that agents
 * gave up their requests, who was up has a full period to be heard, as after a restart; not
 * after less, or a controller that stalls often would never see silence. */
void fleet_late(struct core *c, int64_t by, int64_t now)
{
	if (by <= 0)
		return;
	for (size_t i = 0; i < c->state.n_nodes; i++)
		c->lives[i].heard_at = c->state.nodes[i].state == NODE_UP && by >= c->config.down_us
					       ? now
					       : MO_MIN(now, c->lives[i].heard_at + by);
	if (c->liveness_at != INT64_MAX)
		c->liveness_at += by;
}

/* ---- proofs ---- */

static void step_gone(struct turn *t, int64_t job, const struct step *st, const char *how)
{
	struct record r;

	record_init(&r, REC_GONE);
	r.job = job;
	r.attempt = st->attempt;
	r.node = mo_strdup(st->node);
	r.gone->how = mo_strdup(how);
	turn_emit(t, &r);
}

/* boot NULL: every step of the node (fence); else those of other boots. */
static void prove_gone(struct turn *t, const char *node, const char *boot, const char *how)
{
	const struct live *l = core_live(t->core, node);

	for (size_t i = 0; i < l->n_jobs; i++) {
		const struct job *j = job_find(&t->core->state, l->jobs[i]);

		for (const struct step *st = j ? step_next(j, node, -1) : NULL; st;
		     st = step_next(j, node, st->attempt))
			if (!st->gone && !(boot && mo_streq(st->boot_id, boot)))
				step_gone(t, j->id, st, how);
	}
}

/* ---- messages ---- */

static bool replaced(char *const *past, size_t n, const char *id)
{
	return mo_enum_parse((const char *const *)past, n, id) >= 0;
}

static bool hello_refused(struct turn *t, const struct agent_hello *h)
{
	const struct node *n = node_find(&t->core->state, h->node);

	if (h->protocol != MO_PROTOCOL)
		turn_reply(t, 426, MO_NONE,
			   "agent %s: it speaks protocol %lld, this controller speaks %d; install "
			   "the same version on both",
			   h->node ? h->node : "?", (long long)h->protocol, MO_PROTOCOL);
	else if (!h->node || !mo_name_valid(h->node) || !h->boot_id || !*h->boot_id ||
		 !h->instance || !*h->instance)
		turn_reply(t, 422, MO_NONE,
			   "agent: hello without a valid node name, boot id or instance; set node: "
			   "in agent.yaml");
	else if (h->info.n_gpus > MO_GPUS_PER_NODE_MAX)
		turn_reply(t, 422, MO_NONE, "agent %s: %zu GPU slots, at most %d are supported",
			   h->node, h->info.n_gpus, MO_GPUS_PER_NODE_MAX);
	else if (!n && t->core->state.n_nodes >= MO_NODES_MAX)
		turn_reply(t, 429, MO_NONE,
			   "agent %s: this controller knows %d nodes already, which is its limit",
			   h->node, MO_NODES_MAX);
	else if (n && !mo_streq(n->instance, h->instance) &&
		 replaced(n->past_instances, n->n_past_instances, h->instance))
		turn_reply(t, 409, MO_NONE,
			   "agent %s: a later agent of this node took over; only one may run under "
			   "this name",
			   h->node);
	else if (n && !mo_streq(n->boot_id, h->boot_id) &&
		 replaced(n->past_boots, n->n_past_boots, h->boot_id))
		turn_reply(t, 409, MO_NONE,
			   "agent %s: boot %s was replaced by a later one; another machine uses "
			   "this node name",
			   h->node, h->boot_id);
	else if (n && !mo_streq(n->boot_id, h->boot_id) && n->reconciled &&
		 t->now - node_heard_at(&t->core->state, n) < t->core->config.suspect_us)
		turn_reply(t, 409, MO_NONE,
			   "agent %s: another live agent has this node name (boot %s, heard %lld "
			   "ms ago); give one of them another name",
			   h->node, n->boot_id,
			   (long long)((t->now - node_heard_at(&t->core->state, n)) / 1000));
	else
		return false;
	return true;
}

/* Each agent that began anew is stored once it speaks. */
static bool too_often(struct turn *t, const struct agent_hello *h)
{
	struct live *l = core_live(t->core, h->node);
	int64_t at = MO_MAX(l->hellos_until, t->now);

	if (at - t->now <= (HELLO_BURST - 1) * HELLO_EVERY_US) {
		l->hellos_until = at + HELLO_EVERY_US;
		return false;
	}
	turn_reply(t, 429, MO_NONE,
		   "agent %s: %d agents of this node began within a short time: one of %lld s is "
		   "heard; what ends them?",
		   h->node, HELLO_BURST, HELLO_EVERY_US / 1000000);
	return true;
}

/* A GPU of this boot that the hello does not speak of. */
static bool lacks_gpu(const struct node *n, const struct agent_hello *h)
{
	for (size_t i = 0; i < n->info.n_gpus; i++) {
		const char *bdf = n->info.gpus[i].bdf;
		size_t k = 0;

		while (bdf && k < h->info.n_gpus && !mo_streq(h->info.gpus[k].bdf, bdf))
			k++;
		if (bdf && k == h->info.n_gpus)
			return true;
	}
	return false;
}

static void welcome(struct turn *t, const struct agent_hello *h)
{
	const struct node *n = node_find(&t->core->state, h->node);
	struct effect *e;

	e = MO_ADD(t->out, effects, &effect_desc);
	e->type = FX_WELCOME;
	e->request = t->input->request;
	e->node = mo_strdup(h->node);
	e->welcome = mo_desc_new(&agent_welcome_desc);
	e->welcome->epoch = t->core->state.epoch;
	e->welcome->beat_ms = t->core->config.beat_us / 1000;
	if (n && mo_streq(n->boot_id, h->boot_id) && lacks_gpu(n, h))
		e->welcome->info = mo_desc_dup(&nodeinfo_desc, &n->info);
	for (size_t i = 0; i < h->n_steps; i++) {
		const struct job *j = job_find(&t->core->state, h->steps[i].job);
		const struct step *st = j ? step_find(j, h->steps[i].attempt, h->node) : NULL;
		struct step_ack *ack = MO_ADD(e->welcome, steps, &step_ack_desc);

		ack->job = h->steps[i].job;
		ack->attempt = h->steps[i].attempt;
		ack->through = st ? st->through : 0;
		ack->known = st != NULL;
	}
}

static void registered(struct turn *t, const struct agent_hello *h)
{
	bool is_new = !node_find(&t->core->state, h->node);
	struct record r;

	record_init(&r, REC_NODE);
	r.hello->learn_until =
		is_new && t->core->config.learn_us ? t->now + t->core->config.learn_us : MO_NONE;
	mo_desc_copy(&agent_hello_desc, &r.hello->said, h);
	mo_vec_clear(&step_report_desc, (void **)&r.hello->said.steps, &r.hello->said.n_steps);
	turn_emit(t, &r);
	if (is_new)
		event_emit(t, EVENT_NODE_UP, MO_NONE, h->node, MO_NONE, MO_NONE, NULL,
			   "node %s joined with %zu GPU slots", h->node, h->info.n_gpus);
	if (is_new && t->core->state.n_nodes % HEALTH_CORDON_SHARE == 0)
		health_cordon_all(t);
	fleet_heard(t, h->node);
	prove_gone(t, h->node, h->boot_id, "the node was rebooted (its boot id changed)");
	fleet_reports(t, h->node, h->steps, h->n_steps, false, true);
}

void fleet_hello(struct turn *t)
{
	const struct agent_hello *h = t->input->hello->message;
	const struct node *n = node_find(&t->core->state, h->node);
	struct live *l = core_live(t->core, h->node);
	bool same = n && mo_streq(n->instance, h->instance) && mo_streq(n->boot_id, h->boot_id);

	if (hello_refused(t, h))
		return;
	if (n && !same && too_often(t, h))
		return;
	if (n && !same) {
		mo_desc_free(&agent_hello_desc, l->candidate);
		l->candidate = mo_desc_dup(&agent_hello_desc, h);
		l->candidate_at = t->now;
	} else if (same && n->reconciled && l->last_beat > 0) {
		/* again, or a late copy: its list of steps is older than the beats already heard */
		fleet_heard(t, h->node);
	} else {
		registered(t, h);
		token_reported(t, h->node, t->input->hello->token_expired);
	}
	welcome(t, h);
}

/* The first word of an instance after its welcome. Another boot's is refused when the old one
 * spoke in between. */
static void promote(struct turn *t, const struct agent_sync *s)
{
	const struct node *n = node_find(&t->core->state, s->node);
	struct live *l = core_live(t->core, s->node);
	struct agent_hello *h = l ? l->candidate : NULL;

	if (!h || s->epoch != t->core->state.epoch || !mo_streq(h->instance, s->instance) ||
	    !mo_streq(h->boot_id, s->boot_id))
		return;
	l->candidate = NULL;
	if (mo_streq(n->boot_id, h->boot_id) ||
	    node_heard_at(&t->core->state, n) <= l->candidate_at)
		registered(t, h);
	mo_desc_free(&agent_hello_desc, h);
}

static void leave(struct turn *t, const char *node, bool leaving)
{
	struct record r;

	record_init(&r, REC_LEAVING);
	r.node = mo_strdup(node);
	r.leaving->leaving = leaving;
	turn_emit(t, &r);
	event_emit(t, EVENT_NODE_LEAVING, MO_NONE, node, MO_NONE, MO_NONE, NULL,
		   leaving ? "the machine of node %s is going down: it gets no new work, and its "
			     "jobs move"
			   : "the machine of node %s does not go down after all",
		   node);
}

void fleet_sync(struct turn *t)
{
	const struct agent_sync *s = t->input->sync->message;
	const struct node *n;
	bool fresh, news = t->input->type == IN_NEWS;
	struct live *l;

	promote(t, s);
	n = node_find(&t->core->state, s->node);
	if (n && s->epoch > t->core->state.epoch && n->reconciled &&
	    mo_streq(n->instance, s->instance))
		incarnation_obeyed(t, s->node, s->epoch);
	n = node_find(&t->core->state, s->node);
	if (!n || !n->reconciled || !mo_streq(n->instance, s->instance) ||
	    !mo_streq(n->boot_id, s->boot_id) || s->epoch != t->core->state.epoch) {
		turn_reply(t, 409, MO_NONE,
			   "agent %s: this controller does not know this instance; say hello again",
			   s->node ? s->node : "?");
		return;
	}
	fleet_heard(t, s->node);
	token_reported(t, s->node, t->input->sync->token_expired);
	l = core_live(t->core, s->node);
	fresh = !news && s->beat > l->last_beat;
	if (fresh)
		l->last_beat = s->beat;
	fleet_reports(t, s->node, s->steps, s->n_steps, fresh, false);
	if (s->leaving != n->leaving && (fresh || s->leaving))
		leave(t, s->node, s->leaving);
	if ((fresh || news) && s->health)
		health_reported(t, s->node, s->health);
	if (fresh)
		health_more(t, s->node);
	if (fresh && (s->n_sensors || s->n_nics))
		health_sensed(t, s);
	for (size_t i = 0; i < s->n_scans; i++)
		fleet_scanned(t, s->node, &s->scans[i]);
	if (!news)
		wake_node(t->core, s->node); /* what became due while no sync was held */
	struct effect *e = MO_ADD(t->out, effects, &effect_desc);

	e->type = news ? FX_ACK : FX_HOLD;
	e->request = t->input->request;
	e->node = mo_strdup(s->node);
}

/* ---- verbs on nodes ---- */

static void tell_undrained(struct turn *t, const char *name)
{
	const struct node *n = node_find(&t->core->state, name);
	_cleanup_(refusal_done) struct refusal r = { 0 };

	if (health_unlooked(n))
		event_emit(t, EVENT_NODE_UNDRAINED, MO_NONE, name, MO_NONE, MO_NONE, NULL,
			   "node %s takes work again; its preflight checks are not done yet: what "
			   "they still find cordons it again",
			   name);
	else if (node_refuses(&t->core->state, n, &r))
		event_emit(t, EVENT_NODE_UNDRAINED, MO_NONE, name, MO_NONE, MO_NONE, NULL,
			   "node %s is not drained any more, but gets no work: %s; %s", name,
			   r.text, r.next);
	else
		event_emit(t, EVENT_NODE_UNDRAINED, MO_NONE, name, MO_NONE, MO_NONE, NULL,
			   "node %s takes work again", name);
}

/* Which findings of a check a person may take note of: those since the boot go into *ret
 * (texts), and what ends the first one that is so now into *ret_now (caller frees). Returns
 * whether there is any. */
static bool look_for_ack(const struct node *n, const char *check, struct record *ret,
			 char **ret_now)
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
	if (!look_for_ack(n, check, &r, &now)) {
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
	health_cordon_all(t);
	turn_reply(t, 200, MO_NONE, NULL);
}

static void undrain(struct turn *t, const struct node *n)
{
	const char *name = t->input->undrain->node;
	struct record r;

	if (!n->drain) {
		turn_reply(t, 409, MO_NONE, "node %s: it is not drained", name);
		return;
	}
	record_init(&r, REC_DRAIN);
	r.node = mo_strdup(name);
	r.drain->step = DRAIN_OFF;
	turn_emit(t, &r);
	audit_emit(t, EVENT_AUDIT_UNDRAINED, name, "undrained node %s", name);
	tell_undrained(t, name);
	health_cordon_all(t);
	turn_reply(t, 200, MO_NONE, NULL);
}

/* Nor any step that was never stored. */
static void nothing_left(struct turn *t, const char *name)
{
	const struct node *n = node_find(&t->core->state, name);
	struct record r;

	if (!n->strange_steps && !n->unseen)
		return;
	record_init(&r, REC_STRANGE);
	r.node = mo_strdup(name);
	r.strange->fenced = true;
	turn_emit(t, &r);
}

static void fence(struct turn *t, const struct node *n)
{
	_cleanup_(mo_freep) char *name = mo_strdup(n->name),
				 *how = mo_printf("fenced by %s", t->input->by.user
									  ? t->input->by.user
									  : "an operator");
	const char *seen = t->input->fence->boot_seen;

	if (n->state == NODE_UP) {
		turn_reply(t, 409, MO_NONE,
			   "node %s: it is up (heard %lld ms ago), so it cannot be powered off; "
			   "drain it instead",
			   name, (long long)((t->now - node_heard_at(&t->core->state, n)) / 1000));
		return;
	}
	/* said late, or of an older look: what runs in the boot of now was not meant */
	if (seen && !mo_streq(seen, n->boot_id)) {
		turn_reply(t, 409, MO_NONE,
			   "node %s: it is in boot %s now, not in %s any more, whose ranks count "
			   "as dead already; if it is off, look at it and fence it again",
			   name, n->boot_id, seen);
		return;
	}
	audit_emit(t, EVENT_AUDIT_FENCED, name,
		   "fenced node %s (boot %s): its ranks are taken for dead", name, n->boot_id);
	event_emit(t, EVENT_NODE_FENCED, MO_NONE, name, MO_NONE, MO_NONE, NULL,
		   "node %s %s: its ranks are taken for dead", name, how);
	prove_gone(t, name, NULL, how);
	nothing_left(t, name);
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
		const struct node *n = &t->core->state.nodes[i];
		const struct live *l = &t->core->lives[i];
		bool busy = !n->drain || n->drained;
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
		event_emit(t, EVENT_NODE_DRAINED, MO_NONE, t->core->state.nodes[i].name, MO_NONE,
			   MO_NONE, NULL, "node %s is drained: no rank is left on it",
			   t->core->state.nodes[i].name);
		emitted = true;
	}
	return emitted;
}
