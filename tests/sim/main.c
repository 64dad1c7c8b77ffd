/* build/sim: runs seeds, prints how often each fault and each transition happened. Exit 1 at a
 * violation, or (with --seeds) when one of them never happened. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/remedy.h"
#include "lib/base/parse.h"
#include "tests/hangs/recorded.h"

#define FAULT_TIME (150 * S)
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
	case K_FORK:
		if (e->a == st->instance)
			stepd_fork(s, st, (size_t)e->b);
		break;
	case K_UNIT_KILL:
		if (e->a == st->instance)
			outside_kill(s, st);
		break;
	case K_SILENT:
		if (e->a == st->instance)
			stepd_silent(s, st);
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
	case K_ANSWER: node_answer(s, e->p); break;
	case K_TURN: control_turn(s, e); break;
	case K_TIMER: control_timer(s, e); break;
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
		past_check_reported(s);
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
		    job_gpus(j) <= NODES * GPUS && !check_waits(s, j))
			return false;
		if (j->n_steps)
			return false;
	}
	for (size_t i = 0; st && i < st->n_nodes; i++)
		if (st->nodes[i]->strays.any || st->nodes[i]->unseen)
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
	default: break;
	}
}

static void clean(struct sim *s)
{
	struct queued e;

	while (sim_pop(s, &e))
		drop(&e);
	free(s->heap);
	control_free(s);
	for (int n = 0; n < NODES; n++)
		node_free(s, n);
	for (size_t i = 0; i < s->n_steps; i++)
		step_free_all(s, s->steps[i]);
	free(s->steps);
	for (size_t i = 0; i < s->n_attempts; i++) {
		free(s->attempts[i]->ranks);
		free(s->attempts[i]->paces);
		free(s->attempts[i]);
	}
	free(s->attempts);
	for (size_t i = 0; i < s->n_ops; i++)
		free(s->ops[i]);
	free(s->ops);
	past_free(s);
	for (size_t i = 0; i < JOBS_MAX; i++)
		free(s->jobs[i].files);
	free(s);
}

static void run(uint64_t seed, bool trace, int64_t *faults, int64_t *moves, int64_t *ret_events,
		int64_t *ret_jobs)
{
	struct sim *s = mo_alloc(sizeof(*s));
	struct queued e;
	int64_t rest_since = 0;

	s->seed = seed;
	s->rng = seed * 0x2545f4914f6cdd1du + 1;
	s->trace = trace;
	s->now = 1000 * S;
	s->faults = true;
	s->fault_counts = faults;
	s->move_counts = moves;
	s->faults_until = s->now + FAULT_TIME;
	s->end = s->faults_until + QUIET_TIME;
	for (int n = 0; n < NODES; n++) {
		mo_desc_init(&node_health_desc, &s->nodes[n].health);
		snprintf(s->nodes[n].name, sizeof(s->nodes[n].name), "n%02d", n);
		sim_at(s, s->now + sim_between(s, 0, 3 * S), K_BOOT, n, 0, NULL, NULL);
	}
	s->ctl.synced = true;
	control_start(s);
	sim_at(s, s->now + 2 * S, K_USER, 0, 0, NULL, NULL);
	sim_at(s, s->now + 8 * S, K_FAULT, 0, 0, NULL, NULL);
	sim_at(s, s->now + S, K_CHECK, 0, 0, NULL, NULL);
	while (s->now < s->end && sim_pop(s, &e)) {
		s->now = e.at;
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
	*ret_events += s->n_events;
	*ret_jobs += (int64_t)core_state(s->ctl.core)->n_jobs;
	clean(s);
}

/* Every move between two states that the table of daemon/core/rules/transitions.c allows. */
static int summary(const int64_t *faults, const int64_t *moves, bool demand)
{
	bool allowed[_JOB_STATE_N * _JOB_STATE_N] = { false };
	int never = 0;

	for (int f = 0; f < _FAULT_N; f++) {
		printf("fault       %-44s %10lld\n", fault_names[f], (long long)faults[f]);
		never += faults[f] == 0;
	}
	for (size_t i = 0; i < n_job_rows; i++)
		if (job_rows[i].next >= 0 && job_rows[i].next != job_rows[i].state)
			allowed[job_rows[i].state * _JOB_STATE_N + job_rows[i].next] = true;
	for (int m = 0; m < _JOB_STATE_N * _JOB_STATE_N; m++) {
		if (!allowed[m])
			continue;
		printf("transition  %-20s -> %-20s %10lld\n", job_state_names[m / _JOB_STATE_N],
		       job_state_names[m % _JOB_STATE_N], (long long)moves[m]);
		never += moves[m] == 0;
	}
	if (demand && never)
		printf("sim: %d of these never happened\n", never);
	return demand ? never : 0;
}

