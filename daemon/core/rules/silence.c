/* Whether a node is heard: up, suspect after two beats, down after ten seconds. Silence proves
 * nothing: nobody is taken for dead by it, it only keeps new work away and is shown. Being heard is
 * no record; it is `struct live`, beside the state. */
#include "daemon/core/rules/silence.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/learn.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/way_back.h"
#include "daemon/core/state/core_config.h"
#include "lib/base/parse.h"

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

static void silent_now(struct turn *t, size_t node, int state)
{
	char heard[32];
	/* a moment, not a duration: the text is stored */
	_cleanup_(mo_freep) char *reason =
		mo_printf("not heard since %s",
			  mo_time_format(t->core->lives[node].heard_at, heard));

	node_state(t, t->core->state.nodes[node]->name, state, reason);
}

/* Called when liveness_at was reached: checks every node and sets the next time to check. */
void fleet_silence(struct turn *t)
{
	const struct core_config *config = &t->core->config;
	const struct state *s = &t->core->state;
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < s->n_nodes; i++) {
		int64_t silent = t->now - t->core->lives[i].heard_at;

		if (s->nodes[i]->state == NODE_UP && silent >= config->suspect_us)
			silent_now(t, i, NODE_SUSPECT);
		if (s->nodes[i]->state == NODE_SUSPECT && silent >= config->down_us)
			silent_now(t, i, NODE_DOWN);
		if (s->nodes[i]->state == NODE_UP)
			next = MO_MIN(next, t->core->lives[i].heard_at + config->suspect_us);
		else if (s->nodes[i]->state == NODE_SUSPECT)
			next = MO_MIN(next, t->core->lives[i].heard_at + config->down_us);
		next = MO_MIN(next, learn_pass(t, s->nodes[i]));
		next = MO_MIN(next, way_back_pass(t, s->nodes[i]));
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
	if (by >= c->config.down_us)
		c->heard_from = now;
	for (size_t i = 0; i < c->state.n_nodes; i++)
		c->lives[i].heard_at =
			c->state.nodes[i]->state == NODE_UP && by >= c->config.down_us
				? now
				: MO_MIN(now, c->lives[i].heard_at + by);
	if (c->liveness_at != INT64_MAX)
		c->liveness_at += by;
}
