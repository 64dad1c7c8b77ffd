/* A node that is silent, and a job that stands still because of it: silence proves nothing, so the
 * job waits. Where the site has a command that powers a machine off and proves that it is off
 * (fence_command), and the recipe says on_node_loss: spare, the command is asked:
 *
 *   down for recovery.lease, its job stands   -> asked (REC_POWER, FX_POWER)
 *   the command says that it is off           -> fenced: its steps are dead, the job goes on
 *   it fails                                  -> asked again after 1, 5 and then each 15 minutes
 *   heard again, at any time                  -> all of that is forgotten
 *
 * What never happens: a node is powered off beside a job that advances, or that waits by its own
 * recipe; more than a tenth of the nodes, and more than one: when so many are silent at once, it
 * is the network, or this controller. At most eight commands run at once. */
#include "daemon/core/rules/power.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/fleet_verbs.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/heard.h"
#include "lib/base/assert.h"
#include "lib/base/parse.h"

#define PASS_US 1000000 /* while a node that holds ranks is down */
#define AT_ONCE 8       /* processes of the site's command */

bool power_wanted(const struct job *j)
{
	return mo_streq(j->spec.recipe.on_node_loss, "spare");
}

static int64_t again_after_us(int64_t tries)
{
	static const int64_t minutes[] = { 1, 5, 15 };

	mo_assert(tries >= 1);
	return minutes[MO_MIN(tries, (int64_t)ELEMENTSOF(minutes)) - 1] * 60 * 1000000LL;
}

/* It stands still, or ends: nobody needs what still runs on that node. */
static bool held_up(const struct job *j)
{
	return power_wanted(j) && (j->state == JOB_RECOVERING || j->state == JOB_STOPPING);
}

/* The job for which the node is to go off now; *next: when to look again. NULL: none yet. */
static const struct job *wanted_by(const struct turn *t, const struct node *n, const struct live *l,
				   int64_t *next)
{
	for (size_t i = 0; i < l->n_jobs; i++) {
		const struct job *j = job_find(&t->core->state, l->jobs[i]);
		const struct step *st = j && held_up(j) ? step_next(j, n->name, -1) : NULL;
		int64_t at = l->heard_at + (j ? j->spec.recipe.lease_us : 0);

		while (st && step_dead(st))
			st = step_next(j, n->name, st->attempt);
		if (st && t->now >= at)
			return j;
		if (st)
			*next = MO_MIN(*next, at);
	}
	return NULL;
}

static size_t n_asked(const struct state *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_nodes; i++)
		n += s->nodes[i]->state == NODE_DOWN && s->nodes[i]->power.step == POWER_ASKED;
	return n;
}

static bool too_many_silent(const struct state *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_nodes; i++)
		n += s->nodes[i]->state != NODE_UP && s->nodes[i]->power.step != POWER_OFF;
	return n > MO_MAX((size_t)1, s->n_nodes / 10);
}

static void step_to(struct turn *t, const char *node, int step, const char *text)
{
	struct record r;

	record_init(&r, REC_POWER);
	r.node = mo_strdup(node);
	r.power->step = step;
	r.power->text = mo_strdup(text);
	turn_emit(t, &r);
}

static void hold(struct turn *t, const struct node *n)
{
	if (n->power.step == POWER_HELD)
		return;
	step_to(t, n->name, POWER_HELD, NULL);
	event_emit(t, EVENT_NODE_POWER_HELD, MO_NONE, n->name, MO_NONE, MO_NONE, NULL,
		   "node %s is silent and not powered off: more than a tenth of all nodes are, "
		   "which is more likely the network, or this controller",
		   n->name);
}

static void ask(struct turn *t, const struct node *n, struct live *l, const struct job *j)
{
	char heard[32];
	int64_t id = j->id;

	step_to(t, n->name, POWER_ASKED, NULL);
	l->powering = true;
	turn_effect(t, FX_POWER, n->name);
	event_emit(t, EVENT_NODE_POWER_ASKED, id, n->name, MO_NONE, MO_NONE, NULL,
		   "node %s has not been heard since %s, and j-%lld stands: fence_command is to "
		   "power it off (try %lld)",
		   n->name, mo_time_format(l->heard_at, heard), (long long)id,
		   (long long)n->power.tries);
}

static void consider(struct turn *t, const struct node *n, struct live *l, int64_t *next)
{
	const struct job *j;

	if (n->power.step == POWER_ASKED && !l->powering) {
		/* an earlier start asked, and its command ended with it */
		l->powering = true;
		turn_effect(t, FX_POWER, n->name);
	}
	if (n->power.step == POWER_ASKED || n->power.step == POWER_OFF)
		return;
	if (n->power.step == POWER_FAILED) {
		int64_t at = n->power.at + again_after_us(n->power.tries);

		if (t->now < at) {
			*next = MO_MIN(*next, at);
			return;
		}
	}
	j = wanted_by(t, n, l, next);
	if (!j)
		return;
	if (too_many_silent(&t->core->state))
		hold(t, n);
	else if (n_asked(&t->core->state) < AT_ONCE) /* else by a later pass */
		ask(t, n, l, j);
}

void power_pass(struct turn *t)
{
	struct core *c = t->core;
	int64_t next = INT64_MAX;

	for (struct live *l = c->watches[NODE_DOWN]; c->config.powers_off && l; l = l->later) {
		c->looked++;
		if (l->n_jobs > 0) {
			next = MO_MIN(next, t->now + PASS_US);
			consider(t, l->node, l, &next);
		}
	}
	c->liveness_at = MO_MIN(c->liveness_at, next);
}

void power_answered(struct turn *t)
{
	const struct in_power *in = t->input->power;
	const struct node *n = node_find(&t->core->state, in->node);

	if (!n)
		return;
	core_live(t->core, n->name)->powering = false;
	/* heard meanwhile, or in another boot, whose ranks were not meant */
	if (n->power.step != POWER_ASKED || !mo_streq(n->boot.id, in->boot_id))
		return;
	step_to(t, n->name, in->off ? POWER_OFF : POWER_FAILED, in->text);
	if (in->off)
		fleet_fenced(t, n, "powered off by fence_command");
	else
		event_emit(t, EVENT_NODE_POWER_FAILED, MO_NONE, n->name, MO_NONE, MO_NONE, NULL,
			   "node %s was not powered off: %s; asked again in %lld min", n->name,
			   in->text ? in->text : "fence_command said nothing",
			   (long long)(again_after_us(n->power.tries) / 60000000));
}
