/* What follows from the word of agents about their nodes' health: records, events, cordons, and
 * the wait of a failed job for the on-failure checks of its nodes. Rules: health.h. Rates are
 * limited, so that a check that flaps fills neither the store nor the ring of events: what is
 * not stored is not acknowledged, and the agent says its newest word again. */
#include "daemon/core/rules/cordon.h"

#include <string.h>

#include "daemon/core/rules/cordon_lift.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/learn.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/way_back.h"
#include "daemon/core/state/health.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"

#define STORE_BURST 20                  /* words of one node ... */
#define STORE_EVERY_US (10 * 1000000LL) /* ... and then one in this time */
#define TELL_BURST 10                   /* events of one node */
#define TELL_EVERY_US (60 * 1000000LL)
#define TELL_ALL_BURST 500 /* of all nodes */
#define TELL_ALL_EVERY_US (2 * 1000000LL)
#define FINDINGS_MAX 10 /* named as evidence of one incident */

/* One more, of `burst` of which one comes back in `every`. */
static bool take(int64_t *full_until, int64_t now, int64_t burst, int64_t every, bool really)
{
	int64_t at = MO_MAX(*full_until, now);

	if (at - now > (burst - 1) * every)
		return false;
	if (really)
		*full_until = at + every;
	return true;
}

/* How many take() would allow now. */
static int64_t left(int64_t full_until, int64_t now, int64_t burst, int64_t every)
{
	int64_t full = (burst - 1) * every - MO_MAX(full_until - now, 0);

	return full < 0 ? 0 : full / every + 1;
}

bool may_tell_health(struct turn *t, struct live *l)
{
	struct core *c = t->core;

	if (!take(&l->tell_until, t->now, TELL_BURST, TELL_EVERY_US, false) ||
	    !take(&c->tell_until, t->now, TELL_ALL_BURST, TELL_ALL_EVERY_US, false)) {
		l->n_muted++;
		c->n_muted++;
		return false;
	}
	take(&l->tell_until, t->now, TELL_BURST, TELL_EVERY_US, true);
	take(&c->tell_until, t->now, TELL_ALL_BURST, TELL_ALL_EVERY_US, true);
	return true;
}

struct change {
	const struct check_result *r;
	int before, after;
};

/* A finding changed its state. more: changes that come with it and are not reported. */
static void tell(struct turn *t, const char *node, const struct change *c, size_t more)
{
	static const enum event_type types[] = {
		[CHECK_OK] = EVENT_HEALTH_OK,
		[CHECK_WARN] = EVENT_HEALTH_WARN,
		[CHECK_CRIT] = EVENT_HEALTH_CRIT,
		[CHECK_UNKNOWN] = EVENT_HEALTH_UNKNOWN,
	};
	const struct check_result *r = c->r;
	struct live *l = core_live(t->core, node);
	_cleanup_(mo_freep) char *name = finding_name(r),
				 *rest = more ? mo_printf("; and %zu more: moectl node %s", more,
							  node)
					      : mo_strdup("");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!may_tell_health(t, l))
		return;
	data_str(&b, "check", r->check);
	data_str(&b, "object", r->object);
	data_str(&b, "from", mo_enum_name(check_state_names, _CHECK_STATE_N, c->before));
	data_str(&b, "to", check_state_names[c->after]);
	data_str(&b, "text", c->after == CHECK_OK ? NULL : r->text);
	if (more)
		data_int(&b, "more", (int64_t)more);
	event_emit(t, types[c->after], MO_NONE, node, MO_NONE, MO_NONE, data_end(&b),
		   "%s: %s: %s%s", node, name,
		   c->after == CHECK_OK ? "ok again"
		   : r->text            ? r->text
					: check_state_names[c->after],
		   rest);
}

static int worst_first(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->after != y->after)
		return health_rank(y->after) - health_rank(x->after);
	return x->r < y->r ? -1 : x->r > y->r;
}

/* The worst are reported when there is no room for all, and the last report says how many more
 * there are. */
