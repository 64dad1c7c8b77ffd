/* What the machine under the agent does to steps, and nobody ordered through the controller: a
 * step's unit is stopped, a machine goes down in order. As systemd does it: the supervisor gets
 * SIGTERM and stop.grace, then its unit is killed; in a shutdown the agent says that its machine is
 * leaving, outlives its steps, and ends when the controller has their ends, or a moment later. */
#include "tests/sim/sim.h"

#define UNIT_MARGIN (30 * S) /* TimeoutStopUSec is stop.grace and this (agent/unit.c) */
#define AGENT_WAITS (5 * S)  /* END_US of agent/ending.c */

void outside_stop(struct sim *s, struct simstep *st)
{
	struct stepd_event e;

	if (!st->stepd || st->outside_at)
		return;
	st->outside_at = s->now;
	stepd_event_init(&e, SE_STOP);
	e.outside = true;
	e.signal = st->launch.stop_signal;
	e.grace_us = st->launch.stop_grace_us;
	stepd_later(s, st, 100, &e);
	sim_at(s, s->now + e.grace_us + UNIT_MARGIN, K_UNIT_KILL, st->instance, 0, st, NULL);
}

void outside_kill(struct sim *s, struct simstep *st)
{
	if (!st->stepd)
		return;
	s->fault_counts[F_UNIT_KILLED]++;
	stepd_kill(s, st);
}

static bool steps_live(const struct sim *s, int node)
{
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->node == node && s->steps[i]->stepd)
			return true;
	return false;
}

static void notify_agent(struct sim *s, int node)
{
	struct agent_event e = { .type = AE_CHECKED };

	if (s->nodes[node].agent)
		agent_event(s, node, &e);
}

void outside_leave(struct sim *s, int node, bool given_up)
{
	struct simnode *n = &s->nodes[node];

	n->leaving = true;
	n->idle_since = 0;
	notify_agent(s, node);
	if (given_up) {
		sim_at(s, s->now + sim_between(s, 100 * MS, 8 * S), K_STAY, node, n->boot, NULL,
		       NULL);
		return;
	}
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->node == node)
			outside_stop(s, s->steps[i]);
	sim_at(s, s->now + 200 * MS, K_LEAVE, node, n->boot, NULL, NULL);
}

void outside_stay(struct sim *s, int node)
{
	s->nodes[node].leaving = false;
	notify_agent(s, node);
}

void outside_next(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];
	bool acked;

	for (size_t i = 0; i < s->n_steps; i++) /* also what was started a moment ago */
		if (s->steps[i]->node == node)
			outside_stop(s, s->steps[i]);
	if (!n->idle_since && !steps_live(s, node))
		n->idle_since = s->now;
	acked = n->agent && !agent_core_has_urgent(n->agent);
	if (!n->idle_since || (!acked && s->now - n->idle_since < AGENT_WAITS)) {
		sim_at(s, s->now + 200 * MS, K_LEAVE, node, n->boot, NULL, NULL);
		return;
	}
	s->fault_counts[acked ? F_SHUTDOWN_ACKED : F_SHUTDOWN_UNACKED]++;
	if (acked)
		node_off(s, node, sim_between(s, S, 30 * S));
	else
		node_lose(s, node, sim_between(s, S, 30 * S));
}
