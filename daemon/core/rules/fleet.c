/* Hellos and beats: which instance of an agent speaks for a node, and to whom its message is
 * given. A hello alone changes nothing on a known node: it may be a late copy of a dead agent's.
 * The first beat or urgent message after its welcome shows that this instance lives now; only then
 * it replaces the one before, whose boot and instance cannot come back. A boot that changed proves
 * the steps of the one before gone (proof.c). */
#include "daemon/core/rules/fleet.h"

#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/images.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/later.h"
#include "daemon/core/rules/proof.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/reports.h"
#include "daemon/core/rules/scans.h"
#include "daemon/core/rules/silence.h"
#include "daemon/core/rules/terms.h"
#include "daemon/core/rules/tokens.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/update/wake.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

#define HELLO_BURST 60
#define HELLO_EVERY_US (2 * 1000000LL)

static bool replaced(char *const *past, size_t n, const char *id)
{
	return mo_enum_parse((const char *const *)past, n, id) >= 0;
}

static bool hello_refused(struct turn *t, const struct agent_hello *h)
{
	const struct node *n = node_find(&t->core->state, h->node);
	int64_t silent = n ? t->now - node_heard_at(&t->core->state, n) : 0;

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
	else if (n && !mo_streq(n->agent.instance, h->instance) &&
		 replaced(n->agent.past, n->agent.n_past, h->instance))
		turn_reply(t, 409, MO_NONE,
			   "agent %s: a later agent of this node took over; only one may run under "
			   "this name",
			   h->node);
	else if (n && !mo_streq(n->boot.id, h->boot_id) &&
		 replaced(n->boot.past, n->boot.n_past, h->boot_id))
		turn_reply(t, 409, MO_NONE,
			   "agent %s: boot %s was replaced by a later one; another machine uses "
			   "this node name",
			   h->node, h->boot_id);
	else if (n && !mo_streq(n->boot.id, h->boot_id) && n->agent.reconciled &&
		 silent < t->core->config.suspect_us)
		turn_reply_later(t, 409, t->core->config.suspect_us - silent,
				 "agent %s: another live agent has this node name (boot %s, heard "
				 "%lld ms ago); give one of them another name",
				 h->node, n->boot.id, (long long)(silent / 1000));
	else
		return false;
	return true;
}

/* Each agent that began anew is stored once it speaks, and each hello before that again. */
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
	struct effect *e = turn_answer(t, FX_WELCOME, h->node);

	e->welcome = mo_desc_new(&agent_welcome_desc);
	e->welcome->epoch = t->core->state.epoch;
	e->welcome->beat_ms = t->core->config.beat_us / 1000;
	if (n && mo_streq(n->boot.id, h->boot_id) && lacks_gpu(n, h))
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

/* A record of it would change nothing: the answer to the same words was lost. */
static bool known_so(const struct node *n, const struct agent_hello *h)
{
	return n && n->agent.reconciled && !n->unseen && mo_streq(n->boot.id, h->boot_id) &&
	       mo_streq(n->agent.instance, h->instance) && mo_streq(n->agent.version, h->version) &&
	       mo_streq(n->agent.address, h->address) && n->agent.protocol == h->protocol &&
	       n->agent.tells_health == h->health && n->agent.min_uid == h->min_uid &&
	       n->agent.metrics_port == h->metrics_port &&
	       mo_desc_equal(&nodeinfo_desc, &n->info, &h->info);
}

static void store(struct turn *t, const struct agent_hello *h)
{
	bool is_new = !node_find(&t->core->state, h->node);
	struct record r;

	record_init(&r, REC_NODE);
	r.hello->learn_until =
		is_new && t->core->config.learn_us ? t->now + t->core->config.learn_us : MO_NONE;
	mo_desc_copy(&agent_hello_desc, &r.hello->said, h);
	mo_vec_clear(&step_report_desc, (void **)&r.hello->said.steps, &r.hello->said.n_steps);
	if (r.hello->learn_until != MO_NONE)
		terms_add(t->core, r.hello->learn_until);
	turn_emit(t, &r);
	if (is_new)
		event_emit(t, EVENT_NODE_UP, MO_NONE, h->node, MO_NONE, MO_NONE, NULL,
			   "node %s joined with %zu GPU slots", h->node, h->info.n_gpus);
	if (is_new && t->core->state.n_nodes % HEALTH_CORDON_SHARE == 0)
		health_cordon_more(t);
}