static void tell_all(struct turn *t, const char *node, struct change *changes, size_t n)
{
	struct core *c = t->core;
	struct live *l = core_live(c, node);
	int64_t room = MO_MIN(left(l->tell_until, t->now, TELL_BURST, TELL_EVERY_US),
			      left(c->tell_until, t->now, TELL_ALL_BURST, TELL_ALL_EVERY_US));
	size_t reported = MO_MIN(n, (size_t)room);

	if (n > reported)
		qsort(changes, n, sizeof(*changes), worst_first);
	for (size_t i = 0; i < reported; i++)
		tell(t, node, &changes[i], i + 1 == reported ? n - reported : 0);
	c->n_muted += (int64_t)(n - reported);
	if (reported == 0)
		l->n_muted += (int64_t)n;
}

static void add_change(struct change **changes, size_t *n, const struct check_result *r, int before,
		       int after)
{
	if (r->action != ACTION_REPORT && after >= 0 && after < _CHECK_STATE_N)
		*MO_GROW(*changes, *n) = (struct change){ r, before, after };
}

/* old may be changed by what this emits only through the record that follows. While the agent's
 * first probes are not done, what is missing is not known to be OK. */
static void tell_changes(struct turn *t, const char *node, const struct node_health *new)
{
	const struct node *n = node_find(&t->core->state, node);
	struct change *changes = NULL;
	size_t n_changes = 0;

	for (size_t i = 0; i < new->n_results; i++) {
		const struct check_result *old =
			health_find(n->health, new->results[i].check, new->results[i].object);
		int before = old ? old->state : CHECK_OK;

		if (before != new->results[i].state)
			add_change(&changes, &n_changes, &new->results[i], before,
				   new->results[i].state);
	}
	for (size_t i = 0; n->health && new->preflight_done &&i < n->health->n_results; i++)
		if (!health_find(new, n->health->results[i].check, n->health->results[i].object))
			add_change(&changes, &n_changes, &n->health->results[i],
				   n->health->results[i].state, CHECK_OK);
	if (changes)
		tell_all(t, node, changes, n_changes);
	free(changes);
}

/* What nobody should wait for; an agent does it once per start or order. */
static bool urgent(const struct live *l, const struct node_health *old,
		   const struct node_health *new)
{
	if (!old || (new->preflight_done && !old->preflight_done))
		return true;
	for (size_t i = 0; i < new->n_checked; i++)
		if (!health_checked(old, new->checked[i].job, new->checked[i].attempt) &&
		    (new->checked[i].job == 0 ||
		     ids_has(l->checks, l->n_checks, new->checked[i].job)))
			return true;
	return false;
}

void health_reported(struct turn *t, const char *node, const struct node_health *h)
{
	const struct node *n = node_find(&t->core->state, node);
	struct live *l = core_live(t->core, node);
	struct record r;

	mo_assert(node && h);
	/* Urgent messages and syncs overtake each other: within one life of an agent versions only
	 * grow. */
	if (h->version == MO_NONE || (l->health_seen != MO_NONE && h->version <= l->health_seen))
		return;
	if (!health_equal(n->health, h, true)) {
		if (!take(&l->store_until, t->now, STORE_BURST, STORE_EVERY_US, true) &&
		    !urgent(l, n->health, h))
			return;
		tell_changes(t, node, h);
		record_init(&r, REC_HEALTH);
		r.node = mo_strdup(node);
		r.health = mo_desc_dup(&node_health_desc, h);
		turn_emit(t, &r);
	}
	l->health_seen = h->version;
	health_cordon(t, node);
}

/* What the limit held back is not forgotten: as soon as there is room, one event says how much
 * it was. */
void health_more(struct turn *t, const char *node)
{
	struct live *l = core_live(t->core, node);
	struct mo_buf b = { 0 };
	int64_t n = l->n_muted;

	if (n == 0 || left(l->tell_until, t->now, TELL_BURST, TELL_EVERY_US) == 0 ||
	    left(t->core->tell_until, t->now, TELL_ALL_BURST, TELL_ALL_EVERY_US) == 0 ||
	    !may_tell_health(t, l))
		return;
	l->n_muted = 0;
	data_int(&b, "more", n);
	event_emit(t, EVENT_HEALTH_MORE, MO_NONE, node, MO_NONE, MO_NONE, data_end(&b),
		   "%s: %lld more change%s of findings: moectl node %s", node, (long long)n,
		   n == 1 ? "" : "s", node);
	mo_buf_done(&b);
}

