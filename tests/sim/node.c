/* An agent among the effects of its core, and the node around it, which may lose power. What of the
 * agent is production's: shell.h. It may die between any two effects. */
#include "tests/sim/shell.h"

#include <stdlib.h>

#include "tests/sim/before.h"
#include "tests/sim/steps.h"

struct simstep *step_of(const struct sim *s, int node, int64_t job, int64_t attempt)
{
	for (size_t i = s->n_steps; i > 0; i--) {
		struct simstep *st = s->steps[i - 1];

		if (st->node == node && st->job == job && st->attempt == attempt && st->spooled)
			return st;
	}
	return NULL;
}

int sim_node(const struct sim *s, const char *name)
{
	for (int n = 0; n < NODES; n++)
		if (mo_streq(s->nodes[n].name, name))
			return n;
	return 0;
}

void node_boot_name(const struct simnode *n, char buf[static 64])
{
	snprintf(buf, 64, "%s-boot-%lld", n->name, (long long)n->boot);
}

static void arm(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];
	int64_t at = n->agent ? agent_core_deadline(n->agent) : INT64_MAX;

	if (at == INT64_MAX)
		return;
	at = clock_true(s, node, at);
	if ((n->tick_at > s->now && n->tick_at <= at))
		return;
	n->tick_at = MO_MAX(at, s->now + 1);
	sim_at(s, n->tick_at, K_AGENT_TICK, node, n->instance, NULL, NULL);
}

/* One of eight nodes cannot: its agent is of before, or not root. */
bool node_runs_images(const struct sim *s, int node)
{
	return ((uint64_t)node + s->seed) % 8 != 0;
}

static void scan(struct sim *s, int node, const struct agent_effect *x)
{
	struct agent_event e = { .type = AE_SCANNED };
	struct scan_result result;

	mo_desc_init(&scan_result_desc, &result);
	result.job = x->job;
	result.attempt = x->attempt;
	result.order = x->command->order;
	result.id = x->command->id;
	result.writable = true;
	if (sim_fault(s, F_SCAN_FAILS, 0.05))
		result.error = mo_strdup("the helper timed out");
	else
		train_scan(s, x->command, &result);
	e.scan = &result;
	agent_later(s, node, sim_between(s, MS, S), &e);
	mo_desc_done(&scan_result_desc, &result);
}

static void run_effect(struct sim *s, int node, struct agent_effect *x)
{
	switch (x->type) {
	case AX_FENCE: shell_fence(s, node, x); break;
	case AX_SCAN: scan(s, node, x); break;
	case AX_HELLO: shell_hello(s, node); break;
	case AX_SYNC: shell_sync(s, node); break;
	case AX_SEND_URGENT: shell_urgent(s, node); break;
	default: steps_effect(s, node, x); break;
	}
}

void agent_event(struct sim *s, int node, struct agent_event *e)
{
	struct simnode *n = &s->nodes[node];
	struct agent_out out = { 0 };
	int64_t instance = n->instance;

	if (!n->agent)
		return;
	agent_core_decide(n->agent, e, clock_boot_us(s, node), &out);
	for (size_t i = 0; i < out.n_effects; i++) {
		bool act = out.effects[i].type <= AX_SCAN || out.effects[i].type == AX_FORGET;

		if (act && sim_fault(s, F_AGENT_BETWEEN_EFFECTS, 0.004)) {
			agent_kill(s, node, sim_between(s, 50 * MS, 5 * S));
			break;
		}
		run_effect(s, node, &out.effects[i]);
		if (!n->agent || n->instance != instance)
			break;
	}
	agent_out_done(&out);
	shell_drain(s, node);
	arm(s, node);
}

void agent_event_free(struct agent_event *e)
{
	mo_desc_free(&note_desc, (void *)e->note);
	mo_desc_free(&scan_result_desc, (void *)e->scan);
	free((void *)e->progress);
	free(e);
}

void agent_later(struct sim *s, int node, int64_t delay, const struct agent_event *e)
{
	struct agent_event *copy = mo_alloc(sizeof(*copy));

	*copy = *e;
	copy->note = mo_desc_dup(&note_desc, e->note);
	copy->scan = mo_desc_dup(&scan_result_desc, e->scan);
	if (e->progress) {
		struct rank_progress *p = mo_alloc(sizeof(*p));

		*p = *e->progress;
		copy->progress = p;
	}
	sim_at(s, s->now + delay, K_AGENT_EVENT, node, s->nodes[node].instance, copy, NULL);
}

