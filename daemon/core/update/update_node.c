/* update.c's part for nodes: the record types that change a node, and the wait for checks on
 * nodes. Called by core_update() only. */
#include "daemon/core/update/update_node.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/state/health.h"
#include "daemon/core/update/attempt.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/update_power.h"
#include "daemon/core/update/update_spare.h"
#include "lib/base/assert.h"

/* replaced boots and agent instances remembered per node */
#define PAST_MAX 16
#define EVIDENCE_LINES_MAX 40 /* of one incident, with what its nodes' checks found */

/* Nodes stand in name order; their live parts move along. */
static struct node *node_insert(struct core *c, const char *name)
{
	struct state *s = &c->owned;
	struct node *n;
	size_t at;

	bool known = node_at(s, name, &at);
	assert(!known);
	n = MO_INSERT(s, nodes, at, &node_desc);
	core_live_insert(c, at, s->n_nodes - 1);
	n->name = mo_strdup(name);
	return n;
}

/* What is replaced by something else cannot come back. */
static void remember(char ***past, size_t *n, const char *old, const char *new)
{
	if (!old || mo_streq(old, new))
		return;
	mo_strs_add(past, n, old);
	if (*n <= PAST_MAX)
		return;
	free((*past)[0]);
	memmove(*past, *past + 1, --*n * sizeof(**past));
}

static void clear_strs(char ***strs, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		free((*strs)[i]);
	free(*strs);
	*strs = NULL;
	*n = 0;
}

static void check_node_gone(struct job *j, const char *node)
{
	size_t retained = 0;

	for (size_t i = 0; i < j->checks.n_nodes; i++) {
		if (mo_streq(j->checks.nodes[i], node))
			free(j->checks.nodes[i]);
		else
			j->checks.nodes[retained++] = j->checks.nodes[i];
	}
	j->checks.n_nodes = retained;
}

/* What was found in another boot says nothing about this one, and who waits for it waits in
 * vain. */
static void health_boot(struct core *c, struct node *n, struct live *l)
{
	mo_desc_free(&node_health_desc, n->health);
	n->health = NULL;
	n->stack.hash = n->stack.same = 0;
	clear_strs(&n->findings.waived, &n->findings.n_waived);
	clear_strs(&n->findings.acked, &n->findings.n_acked);
	n->findings.n_waived_counts = n->findings.n_acked_counts = 0;
	mo_vec_clear(&gpu_sensors_desc, (void **)&l->sensors, &l->n_sensors);
	mo_vec_clear(&nic_sensors_desc, (void **)&l->nics, &l->n_nics);
	for (size_t i = 0; i < l->n_checks; i++) {
		struct job *j = job_edit(&c->owned, l->checks[i]);

		if (j)
			check_node_gone(j, n->name);
		core_touch(c, l->checks[i]);
	}
	l->n_checks = 0;
}

/* What decides of places is another than before. A new agent of the same boot alone changes nothing
 * there: after an upgrade each node has one. */
static bool places_change(const struct node *n, const struct agent_hello *h)
{
	return !n->agent.reconciled || n->unseen || !mo_streq(n->boot.id, h->boot_id) ||
	       n->agent.tells_health != h->health ||
	       !mo_desc_equal(&nodeinfo_desc, &n->info, &h->info);
}

