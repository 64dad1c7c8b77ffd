/* See run.h: events reach whom they are for, until all comes to rest. */
#include "tests/sim/run.h"

#include <stdlib.h>

#include "tests/sim/check.h"
#include "tests/sim/seams.h"
#include "tests/sim/steps.h"

#define QUIET_TIME (1800 * S)

/* What waits for a step's supervisor; nothing when that is another one by now. */
static void one_of_step(struct sim *s, const struct queued *e, struct simstep *st)
{
	switch (e->kind) {
	case K_STEP_TICK:
		if (e->a == st->instance)
			stepd_tick(s, st);
		break;
	case K_STEP_EVENT:
		if (e->a == st->instance)
			stepd_event(s, st, e->q);
		mo_desc_done(&note_desc, &((struct stepd_event *)e->q)->note);
		free(e->q);
		break;
	case K_WORD:
		line_arrived(s, st, e);
		free(e->q);
		break;
	case K_SPAWN: steps_spawned(s, st, e->a); break;
	case K_FORK:
		if (e->a == st->instance)
			stepd_fork(s, st, (size_t)e->b);
		break;
	case K_UNIT_KILL:
		if (e->a == st->instance)
			outside_kill(s, st);
		break;
	case K_HUNG_END:
		if (e->a == st->instance)
			stepd_hang_end(s, st);
		break;
	default: break;
	}
}

static void one(struct sim *s, const struct queued *e)
{
	switch (e->kind) {
	case K_MESSAGE: control_message(s, e->p); break;
	case K_ANSWER: network_answer(s, e->p); break;
	case K_TURN: control_turn(s, e); break;
	case K_TIMER: control_timer(s, e); break;
	case K_NODE_TIMER: seams_timer(s, (int)e->a, e); break;
	case K_CONTROLLER_UP: control_start(s); break;
	case K_AGENT_TICK:
		if (e->b == s->nodes[e->a].instance)
			agent_tick(s, (int)e->a);
		break;
	case K_AGENT_UP: agent_up(s, (int)e->a); break;
	case K_AGENT_EVENT:
		if (e->b == s->nodes[e->a].instance)
			agent_event(s, (int)e->a, e->p);
		agent_event_free(e->p);
		break;
	case K_STUCK: stepd_stuck(s, e->p); break;
	case K_STUCK_END: proc_end(s, e->p, MO_NONE, 9); break;
	case K_EXIT: train_exit(s, e->p, e->a, e->b); break;
	case K_ITERATE: train_iterate(s, e->p, e->a); break;
	case K_PHASE: train_phase(s, e->p, (int)e->a); break;
	case K_SAVED: train_saved(s, e->p, e->a); break;
	case K_BOOT: node_boot(s, (int)e->a); break;
	case K_LEAVE:
		if (e->b == s->nodes[e->a].boot)
			outside_next(s, (int)e->a);
		break;
	case K_STAY:
		if (e->b == s->nodes[e->a].boot)
			outside_stay(s, (int)e->a);
		break;
	case K_USER: user_act(s); break;
	case K_RETRY: user_retry(s, e->p); break;
	case K_FAULT: fault_happen(s); break;
	case K_CHECK:
		check_time(s);
		check_disowned(s);
		past_check_reported(s);
		token_check(s);
		sim_at(s, s->now + S, K_CHECK, 0, 0, NULL, NULL);
		break;
	default: one_of_step(s, e, e->p); break;
	}
}

static bool all_at_rest(struct sim *s)
{
	const struct state *st = s->ctl.up ? core_state(s->ctl.core) : NULL;

	for (size_t i = 0; st && i < st->n_jobs; i++) {
		const struct job *j = st->jobs[i];

		if (!job_state_final(j->state) && j->state != JOB_PAUSED &&
		    job_gpus(j) <= s->plan.nodes * GPUS && !check_waits(s, j))
			return false;
		if (j->n_steps)
			return false;
	}
	for (size_t i = 0; st && i < st->n_nodes; i++)
		if (st->nodes[i]->state != NODE_UP || st->nodes[i]->strays.any ||
		    st->nodes[i]->unseen)
			return false;
	return st != NULL;
}

