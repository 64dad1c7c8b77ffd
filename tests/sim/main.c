/* build/sim: runs seeds, prints how often each fault and each transition happened. Exit 1 at a
 * violation, or (with --seeds) when one of them never happened. */
#include "tests/sim/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/parse.h"
#include "tests/hangs/recorded.h"
#include "tests/sim/spool.h"

#define QUIET_TIME (1800 * S)
#define PROCESSES_MAX 16

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
	case K_WRITTEN:
		if (e->a == s->nodes[st->node].instance)
			spool_read(s, st);
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
	case K_ANSWER: network_answer(s, e->p); break;
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
		    job_gpus(j) <= s->plan.nodes * GPUS && !check_waits(s, j))
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
	for (size_t i = 0; i < s->n_ops; i++)
		free(s->ops[i]);
	free(s->ops);
	past_free(s);
	for (size_t i = 0; i < JOBS_MAX; i++)
		free(s->jobs[i].files);
	free(s);
}

/* What happened in the runs of one process. */
struct counts {
	int64_t faults[_FAULT_N], moves[_JOB_STATE_N * _JOB_STATE_N], rows[ROWS_MAX], events, jobs;
};

static void run(uint64_t seed, const struct less *less, bool trace, struct counts *c)
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
		if (n < s->plan.nodes)
			sim_at(s, s->now + sim_between(s, 0, 3 * S), K_BOOT, n, 0, NULL, NULL);
	}
	s->ctl.synced = true;
	control_start(s);
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

/* One of the runs at a time that have their counts there, in a process of its own. */
struct worker {
	struct counts *counts;
	pid_t pid; /* 0: none */
};

static void start(struct worker *w, int64_t seed)
{
	fflush(stdout);
	w->pid = fork();
	if (w->pid < 0)
		abort();
	if (w->pid > 0)
		return;
	run((uint64_t)seed, &(struct less){ 0 }, false, w->counts);
	exit(0);
}

/* False: its run ended with a violation, which it has told. */
static bool await(struct worker *list, int n, struct worker **ret)
{
	int status;
	pid_t pid = wait(&status);

	for (int i = 0; i < n; i++)
		if (pid > 0 && list[i].pid == pid)
			*ret = &list[i];
	(*ret)->pid = 0;
	return status == 0;
}

/* A seed is the same alone and among others: each has a process of its own. False: one ended with a
 * violation; no others began then. */
static bool run_many(int64_t first, int64_t last, struct counts *total)
{
	int n = (int)MO_MIN(MO_MIN(sysconf(_SC_NPROCESSORS_ONLN), PROCESSES_MAX), last - first + 1);
	struct counts *counts = mmap(NULL, (size_t)n * sizeof(*counts), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct worker list[PROCESSES_MAX] = { 0 }, *next;
	bool good = true;
	int running = 0;

	if (counts == MAP_FAILED)
		abort();
	for (int i = 0; i < n; i++)
		list[i].counts = &counts[i];
	while ((good && first <= last) || running > 0) {
		next = &list[running];
		if (running == n || !good || first > last) {
			good &= await(list, n, &next);
			running--;
		}
		if (good && first <= last) {
			start(next, first++);
			running++;
		}
	}
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(*counts) / sizeof(int64_t); k++)
			((int64_t *)total)[k] += ((const int64_t *)&counts[i])[k];
	munmap(counts, (size_t)n * sizeof(*counts));
	return good;
}

/* Every move between two states that the table of daemon/core/rules/transitions.c allows. */
static int summary(const struct counts *c, bool demand)
{
	bool allowed[_JOB_STATE_N * _JOB_STATE_N] = { false };
	int never = 0;

	for (int f = 0; f < _FAULT_N; f++) {
		printf("fault       %-44s %10lld\n", fault_names[f], (long long)c->faults[f]);
		never += c->faults[f] == 0;
	}
	for (size_t i = 0; i < n_job_rows; i++)
		if (job_rows[i].next >= 0 && job_rows[i].next != job_rows[i].state)
			allowed[job_rows[i].state * _JOB_STATE_N + job_rows[i].next] = true;
	for (int m = 0; m < _JOB_STATE_N * _JOB_STATE_N; m++) {
		if (!allowed[m])
			continue;
		printf("transition  %-20s -> %-20s %10lld\n", job_state_names[m / _JOB_STATE_N],
		       job_state_names[m % _JOB_STATE_N], (long long)c->moves[m]);
		never += c->moves[m] == 0;
	}
	never += coverage_print(c->rows);
	if (demand && never)
		printf("sim: %d of these never happened\n", never);
	return demand ? never : 0;
}

/* Without a word of it. */
static bool fails(uint64_t seed, const struct less *less)
{
	static struct counts none;
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stderr))
			abort();
		run(seed, less, false, &none);
		exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status != 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: sim --seed N [--steps | --shrink] [--off KIND,...] [--jobs N] "
			"[--nodes N] [--fault-time S] | --seeds A-B | --states\n");
	return 2;
}

struct options {
	int64_t first, last;
	bool trace, range, shrink;
	struct less less;
};

static bool parse_range(char *text, struct options *o)
{
	char *dash = strchr(text, '-');

	if (!dash)
		return false;
	*dash = '\0';
	o->range = mo_parse_i64(text, 0, INT64_MAX, &o->first) == 0 &&
		   mo_parse_i64(dash + 1, o->first, INT64_MAX, &o->last) == 0;
	return o->range;
}

static bool parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (mo_streq(argv[i], "--steps")) {
			o->trace = true;
		} else if (mo_streq(argv[i], "--shrink")) {
			o->shrink = true;
		} else if (mo_streq(argv[i], "--seed") && i + 1 < argc &&
			   mo_parse_i64(argv[i + 1], 0, INT64_MAX, &o->first) == 0) {
			o->last = o->first;
			i++;
		} else if (mo_streq(argv[i], "--seeds") && i + 1 < argc) {
			if (!parse_range(argv[++i], o))
				return false;
		} else if (less_option(&o->less, argv[i], argv[i + 1])) {
			i++;
		} else {
			return false;
		}
	}
	return !o->range || !(o->trace || o->shrink);
}

int main(int argc, char **argv)
{
	static struct counts total;
	struct options o = { .first = 1, .last = 1 };

	if (argc == 2 && mo_streq(argv[1], "--states")) {
		states_print();
		return 0;
	}
	if (!parse(argc, argv, &o))
		return usage();
	recorded_init();
	if (o.shrink)
		return shrink((uint64_t)o.first, &o.less, fails);
	if (!o.range)
		run((uint64_t)o.first, &o.less, o.trace, &total);
	else if (!run_many(o.first, o.last, &total))
		return 1;
	int never = summary(&total, o.range);
	printf("sim: %lld seeds from %lld, %lld jobs, %lld steps, no violation\n",
	       (long long)(o.last - o.first + 1), (long long)o.first, (long long)total.jobs,
	       (long long)total.events);
	return never ? 1 : 0;
}