int update_node(struct core *c, const struct record *r)
{
	const struct agent_hello *h = &r->hello->said;
	struct live *l;
	struct node *n;

	if (!h->node || !h->boot_id)
		return -EINVAL;
	n = node_edit(&c->owned, h->node);
	if (!n) {
		n = node_insert(c, h->node);
		n->registered_at = r->time;
		n->findings.learn_until = r->hello->learn_until;
		n->state = NODE_UP;
	}
	c->queue_dirty |= places_change(n, h);
	remember(&n->boot.past, &n->boot.n_past, n->boot.id, h->boot_id);
	remember(&n->agent.past, &n->agent.n_past, n->agent.instance, h->instance);
	l = core_live(c, h->node);
	if (!mo_streq(n->agent.instance, h->instance)) {
		l->last_beat = 0;
		l->commands_sent = 0;
		l->health_seen = MO_NONE;
	}
	l->newest_ns = 0;
	if (!mo_streq(n->boot.id, h->boot_id)) {
		health_boot(c, n, l);
		spare_ask(n, r->time);
		c->n_leaving -= n->boot.leaving;
		n->boot.leaving = false;
	}
	n->agent.tells_health = h->health;
	n->agent.min_uid = h->min_uid;
	n->agent.metrics_port = h->metrics_port;
	mo_str_set(&n->boot.id, h->boot_id);
	mo_str_set(&n->agent.instance, h->instance);
	mo_str_set(&n->agent.version, h->version);
	mo_str_set(&n->agent.address, h->address);
	n->agent.protocol = h->protocol;
	mo_desc_copy(&nodeinfo_desc, &n->info, &h->info);
	l->heard_at = r->time;
	n->agent.reconciled = true;
	n->unseen = false;
	return 0;
}

static void count_steps(struct core *c, const char *node, const struct live *l, int sign)
{
	for (size_t i = 0; i < l->n_jobs; i++) {
		struct job *j = job_edit(&c->owned, l->jobs[i]);
		const struct step *st = j ? step_find(j, j->attempt, node) : NULL;

		if (st)
			step_count(c, j, st, sign);
	}
}

int update_node_state(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);
	struct live *l = core_live(c, r->node);

	if (!n || r->node_state->state < NODE_UP || r->node_state->state > NODE_DOWN)
		return -EINVAL;
	count_steps(c, r->node, l, -1);
	n->state = r->node_state->state;
	count_steps(c, r->node, l, 1);
	mo_str_set(&n->reason, r->node_state->reason);
	if (n->state == NODE_UP)
		power_forget(n);
	for (size_t i = 0; i < l->n_checks; i++)
		core_touch(c, l->checks[i]);
	for (size_t i = 0; i < l->n_jobs; i++) {
		struct job *j = job_edit(&c->owned, l->jobs[i]);
		struct step *st = j ? step_edit(j, j->attempt, r->node) : NULL;

		core_touch(c, l->jobs[i]);
		for (int64_t k = st ? st->first_rank : 0;
		     st && k < st->first_rank + st->n_ranks && (size_t)k < j->run.n_ranks; k++) {
			struct rank *rank = &j->run.ranks[k];

			if (rank->state == RANK_RUNNING && n->state == NODE_DOWN)
				rank->state = RANK_LOST;
			else if (rank->state == RANK_LOST && n->state == NODE_UP)
				rank->state = RANK_RUNNING;
		}
	}
	c->queue_dirty = true;
	return 0;
}

/* Findings that a person has seen (node.waived, node.acked), each with where its counter stood. */
struct seen {
	char ***names;
	size_t *n;
	int64_t **counts;
	size_t *n_counts;
};

static struct seen waived_of(struct node *n)
{
	return (struct seen){ &n->findings.waived, &n->findings.n_waived,
			      &n->findings.waived_counts, &n->findings.n_waived_counts };
}

static struct seen acked_of(struct node *n)
{
	return (struct seen){ &n->findings.acked, &n->findings.n_acked, &n->findings.acked_counts,
			      &n->findings.n_acked_counts };
}

/* Kept in step with the names, also those that an earlier version stored. */
static void seen_pad(const struct seen *s)
{
	while (*s->n_counts < *s->n)
		mo_ints_add(s->counts, s->n_counts, MO_NONE);
}

static void seen_add(const struct seen *s, const struct check_result *r)
{
	_cleanup_(mo_freep) char *name = finding_name(r);
	int at = mo_enum_parse((const char *const *)*s->names, *s->n, name);

	seen_pad(s);
	if (at >= 0) {
		(*s->counts)[at] = r->count;
	} else {
		mo_strs_add(s->names, s->n, name);
		mo_ints_add(s->counts, s->n_counts, r->count);
	}
}