static void drop(struct queued *e)
{
	switch (e->kind) {
	case K_MESSAGE: message_free(e->p); break;
	case K_ANSWER: answer_free(e->p); break;
	case K_AGENT_EVENT: agent_event_free(e->p); break;
	case K_STEP_EVENT:
		mo_desc_done(&note_desc, &((struct stepd_event *)e->q)->note);
		free(e->q);
		break;
	case K_WORD: free(e->q); break;
	default: break;
	}
}

static void clean(struct sim *s)
{
	struct queued e;

	while (sim_pop(s, &e))
		drop(&e);
	free(s->heap);
	for (int n = 0; n < NODES; n++)
		node_free(s, n);
	control_free(s); /* with the disk of all */
	for (size_t i = 0; i < s->n_steps; i++)
		step_free_all(s, s->steps[i]);
	free(s->steps);
	for (size_t i = 0; i < s->n_attempts; i++) {
		free(s->attempts[i]->ranks);
		free(s->attempts[i]->paces);
		free(s->attempts[i]);
	}
	free(s->attempts);
	for (size_t i = 0; i < s->n_ops; i++) {
		free(s->ops[i]->secret);
		free(s->ops[i]);
	}
	free(s->ops);
	past_free(s);
	for (size_t i = 0; i < JOBS_MAX; i++)
		free(s->jobs[i].files);
	free(s);
}

void run_seed(uint64_t seed, const struct less *less, bool trace, struct counts *c)
{
	struct sim *s = mo_alloc(sizeof(*s));
	struct queued e;
	int64_t rest_since = 0;

	s->seed = seed;
	s->rng = seed * 0x2545f4914f6cdd1du + 1;
	s->trace = trace;
	plan_draw(seed, less, &s->plan);
	s->now = 1000 * S;
	s->faults = true;
	s->fault_counts = c->faults;
	s->move_counts = c->moves;
	coverage_begin(c->rows);
	s->faults_until = s->now + s->plan.fault_us;
	s->end = s->faults_until + QUIET_TIME;
	for (int n = 0; n < NODES; n++) {
		mo_desc_init(&node_health_desc, &s->nodes[n].health);
		snprintf(s->nodes[n].name, sizeof(s->nodes[n].name), "n%02d", n);
		s->nodes[n].before = sim_chance(s, 0.3);
		if (n < s->plan.nodes)
			sim_at(s, s->now + sim_between(s, 0, 3 * S), K_BOOT, n, 0, NULL, NULL);
	}
	s->ctl.synced = true;
	control_start(s);
	token_begin(s);
	sim_at(s, s->now + 2 * S, K_USER, 0, 0, NULL, NULL);
	sim_at(s, s->now + 8 * S, K_FAULT, 0, 0, NULL, NULL);
	sim_at(s, s->now + S, K_CHECK, 0, 0, NULL, NULL);
	while (s->now < s->end && sim_pop(s, &e)) {
		s->now = e.at;
		if (clock_waits(s, &e)) {
			sim_at(s, clock_waits(s, &e), e.kind, e.a, e.b, e.p, e.q);
			continue;
		}
		s->n_events++;
		one(s, &e);
		if (!s->quiet && s->now >= s->faults_until) {
			s->quiet = true;
			sim_trace(s, "nothing breaks any more");
			fault_heal(s);
			user_settle(s);
		}
		if (s->quiet && e.kind == K_CHECK) {
			/* what was cordoned by the last findings */
			if (s->now / S % 15 == 0)
				user_settle(s);
			rest_since = all_at_rest(s) ? rest_since ? rest_since : s->now : 0;
			if (rest_since && s->now - rest_since > 20 * S)
				break;
		}
	}
	check_end(s);
	c->events += s->n_events;
	c->jobs += (int64_t)core_state(s->ctl.core)->n_jobs;
	clean(s);
}
