/* The processes of a step: started by its supervisor, killed with it. Main processes die with it
 * (PDEATHSIG); their children live on until the tree is killed or swept. */
#include "tests/sim/check.h"
#include "tests/sim/notes.h"

#include <signal.h>
#include <stdlib.h>

static bool empty(const struct simstep *st)
{
	for (size_t i = 0; i < st->n_procs; i++)
		if (st->procs[i].alive || st->procs[i].child ||
		    (st->procs[i].started && !st->procs[i].reported))
			return false;
	return true;
}

/* SE_EMPTY only after every status was taken. */
void proc_look_empty(struct sim *s, struct simstep *st, int64_t delay)
{
	struct stepd_event e;

	if (!st->stepd || !st->killing || !empty(st))
		return;
	stepd_event_init(&e, SE_EMPTY);
	stepd_later(s, st, delay, &e);
}

/* What nobody holds the controller to any more is counted no more. */
static void lives(struct sim *s, const struct simstep *st, int more)
{
	if (!st->disowned)
		sim_job(s, st->job)->live += more;
}

bool proc_any(const struct simstep *st)
{
	for (size_t i = 0; i < st->n_procs; i++)
		if ((st->procs[i].alive && !st->procs[i].stuck) || st->procs[i].child)
			return true;
	return false;
}

bool proc_disown(struct sim *s, struct simstep *st)
{
	struct attempt *a = sim_past_attempt(s, st->job, st->attempt);

	/* it may be about to begin: its supervisor waits for a GPU, or is started */
	bool begins = st->spooled && !st->forked && st->boot == s->nodes[st->node].boot;

	if (st->disowned || (!st->stepd && !begins && !proc_any(st)))
		return false;
	for (size_t i = 0; i < st->n_procs; i++)
		lives(s, st, -(st->procs[i].alive && !st->procs[i].stuck) - st->procs[i].child);
	st->disowned = true;
	if (a)
		a->lossy = true;
	return true;
}

static void drop_child(struct sim *s, struct proc *p)
{
	if (p->child)
		lives(s, p->step, -1);
	p->child = false;
}

void proc_kill_all(struct sim *s, struct simstep *st)
{
	for (size_t i = 0; i < st->n_procs; i++) {
		struct proc *p = &st->procs[i];

		drop_child(s, p);
		if (!p->alive || p->stuck)
			continue;
		if (sim_fault(s, F_UNKILLABLE, 0.004)) {
			p->stuck = true;
			sim_harm(s, st->job, st->attempt);
			lives(s, st, -1); /* never runs user code again */
			p->stuck_until = s->now + sim_between(s, 5 * S, 40 * S);
			sim_at(s, s->now + S, K_STUCK, st->instance, 0, p, NULL);
			sim_at(s, p->stuck_until, K_STUCK_END, 0, 0, p, NULL);
			continue;
		}
		proc_end(s, p, MO_NONE, SIGKILL);
	}
	st->killing = true;
	proc_look_empty(s, st, 200);
}

void proc_fork_all(struct sim *s, struct simstep *st)
{
	/* those of a supervisor that died before its first note: none of them had begun */
	for (size_t i = 0; i < st->n_procs; i++)
		if (st->procs[i].alive)
			sim_violation(s, "rank %lld of j-%lld attempt %lld is started twice",
				      (long long)st->procs[i].rank, (long long)st->job,
				      (long long)st->attempt);
	free(st->procs);
	st->forked = true;
	st->n_procs = (size_t)st->launch.n_local;
	st->procs = mo_alloc_array(st->n_procs, sizeof(*st->procs));
	for (size_t i = 0; i < st->n_procs; i++) {
		st->procs[i] = (struct proc){ .step = st,
					      .rank = st->launch.first_rank + (int64_t)i,
					      .gpu = st->launch.gpus[i] };
		sim_at(s, s->now + sim_between(s, 200, 20 * MS), K_FORK, st->instance, (int64_t)i,
		       st, NULL);
	}
}

void stepd_fork(struct sim *s, struct simstep *st, size_t local)
{
	struct proc *p = &st->procs[local];
	struct stepd_event e;

	if (!st->stepd || st->killing)
		return;
	stepd_event_init(&e, SE_STARTED);
	e.note.rank = p->rank;
	if (sim_fault(s, F_EXEC_FAILS, 0.0005)) {
		sim_harm(s, st->job, st->attempt);
		e.type = SE_START_FAILED;
		e.note.cause = mo_strdup("exec");
		e.note.text = mo_strdup("no such file");
		e.note.code = 2;
		stepd_event(s, st, &e);
		mo_desc_done(&note_desc, &e.note);
		return;
	}
	if (p->started)
		sim_violation(s, "rank %lld of j-%lld attempt %lld is started twice",
			      (long long)p->rank, (long long)st->job, (long long)st->attempt);
	p->pid = ++s->next_pid;
	p->started = p->alive = p->child = true;
	check_fork(s, p);
	s->nodes[st->node].gpus[p->gpu] = p;
	lives(s, st, 2);
	e.note.pid = p->pid;
	stepd_event(s, st, &e);
	if (p->alive)
		train_started(s, p);
	if (st->stepd && sim_fault(s, F_BIND_FAILS, 0.0003)) {
		sim_harm(s, st->job, st->attempt);
		e.type = SE_BIND_FAILED;
		e.note.cause = mo_strdup("bind");
		e.note.text = mo_strdup("read back other CPUs");
		stepd_event(s, st, &e);
	}
	mo_desc_done(&note_desc, &e.note);
}