/* Of the docs, from the rows that `moectl why` speaks from. */
static void waits(void)
{
	printf("\n## What a job waits for\n"
	       "In `queued`, `recovering` and `stopping`: `waiting.code` and `waiting.text` "
	       "of the Job document, the code and text of a reason of `moectl why`, the reason of "
	       "`status` and `list`. Where something happened before, the reason keeps it: with "
	       "`grace` the text follows it, with `not-gone` it stands alone. Made from the rows "
	       "in "
	       "`daemon/core/state/waiting.c`; numbers are of the last look at the queue, which "
	       "follows every change.\n"
	       "\n| code | the reason | what makes it go on |\n|--|--|--|\n");
	for (int i = WAITING_NOT + 1; i < _WAITING_N; i++)
		printf("| `%s` | %s | %s |\n", waiting_code_names[i], waiting_kinds[i].sentence,
		       waiting_kinds[i].next);
}

/* What follows which failure. */
static void failures(void)
{
	printf("\n# What follows a failure\nBy the class of the verdict (`moectl why`, "
	       "[failures](failures.md#classes-of-failures)); the first row of a class whose "
	       "condition holds is taken. `recovery.on` of a recipe replaces the action of a "
	       "class, "
	       "but in the first row. The budget is what ends the job: failures in a row without a "
	       "new checkpoint (`recovery.max_cycles_without_progress`), or those and an hour of "
	       "them. Made from the rows in `daemon/core/rules/remedy.c`.\n\n"
	       "| class | condition | action | budget |\n|--|--|--|--|\n");
	for (size_t i = 0; i < n_remedies; i++) {
		const struct remedy *d = &remedies[i];

		printf("| `%s` | %s | `%s` | %s |\n", failure_class_names[d->class],
		       remedy_when_names[d->when], failure_action_names[d->action],
		       d->action == DO_STOP ? "" : remedy_budget_names[d->budget]);
	}
}

static void step_states(void)
{
	printf("\n# States of a step\nA job's attempt on one node, as its supervisor (moe-stepd) "
	       "has it: the table that `agent/core/stepd/stepd_core.c` runs by. "
	       "Pairs that are not listed are ignored; behind `gone` nothing follows.\n");
	for (int state = 0; stepd_state_name(state); state++) {
		bool any = false;

		for (int event = 0; stepd_event_name(event); event++) {
			const char *text = stepd_follows(state, event);

			if (text && !any)
				printf("\n## step: %s\n| what happens | what follows |\n|--|--|\n",
				       stepd_state_name(state));
			if (text)
				printf("| %s | %s |\n", stepd_event_name(event), text);
			any |= text != NULL;
		}
	}
}

/* docs/states.md: the tables that the cores run by. */
static void states(void)
{
	printf("# States of a job\nMade by `build/sim --states` from the table in "
	       "`daemon/core/rules/transitions.c`; the first row whose condition holds is taken. "
	       "Pairs that are not listed are ignored.\n");
	for (int state = 0; state < _JOB_STATE_N; state++) {
		printf("\n## %s\n| what happens | condition | next |\n|--|--|--|\n",
		       job_state_names[state]);
		for (size_t i = 0; i < n_job_rows; i++) {
			const struct job_row *r = &job_rows[i];

			if (r->state != state || r->next == NEXT_IGNORE)
				continue;
			if (r->next == NEXT_REFUSE)
				printf("| %s | %s | refused (409): %s |\n",
				       job_trigger_names[r->trigger], job_guard_names[r->guard],
				       r->text);
			else
				printf("| %s | %s | %s |\n", job_trigger_names[r->trigger],
				       job_guard_names[r->guard], job_state_names[r->next]);
		}
	}
	waits();
	failures();
	step_states();
}

int main(int argc, char **argv)
{
	static int64_t faults[_FAULT_N], moves[_JOB_STATE_N * _JOB_STATE_N];
	int64_t first = 1, last = 1, events = 0, jobs = 0;
	bool trace = false, range = false;

	for (int i = 1; i < argc; i++) {
		char *dash = i + 1 < argc ? strchr(argv[i + 1], '-') : NULL;

		if (strcmp(argv[i], "--states") == 0) {
			states();
			return 0;
		}
		if (strcmp(argv[i], "--steps") == 0) {
			trace = true;
		} else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc &&
			   mo_parse_i64(argv[i + 1], 0, INT64_MAX, &first) == 0) {
			last = first;
			i++;
		} else if (strcmp(argv[i], "--seeds") == 0 && dash) {
			*dash = '\0';
			range = mo_parse_i64(argv[i + 1], 0, INT64_MAX, &first) == 0 &&
				mo_parse_i64(dash + 1, first, INT64_MAX, &last) == 0;
			i++;
			if (!range)
				return 2;
		} else {
			fprintf(stderr, "usage: sim --seed N [--steps] | --seeds A-B | --states\n");
			return 2;
		}
	}
	recorded_init();
	for (int64_t seed = first; seed <= last; seed++)
		run((uint64_t)seed, trace, faults, moves, &events, &jobs);
	int never = summary(faults, moves, range);
	printf("sim: %lld seeds from %lld, %lld jobs, %lld steps, no violation\n",
	       (long long)(last - first + 1), (long long)first, (long long)jobs, (long long)events);
	return never ? 1 : 0;
}