static void registered(struct turn *t, const struct agent_hello *h)
{
	if (!known_so(node_find(&t->core->state, h->node), h))
		store(t, h);
	fleet_heard(t, h->node);
	core_live(t->core, h->node)->clock = (struct node_clock){ 0 };
	proof_node(t, h->node, h->boot_id, "the node was rebooted (its boot id changed)");
	fleet_reports(t, h->node, h->steps, h->n_steps, false, true);
}

void fleet_hello(struct turn *t)
{
	const struct agent_hello *h = t->input->hello->message;
	const struct node *n = node_find(&t->core->state, h->node);
	struct live *l = core_live(t->core, h->node);
	bool same = n && mo_streq(n->agent.instance, h->instance) &&
		    mo_streq(n->boot.id, h->boot_id),
	     again = same && n->agent.reconciled && l->last_beat > 0;

	if (hello_refused(t, h))
		return;
	if (n && !again && too_often(t, h))
		return;
	if (n && !same) {
		mo_desc_free(&agent_hello_desc, l->candidate);
		l->candidate = mo_desc_dup(&agent_hello_desc, h);
		l->candidate_at = t->now;
	} else if (again) {
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
	if (mo_streq(n->boot.id, h->boot_id) ||
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

static void health_heard(struct turn *t, const struct node *n, const struct node_health *h)
{
	struct node_health *before = mo_desc_dup(&node_health_desc, n->health);

	health_reported(t, n->name, h);
	later_told(t, n->name, before, h);
	mo_desc_free(&node_health_desc, before);
}

/* What comes again, or was late on its way, shows neither that its node lives nor what its clock
 * says now. Agents of before do not say when they sent it. */
static bool is_newest(struct live *l, int64_t mono_ns)
{
	if (mono_ns == MO_NONE)
		return true;
	if (mono_ns <= l->newest_ns)
		return false;
	l->newest_ns = mono_ns;
	return true;
}

void fleet_sync(struct turn *t)
{
	const struct agent_sync *s = t->input->sync->message;
	const struct node *n;
	bool fresh, urgent = t->input->type == IN_URGENT;
	struct live *l;

	promote(t, s);
	n = node_find(&t->core->state, s->node);
	if (n && s->epoch > t->core->state.epoch && n->agent.reconciled &&
	    mo_streq(n->agent.instance, s->instance))
		incarnation_obeyed(t, s->node, s->epoch);
	if (!n || !n->agent.reconciled || !mo_streq(n->agent.instance, s->instance) ||
	    !mo_streq(n->boot.id, s->boot_id) || s->epoch != t->core->state.epoch) {
		turn_reply(t, 409, MO_NONE,
			   "agent %s: this controller does not know this instance; say hello again",
			   s->node ? s->node : "?");
		return;
	}
	l = core_live(t->core, s->node);
	if (is_newest(l, s->mono_ns)) {
		fleet_heard(t, s->node);
		node_clock_hear(&l->clock, s->mono_ns, t->now);
	}
	token_reported(t, s->node, t->input->sync->token_expired);
	fresh = !urgent && s->beat > l->last_beat;
	/* after urgent notes, a sync that was sent before them says nothing of what is absent */
	l->last_beat = MO_MAX(l->last_beat, s->beat);
	if (!urgent) {
		l->tells_motion = s->motion;
		l->doubts = s->doubts;
	}
	fleet_reports(t, s->node, s->steps, s->n_steps, fresh, false);
	if (s->leaving != n->boot.leaving && (fresh || s->leaving))
		leave(t, s->node, s->leaving);
	if ((fresh || urgent) && s->health)
		health_heard(t, n, s->health);
	if (fresh)
		health_more(t, s->node);
	if (fresh && (s->n_sensors || s->n_nics))
		health_sensed(t, s);
	for (size_t i = 0; i < s->n_scans; i++)
		fleet_scanned(t, s->node, &s->scans[i]);
	if (fresh || urgent)
		images_reported(t, s);
	if (!urgent)
		wake_node(t->core, s->node); /* what became due while no sync was held */
	turn_answer(t, urgent ? FX_ACK : FX_HOLD, s->node);
}