/* An operator gives the node back: what was found by now does not cordon it again. */
static void waive(struct node *n)
{
	struct seen seen = waived_of(n);

	for (const struct check_result *r = health_cordon_reason(n); r; r = health_cordon_reason(n))
		seen_add(&seen, r);
}

int update_drain(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);
	struct live *l = core_live(c, r->node);
	const struct rec_drain *k = r->drain;
	bool on = k->step == DRAIN_ON, by_itself = on && k->finding,
	     hardware = by_itself && k->broken_hardware;

	if (!n || k->step < 0)
		return -EINVAL;
	if (k->step == DRAIN_DONE) {
		c->n_draining -= n->drain.asked && !n->drain.done;
		n->drain.done = true;
		return 0;
	}
	n->drain.back = k->step == DRAIN_CHECK && k->until != MO_NONE ? r->time : MO_NONE;
	n->drain.back_until = k->step == DRAIN_CHECK ? k->until : MO_NONE;
	mo_str_set(&n->drain.held, k->step == DRAIN_CHECK ? k->reason : NULL);
	if (k->step == DRAIN_CHECK)
		return 0;
	c->n_draining -= n->drain.asked && !n->drain.done;
	c->n_draining += on;
	c->n_cordoned -= n->drain.asked && n->drain.cordon;
	c->n_cordoned += by_itself;
	c->n_cordoned_hardware -= n->drain.asked && n->drain.cordon && n->drain.hardware;
	c->n_cordoned_hardware += hardware;
	n->drain.hardware = hardware;
	if (!on)
		waive(n);
	if (!on && cordon_by_failures(n))
		n->drain.forgiven_at = r->time;
	mo_str_set(&n->drain.cordon, by_itself ? k->finding : NULL);
	for (size_t i = 0; i < l->n_jobs; i++) {
		struct job *j = job_edit(&c->owned, l->jobs[i]);

		if (j && place_of(j, r->node))
			j->counts.drained += on - n->drain.asked;
	}
	n->drain.asked = on;
	n->drain.done = false;
	n->drain.at = on ? r->time : MO_NONE;
	mo_str_set(&n->drain.when, k->when);
	mo_str_set(&n->drain.reason, k->reason);
	if (!on && n->state == NODE_UP)
		/* of earlier versions: they kept the drain's there */
		mo_str_set(&n->reason, NULL);
	for (size_t i = 0; i < l->n_jobs; i++)
		core_touch(c, l->jobs[i]);
	c->queue_dirty = true;
	return 0;
}

int update_leaving(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);
	struct live *l = core_live(c, r->node);

	if (!n)
		return -EINVAL;
	c->n_leaving -= n->boot.leaving;
	n->boot.leaving = r->leaving->leaving;
	c->n_leaving += n->boot.leaving;
	for (size_t i = 0; i < l->n_jobs; i++)
		core_touch(c, l->jobs[i]);
	c->queue_dirty = true;
	return 0;
}

static const struct check_result *finding_named(const struct node_health *h, const char *name)
{
	for (size_t i = 0; i < h->n_results; i++) {
		_cleanup_(mo_freep) char *is = finding_name(&h->results[i]);

		if (mo_streq(is, name))
			return &h->results[i];
	}
	return NULL;
}

/* A finding that is OK counts again the next time; while first probes are not done, what is
 * missing is not OK. */
static void seen_keep(const struct seen *s, const struct node_health *h)
{
	char **names = *s->names;
	int64_t *counts;
	size_t retained = 0;

	seen_pad(s);
	counts = *s->counts;
	for (size_t i = 0; i < *s->n; i++) {
		const struct check_result *r = finding_named(h, names[i]);

		if (!r && h->preflight_done) {
			free(names[i]);
			continue;
		}
		names[retained] = names[i];
		counts[retained++] = r && counts[i] == MO_NONE ? r->count : counts[i];
	}
	*s->n = *s->n_counts = retained;
}