void agent_tick(struct sim *s, int node)
{
	struct agent_event e = { .type = AE_TICK };

	s->nodes[node].tick_at = 0;
	if (s->nodes[node].agent &&
	    agent_core_deadline(s->nodes[node].agent) <= clock_boot_us(s, node))
		agent_event(s, node, &e);
	else
		arm(s, node);
}

void agent_up(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];
	char boot[64], instance[64];
	struct agent_event e = { .type = AE_STARTED };
	int64_t born;

	if (!n->power || n->agent)
		return;
	n->instance++;
	born = n->instance;
	node_boot_name(n, boot);
	snprintf(instance, sizeof(instance), "%s-i%lld", n->name, (long long)n->instance);
	n->agent = agent_core_new(n->name, boot, instance);
	n->tick_at = 0;
	n->health.preflight_done = false; /* it probes again; what was found stays found */
	n->health.failure_checks = true;
	n->health.version = s->now;
	n->looked_at = s->now + sim_between(s, 0, 3 * S);
	n->n_orders = 0;
	sim_trace(s, "%s: agent starts", n->name);
	shell_open(s, node);
	if (!n->agent || n->instance != born || !steps_adopt(s, node))
		return;
	if (n->agent && n->instance == born)
		agent_event(s, node, &e);
	if (n->agent && n->instance == born)
		steps_connect(s, node);
}

void node_upgrade(struct sim *s, int node)
{
	sim_trace(s, "%s: its agent is upgraded", s->nodes[node].name);
	s->nodes[node].before = false;
	before_node(s, node);
}

void agent_kill(struct sim *s, int node, int64_t down_us)
{
	struct simnode *n = &s->nodes[node];

	if (!n->agent)
		return;
	sim_trace(s, "%s: agent dies for %lld ms", n->name, (long long)(down_us / MS));
	n->agent = agent_core_free(n->agent);
	shell_close(n);
	if (n->before && (s->quiet || sim_fault(s, F_AGENT_UPGRADED, 0.3)))
		node_upgrade(s, node);
	sim_at(s, s->now + down_us, K_AGENT_UP, node, 0, NULL, NULL);
}

void node_boot(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];

	if (n->power)
		return;
	n->power = true;
	n->leaving = false;
	n->boot++;
	clock_begin(s, node);
	mo_vec_clear(&checked_attempt_desc, (void **)&n->health.checked, &n->health.n_checked);
	sim_trace(s, "%s boots", n->name);
	sim_at(s, s->now + sim_between(s, 0, 2 * S), K_AGENT_UP, node, 0, NULL, NULL);
}

void node_lose(struct sim *s, int node, int64_t off_us)
{
	for (size_t i = 0; i < s->n_steps && s->nodes[node].power; i++)
		if (s->steps[i]->node == node && s->steps[i]->spooled &&
		    s->steps[i]->boot == s->nodes[node].boot)
			sim_harm(s, s->steps[i]->job, s->steps[i]->attempt);
	node_off(s, node, off_us);
}

void node_off(struct sim *s, int node, int64_t off_us)
{
	struct simnode *n = &s->nodes[node];
	bool runtime_on_disk = false;

	if (!n->power)
		return;
	sim_trace(s, "%s loses power", n->name);
	n->power = false;
	clock_wake(s, node);
	n->agent = agent_core_free(n->agent);
	shell_power_loss(s, node);
	for (size_t i = 0; i < s->n_steps; i++) {
		struct simstep *st = s->steps[i];

		if (st->node != node)
			continue;
		step_lost(s, st);
		runtime_on_disk |= st->spooled && sim_fault(s, F_OLD_SPOOL, 0.3);
	}
	steps_lost(s, node, runtime_on_disk);
	if (off_us != INT64_MAX)
		sim_at(s, s->now + off_us, K_BOOT, node, 0, NULL, NULL);
}

void node_free(struct sim *s, int node)
{
	agent_core_free(s->nodes[node].agent);
	shell_free(&s->nodes[node]);
	free(s->nodes[node].orders);
	mo_desc_done(&node_health_desc, &s->nodes[node].health);
}