int64_t core_health_muted(const struct core *c)
{
	return c->n_muted;
}

int64_t core_cordoned(const struct core *c)
{
	return (int64_t)c->n_cordoned;
}

/* ---- cordons ---- */

static size_t cordon_cap(const struct state *s)
{
	return MO_MAX(1, s->n_nodes / HEALTH_CORDON_SHARE);
}

/* Two budgets of one size: what a program can cause, or a line of a log says, never uses up that
 * of broken hardware. */
static size_t cordoned_like(const struct core *c, bool hardware)
{
	return hardware ? c->n_cordoned_hardware : c->n_cordoned - c->n_cordoned_hardware;
}

bool cordon_room(const struct core *c, bool hardware)
{
	return cordoned_like(c, hardware) < cordon_cap(&c->state);
}

bool cordon_room_in(const struct state *s, bool hardware)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_nodes; i++)
		n += s->nodes[i]->drain.asked && s->nodes[i]->drain.cordon &&
		     s->nodes[i]->drain.hardware == hardware;
	return n < cordon_cap(s);
}

void health_cordon(struct turn *t, const char *node)
{
	cordon_lift(t, node);
	const struct node *n = node_find(&t->core->state, node);
	way_back_pass(t, n);
	const struct check_result *finding = n->drain.asked ? NULL : health_cordon_reason(n);
	struct live *l = core_live(t->core, node);
	_cleanup_(mo_freep) char *name = finding ? finding_name(finding) : NULL, *text = NULL;
	struct record r;

	learn_tell(t, node);
	if (!finding) {
		l->capped = false;
		return;
	}
	text = mo_printf("%s: %s", name, finding->text ? finding->text : "CRIT");
	if (!cordon_room(t->core, finding->hardware)) {
		if (!l->capped && may_tell_health(t, l))
			event_emit(t, EVENT_HEALTH_CORDON_CAPPED, MO_NONE, node, MO_NONE, MO_NONE,
				   NULL,
				   "node %s is not cordoned: %zu of %zu nodes are already because "
				   "of %s, which is the most that happens by itself; %s",
				   node, cordoned_like(t->core, finding->hardware),
				   t->core->state.n_nodes,
				   finding->hardware ? "broken hardware"
						     : "findings that prove no broken hardware",
				   text);
		l->capped = t->core->room_awaited = true;
		return;
	}
	l->capped = false;
	record_init(&r, REC_DRAIN);
	r.node = mo_strdup(node);
	r.drain->step = DRAIN_ON;
	r.drain->reason = mo_strdup(text);
	r.drain->when = mo_strdup("idle");
	r.drain->finding = mo_strdup(name);
	r.drain->broken_hardware = finding->hardware;
	turn_emit(t, &r);
	event_emit(t, EVENT_NODE_DRAINING, MO_NONE, node, MO_NONE, MO_NONE, NULL,
		   "node %s is cordoned, what runs there runs on: %s", node, text);
}

void health_cordon_all(struct turn *t)
{
	struct core *c = t->core;
	size_t i = 0;

	c->room_awaited = false;
	for (; c->n_cordoned < 2 * cordon_cap(&c->state) && i < c->state.n_nodes; i++) {
		c->looked++;
		if (c->state.nodes[i]->health && c->state.nodes[i]->health->n_results)
			health_cordon(t, c->state.nodes[i]->name);
	}
	c->room_awaited |= i < c->state.n_nodes; /* who was not asked may */
}

void health_cordon_more(struct turn *t)
{
	if (t->core->room_awaited)
		health_cordon_all(t);
}

/* ---- after a failure ---- */

/* Nodes of the attempt that failed, which another one may get: up, in the same boot, and with
 * checks to make. */