int update_ack(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);
	struct seen seen;

	if (!n)
		return -EINVAL;
	if (r->ack->learning_over)
		n->findings.learn_until = MO_NONE;
	seen = acked_of(n);
	for (size_t i = 0; n->health && i < r->ack->n_findings; i++) {
		const struct check_result *found = finding_named(n->health, r->ack->findings[i]);

		if (found)
			seen_add(&seen, found);
	}
	c->queue_dirty = true;
	return 0;
}

/* An agent forgets its answer when the order is repeated no more, so the jobs remember it. */
static void note_checked(struct core *c, const struct node *n, struct live *l)
{
	for (size_t i = l->n_checks; i > 0; i--) {
		struct job *j = job_edit(&c->owned, l->checks[i - 1]);

		core_touch(c, l->checks[i - 1]);
		if (!j || !health_checked(n->health, j->id, j->checks.attempt))
			continue;
		check_node_gone(j, n->name);
		mo_strs_add(&j->checks.done, &j->checks.n_done, n->name);
		ids_remove(l->checks, &l->n_checks, j->id);
	}
}

int update_health(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);
	struct live *l = core_live(c, r->node);

	if (!n)
		return -EINVAL;
	c->queue_dirty |= !health_equal(n->health, r->health, false);
	mo_desc_free(&node_health_desc, n->health);
	n->health = mo_desc_dup(&node_health_desc, r->health);
	n->stack.hash = health_stack_hash(n->health);
	n->stack.same = health_same_hash(n->health);
	struct seen waived = waived_of(n), acked = acked_of(n);

	seen_keep(&waived, n->health);
	seen_keep(&acked, n->health);
	note_checked(c, n, l);
	return 0;
}

void checks_over(struct core *c, struct job *j)
{
	for (size_t i = 0; i < j->checks.n_nodes; i++) {
		struct live *l = core_live(c, j->checks.nodes[i]);

		if (l)
			ids_remove(l->checks, &l->n_checks, j->id);
	}
	clear_strs(&j->checks.nodes, &j->checks.n_nodes);
	clear_strs(&j->checks.done, &j->checks.n_done);
	j->checks.until = MO_NONE;
	j->checks.thorough = false;
	mo_str_set(&j->checks.doubted, NULL);
}

static void add_evidence(struct job *j, const struct record *r)
{
	struct incident *inc = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;

	if (!inc || inc->attempt != r->attempt)
		return;
	for (size_t i = 0; i < r->check->n_findings; i++)
		if (inc->n_evidence < EVIDENCE_LINES_MAX &&
		    mo_enum_parse((const char *const *)inc->evidence, inc->n_evidence,
				  r->check->findings[i]) < 0)
			mo_strs_add(&inc->evidence, &inc->n_evidence, r->check->findings[i]);
}

static void add_later(struct job *j, const struct record *r)
{
	struct incident *inc = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;

	if (!inc || inc->attempt != r->attempt)
		return;
	for (size_t i = 0; i < r->check->n_findings && inc->n_later < EVIDENCE_LINES_MAX; i++)
		mo_strs_add(&inc->later, &inc->n_later, r->check->findings[i]);
	inc->elsewhere |= r->check->broken && mo_streq(inc->node, r->node);
}

int update_check(struct core *c, const struct record *r)
{
	struct job *j = job_edit(&c->owned, r->job);
	const struct rec_check *k = r->check;

	if (!j)
		return -EINVAL;
	if (k->later) {
		add_later(j, r);
		return 0;
	}
	checks_over(c, j);
	c->queue_dirty = true;
	if (!k->waits) {
		add_evidence(j, r);
		return 0;
	}
	j->checks.attempt = r->attempt;
	j->checks.until = k->until;
	j->checks.thorough = k->thorough;
	mo_str_set(&j->checks.doubted, k->doubted);
	for (size_t i = 0; i < k->n_nodes; i++) {
		struct live *l = core_live(c, k->nodes[i]);

		mo_strs_add(&j->checks.nodes, &j->checks.n_nodes, k->nodes[i]);
		if (l)
			ids_add(&l->checks, &l->n_checks, j->id);
	}
	return 0;
}
