/* Whether a node is heard: up, suspect after two beats, down after ten seconds. Silence proves
 * nothing: nobody is taken for dead by it, it only keeps new work away and is shown. Being heard is
 * no record; it is `struct live`, beside the state. Nodes stand in a list for each of their states
 * (core.watches), who was heard longest ago first, so that a look at silence costs what fell
 * silent, not what there is. */
#include "daemon/core/rules/silence.h"

#include <utlist.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/core_config.h"
#include "lib/base/assert.h"
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

/* Nobody of its state was heard later. */
static void watch(struct core *c, struct live *l)
{
	struct live **list = &c->watches[l->node->state];

	mo_assert(!*list || (*list)->earlier->heard_at <= l->heard_at);
	if (l->watch)
		DL_DELETE2(*l->watch, l, earlier, later);
	DL_APPEND2(*list, l, earlier, later);
	l->watch = list;
}

void silence_begin(struct turn *t)
{
	struct core *c = t->core;

	for (size_t i = 0; i < c->state.n_nodes; i++) {
		c->lives[i]->heard_at = t->now;
		watch(c, c->lives[i]);
	}
	c->liveness_at = t->now;
}

void fleet_heard(struct turn *t, const char *name)
{
	struct live *l = core_live(t->core, name);

	l->heard_at = t->now;
	t->core->liveness_at = MO_MIN(t->core->liveness_at, t->now + t->core->config.suspect_us);
	if (l->node->state != NODE_UP)
		node_state(t, name, NODE_UP, NULL);
	watch(t->core, l);
}

static void silent_now(struct turn *t, struct live *l, int state)
{
	char heard[32];
	/* a moment, not a duration: the text is stored */
	_cleanup_(mo_freep) char *reason =
		mo_printf("not heard since %s", mo_time_format(l->heard_at, heard));

	node_state(t, l->node->name, state, reason);
	watch(t->core, l);
}

/* Those of the state that are silent for so long; when the next one is. */
static int64_t fall_silent(struct turn *t, int state, int64_t patience)
{
	struct live *const *list = &t->core->watches[state];

	while (*list && t->now - (*list)->heard_at >= patience) {
		t->core->looked++;
		silent_now(t, *list, state + 1);
	}
	return *list ? (*list)->heard_at + patience : INT64_MAX;
}

void fleet_silence(struct turn *t)
{
	const struct core_config *config = &t->core->config;
	int64_t up = fall_silent(t, NODE_UP, config->suspect_us);

	t->core->liveness_at = MO_MIN(up, fall_silent(t, NODE_SUSPECT, config->down_us));
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
		c->lives[i]->heard_at =
			c->state.nodes[i]->state == NODE_UP && by >= c->config.down_us
				? now
				: MO_MIN(now, c->lives[i]->heard_at + by);
	if (c->liveness_at != INT64_MAX)
		c->liveness_at += by;
}