void health_check_begin(struct turn *t, int64_t id, bool thorough, const char *doubted)
{
	const struct job *j = job_find(&t->core->state, id);
	struct record r;

	mo_assert(id > 0);
	if (health_preflight_none(&j->spec.recipe))
		return;
	record_init(&r, REC_CHECK);
	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct node *n = node_find(&t->core->state, j->run.places[i].node);
		const struct step *st = step_find(j, j->attempt, j->run.places[i].node);

		if (n && n->state == NODE_UP && n->agent.tells_health && st &&
		    mo_streq(st->boot_id, n->boot.id) && health_checks_failures(n))
			mo_strs_add(&r.check->nodes, &r.check->n_nodes, n->name);
	}
	r.check->thorough = thorough;
	r.check->doubted = thorough && doubted ? mo_strdup(doubted) : NULL;
	if (r.check->n_nodes == 0) {
		mo_desc_done(&record_desc, &r);
		return;
	}
	r.job = id;
	r.attempt = j->attempt;
	r.check->waits = true;
	r.check->until = t->now + health_wait_us(thorough);
	turn_emit(t, &r);
}

bool health_check_due(const struct core *c, const struct job *j, const char *node)
{
	const struct node *n = node_find(&c->state, node);

	return n && n->state != NODE_DOWN &&
	       mo_enum_parse((const char *const *)j->checks.nodes, j->checks.n_nodes, node) >= 0;
}

static void add_findings(const struct node *n, int state, char ***texts, size_t *n_texts)
{
	for (size_t i = 0; n && n->health && i < n->health->n_results && *n_texts < FINDINGS_MAX;
	     i++) {
		const struct check_result *r = &n->health->results[i];
		_cleanup_(mo_freep) char *name = finding_name(r);
		_cleanup_(mo_freep) char *text =
			mo_printf("%s: %s: %s (%s)", n->name, name, r->text ? r->text : "",
				  check_state_names[state]);

		if (r->state == state && r->action != ACTION_REPORT)
			mo_strs_add(texts, n_texts, text);
	}
}

void health_evidence(const struct state *s, const struct job *j, char ***texts, size_t *n_texts)
{
	char **found = NULL;
	size_t n_found = 0;

	for (size_t i = 0; i < j->run.n_places && n_found < FINDINGS_MAX; i++)
		add_findings(node_find(s, j->run.places[i].node), CHECK_CRIT, &found, &n_found);
	for (size_t i = 0; i < n_found; i++) {
		mo_strs_add(texts, n_texts, found[i]);
		free(found[i]);
	}
	free(found);
}

bool health_check_act(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	size_t due = 0;
	struct record r;

	for (size_t i = 0; i < j->checks.n_nodes; i++)
		due += health_check_due(t->core, j, j->checks.nodes[i]);
	if (due && t->now < j->checks.until) {
		turn_deadline(t, j->checks.until);
		return false;
	}
	record_init(&r, REC_CHECK);
	r.job = id;
	r.attempt = j->checks.attempt;
	for (int state = CHECK_CRIT; state >= CHECK_WARN; state--) {
		for (size_t i = 0; i < j->checks.n_done && r.check->n_findings < FINDINGS_MAX; i++)
			add_findings(node_find(&t->core->state, j->checks.done[i]), state,
				     &r.check->findings, &r.check->n_findings);
		for (size_t i = 0; i < j->checks.n_nodes && r.check->n_findings < FINDINGS_MAX; i++)
			add_findings(node_find(&t->core->state, j->checks.nodes[i]), state,
				     &r.check->findings, &r.check->n_findings);
	}
	for (size_t i = 0; i < j->checks.n_nodes && r.check->n_findings < FINDINGS_MAX; i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("%s: its checks after the failure were not done within %lld s",
				  j->checks.nodes[i],
				  (long long)(health_wait_us(j->checks.thorough) / 1000000));

		if (health_check_due(t->core, j, j->checks.nodes[i]))
			mo_strs_add(&r.check->findings, &r.check->n_findings, text);
	}
	turn_emit(t, &r);
	return true;
}