/* What it printed last: of every class of failures, or nothing that tells. No draw of its own,
 * so that seeds stay. */
static const char *last_words(const struct sim *s, const struct proc *p)
{
	static const char *const words[] = {
		"last line",
		"RuntimeError: Connection closed by peer",
		"last line",
		"OSError: [Errno 28] No space left on device",
		"HW Exception by GPU node-3 (Agent handle: 0x5) reason :GPU Hang",
		"Memory access fault by GPU node-2. Reason: Page not present",
		"loss or gradient norm is not finite",
		"ran for 600000 milliseconds before timing out",
	};

	if (p->step->job % 4 == 3)
		return words[0];
	return words[(size_t)(s->now / 1000 + p->rank) % ELEMENTSOF(words)];
}

void proc_end(struct sim *s, struct proc *p, int64_t code, int64_t signal)
{
	struct simstep *st = p->step;
	struct stepd_event e;

	if (!p->alive)
		return;
	p->alive = false;
	p->code = code;
	p->signal = signal;
	p->ended_at = s->now;
	p->ended_mono_ns = clock_boot_us(s, st->node) * 1000;
	if (!p->stuck)
		lives(s, st, -1);
	s->nodes[st->node].gpus[p->gpu] = NULL;
	sim_trace(s, "%s: j-%lld.a%lld rank %lld ends, code %lld signal %lld",
		  s->nodes[st->node].name, (long long)st->job, (long long)st->attempt,
		  (long long)p->rank, code == MO_NONE ? -1LL : (long long)code,
		  signal == MO_NONE ? 0LL : (long long)signal);
	train_ended(s, p);
	if (!st->stepd)
		return;
	stepd_event_init(&e, SE_EXIT);
	e.note.rank = p->rank;
	e.note.pid = p->pid;
	e.note.code = code;
	e.note.signal = signal;
	e.note.mono_ns = p->ended_mono_ns;
	mo_strs_add(&e.note.tail, &e.note.n_tail, last_words(s, p));
	stepd_later(s, st, sim_between(s, 20, 200), &e);
	mo_desc_done(&note_desc, &e.note);
}

void proc_signal_ranks(struct sim *s, struct simstep *st)
{
	for (size_t i = 0; i < st->n_procs; i++)
		/* some ignore it until the grace is over */
		if (st->procs[i].alive && !st->procs[i].stuck && !st->procs[i].frozen &&
		    !sim_chance(s, 0.15))
			sim_at(s, s->now + sim_between(s, MS, 2 * S), K_EXIT, st->procs[i].rank,
			       sim_chance(s, 0.5) ? 143 : 0, sim_attempt(s, st->job, st->attempt),
			       NULL);
}

void stepd_stuck(struct sim *s, struct proc *p)
{
	struct stepd_event e;

	if (!p->stuck || !p->alive)
		return;
	stepd_event_init(&e, SE_STUCK);
	e.note.rank = p->rank;
	e.note.pid = p->pid;
	stepd_event(s, p->step, &e);
}

size_t proc_hunt(struct sim *s, struct simstep *st)
{
	size_t n = 0;

	if (st->stepd)
		sim_violation(s, "the agent sweeps j-%lld attempt %lld under a living supervisor",
			      (long long)st->job, (long long)st->attempt);
	for (size_t i = 0; i < st->n_procs; i++) {
		drop_child(s, &st->procs[i]);
		if (st->procs[i].alive && st->procs[i].stuck)
			n++;
		else
			proc_end(s, &st->procs[i], MO_NONE, SIGKILL);
	}
	return n;
}

void step_lost(struct sim *s, struct simstep *st)
{
	struct attempt *a = sim_past_attempt(s, st->job, st->attempt);

	if (a)
		a->lossy = true;
	st->stepd = st->hung = false;
	notes_close(st);
	st->instance++;
	for (size_t i = 0; i < st->n_procs; i++) {
		drop_child(s, &st->procs[i]);
		proc_end(s, &st->procs[i], MO_NONE, SIGKILL);
	}
}
