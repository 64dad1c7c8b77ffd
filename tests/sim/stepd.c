/* moe-stepd's shell in virtual time and the processes it owns. Main processes die with it
 * (PDEATHSIG); their children live on until the tree is killed or swept. */
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "tests/sim/check.h"
#include "tests/sim/notes.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

void stepd_event_init(struct stepd_event *e, int type)
{
	memset(e, 0, sizeof(*e));
	e->type = type;
	mo_desc_init(&note_desc, &e->note);
}

static void arm(struct sim *s, struct simstep *st)
{
	int64_t at = st->core ? stepd_core_deadline(st->core) : INT64_MAX;

	if (!st->stepd || at == INT64_MAX)
		return;
	at = clock_true(s, st->node, at);
	if ((st->tick_at > s->now && st->tick_at <= at))
		return;
	st->tick_at = MO_MAX(at, s->now + 1);
	sim_at(s, st->tick_at, K_STEP_TICK, st->instance, 0, st, NULL);
}

void stepd_later(struct sim *s, struct simstep *st, int64_t delay, const struct stepd_event *e)
{
	struct stepd_event *copy = mo_alloc(sizeof(*copy));

	*copy = *e;
	mo_desc_init(&note_desc, &copy->note);
	mo_desc_copy(&note_desc, &copy->note, &e->note);
	sim_at(s, s->now + delay, K_STEP_EVENT, st->instance, 0, st, copy);
}

static void tell_agent(struct sim *s, struct simstep *st, int type, const struct note *n,
		       int64_t delay)
{
	struct agent_event e = { .type = type, .job = st->job, .attempt = st->attempt, .note = n };

	if (s->nodes[st->node].agent)
		agent_later(s, st->node, delay, &e);
}

static void write_note(struct sim *s, struct simstep *st, const struct note *from)
{
	struct note *n = mo_desc_dup(&note_desc, from);

	if (n->mono_ns == MO_NONE)
		n->mono_ns = clock_boot_us(s, st->node) * 1000;
	n->time = clock_wall_us(s, st->node);
	notes_add(st, n);
	sim_trace(s, "%s: j-%lld.a%lld note %lld %s rank %lld %s", s->nodes[st->node].name,
		  (long long)st->job, (long long)st->attempt, (long long)n->n,
		  note_kind_names[n->kind], n->rank == MO_NONE ? -1LL : (long long)n->rank,
		  n->cause ? n->cause : "");
	mo_desc_free(&note_desc, n);
}

static bool empty(const struct simstep *st)
{
	for (size_t i = 0; i < st->n_procs; i++)
		if (st->procs[i].alive || st->procs[i].child ||
		    (st->procs[i].started && !st->procs[i].reported))
			return false;
	return true;
}

/* SE_EMPTY only after every status was taken. */
static void look_empty(struct sim *s, struct simstep *st, int64_t delay)
{
	struct stepd_event e;

	if (!st->stepd || !st->killing || !empty(st))
		return;
	stepd_event_init(&e, SE_EMPTY);
	stepd_later(s, st, delay, &e);
}

static void drop_child(struct sim *s, struct proc *p)
{
	if (p->child)
		sim_job(s, p->step->job)->live--;
	p->child = false;
}

static void kill_all(struct sim *s, struct simstep *st)
{
	for (size_t i = 0; i < st->n_procs; i++) {
		struct proc *p = &st->procs[i];

		drop_child(s, p);
		if (!p->alive || p->stuck)
			continue;
		if (sim_fault(s, F_UNKILLABLE, 0.004)) {
			p->stuck = true;
			sim_harm(s, st->job, st->attempt);
			sim_job(s, st->job)->live--; /* never runs user code again */
			p->stuck_until = s->now + sim_between(s, 5 * S, 40 * S);
			sim_at(s, s->now + S, K_STUCK, st->instance, 0, p, NULL);
			sim_at(s, p->stuck_until, K_STUCK_END, 0, 0, p, NULL);
			continue;
		}
		proc_end(s, p, MO_NONE, SIGKILL);
	}
	st->killing = true;
	look_empty(s, st, 200);
}

static void fork_all(struct sim *s, struct simstep *st)
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
	sim_job(s, st->job)->live += 2;
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
		sim_job(s, st->job)->live--;
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

static void hold_ports(struct sim *s, struct simstep *st)
{
	struct stepd_event e;

	stepd_event_init(&e, SE_PORTS);
	e.ok = !sim_fault(s, F_PORT_BUSY, 0.04);
	if (!e.ok)
		sim_harm(s, st->job, st->attempt);
	stepd_later(s, st, 100, &e);
}

static void make_namespace(struct sim *s, struct simstep *st)
{
	struct stepd_event e;

	stepd_event_init(&e, SE_NAMESPACE);
	e.ok = true;
	stepd_later(s, st, MS, &e);
}

/* Files of users: one may not be there, or its file system answers late or not at all, until the
 * reader is given up. */
static void read_files(struct sim *s, struct simstep *st)
{
	bool hangs = sim_fault(s, F_FILE_HANGS, 0.1);
	struct stepd_event e;

	stepd_event_init(&e, SE_CONFIG_READ);
	e.ok = !hangs && !sim_fault(s, F_FILE_UNREAD, 0.02);
	if (!e.ok) {
		sim_harm(s, st->job, st->attempt);
		e.note.rank = st->launch.first_rank;
		e.note.cause = mo_strdup("exec");
		e.note.text = mo_strdup(hangs ? "was not read within 10 s" : "no such file");
	}
	stepd_later(s, st, hangs ? 10 * S : sim_between(s, MS, 300 * MS), &e);
	mo_desc_done(&note_desc, &e.note);
}

static void signal_ranks(struct sim *s, struct simstep *st)
{
	for (size_t i = 0; i < st->n_procs; i++)
		/* some ignore it until the grace is over */
		if (st->procs[i].alive && !st->procs[i].stuck && !st->procs[i].frozen &&
		    !sim_chance(s, 0.15))
			sim_at(s, s->now + sim_between(s, MS, 2 * S), K_EXIT, st->procs[i].rank,
			       sim_chance(s, 0.5) ? 143 : 0, sim_attempt(s, st->job, st->attempt),
			       NULL);
}

static void run_effect(struct sim *s, struct simstep *st, const struct stepd_effect *x)
{
	switch (x->type) {
	case SX_NAMESPACE: make_namespace(s, st); break;
	case SX_HOLD_PORTS: hold_ports(s, st); break;
	case SX_READ_CONFIG: read_files(s, st); break;
	case SX_FORK_ALL: fork_all(s, st); break;
	case SX_SIGNAL_RANKS: signal_ranks(s, st); break;
	case SX_KILL_TREE: kill_all(s, st); break;
	case SX_NOTE: write_note(s, st, &x->note); break;
	case SX_DONE: {
		if (st->last_kind != NOTE_GONE)
			sim_violation(s, "a supervisor is done without a last note");
		st->done = true;
		break;
	}
	default: break;
	}
}

static void hold_back(struct simstep *st, const struct stepd_event *e)
{
	struct stepd_event *held = MO_GROW(st->held, st->n_held);

	*held = *e;
	mo_desc_init(&note_desc, &held->note);
	mo_desc_copy(&note_desc, &held->note, &e->note);
}

static void end_turn(struct sim *s, struct simstep *st)
{
	if (!st->stepd)
		return;
	if (!notes_flush(s, st)) {
		stepd_kill(s, st);
	} else if (st->done && !notes_wait(st)) {
		st->stepd = false;
		notes_close(st);
	}
}

void stepd_event(struct sim *s, struct simstep *st, const struct stepd_event *e)
{
	struct stepd_out out = { 0 };

	if (!st->stepd)
		return;
	if (st->hung) {
		hold_back(st, e);
		return;
	}
	if (e->type == SE_EXIT)
		for (size_t i = 0; i < st->n_procs; i++)
			st->procs[i].reported |= st->procs[i].rank == e->note.rank;
	stepd_core_decide(st->core, e, clock_boot_us(s, st->node), &out);
	for (size_t i = 0; i < out.n_effects && st->stepd; i++) {
		run_effect(s, st, &out.effects[i]);
		if (st->stepd && sim_fault(s, F_STEPD_BETWEEN_EFFECTS, 0.0004))
			stepd_kill(s, st);
	}
	stepd_out_done(&out);
	end_turn(s, st);
	if (e->type == SE_EXIT)
		look_empty(s, st, 100);
	arm(s, st);
}

void stepd_tick(struct sim *s, struct simstep *st)
{
	struct stepd_event e;

	st->tick_at = 0;
	stepd_event_init(&e, SE_TICK);
	if (st->stepd && !st->hung && stepd_core_deadline(st->core) <= clock_boot_us(s, st->node))
		stepd_event(s, st, &e);
	else if (!st->hung)
		arm(s, st);
	if (st->stepd && !st->hung)
		end_turn(s, st); /* what the disk did not take */
}

void stepd_start(struct sim *s, struct simstep *st)
{
	struct stepd_event e;

	/* the lock is held: the second one exits without a word */
	if (st->stepd)
		return;
	st->instance++;
	if (!notes_open(s, st)) {
		tell_agent(s, st, AE_STEPD_LOST, NULL, sim_between(s, 5 * MS, 200 * MS));
		return;
	}
	st->stepd = true;
	st->done = false;
	st->last_kind = -1;
	st->core = stepd_core_free(st->core); /* of one that died before its first note */
	st->core = stepd_core_new(&st->launch, true);
	stepd_event_init(&e, SE_LAUNCH);
	stepd_later(s, st, sim_between(s, MS, 10 * MS), &e);
	tell_agent(s, st, AE_STEPD_UP, NULL, 12 * MS);
}

void stepd_kill(struct sim *s, struct simstep *st)
{
	if (!st->stepd)
		return;
	sim_harm(s, st->job, st->attempt);
	sim_trace(s, "%s: supervisor of j-%lld.a%lld dies", s->nodes[st->node].name,
		  (long long)st->job, (long long)st->attempt);
	if (st->hung && sim_attempt(s, st->job, st->attempt))
		/* what lay in its pipes is lost */
		sim_attempt(s, st->job, st->attempt)->lossy = true;
	st->stepd = st->hung = false;
	notes_close(st);
	st->instance++;
	for (size_t i = 0; i < st->n_procs; i++)
		if (!st->procs[i].stuck)
			/* PDEATHSIG; nobody takes the status */
			proc_end(s, &st->procs[i], MO_NONE, SIGKILL);
	tell_agent(s, st, AE_STEPD_LOST, NULL, sim_between(s, 5 * MS, 200 * MS));
}

void stepd_hang(struct sim *s, struct simstep *st, int64_t for_us)
{
	if (!st->stepd || st->hung)
		return;
	sim_trace(s, "%s: supervisor of j-%lld.a%lld is stopped", s->nodes[st->node].name,
		  (long long)st->job, (long long)st->attempt);
	st->hung = true;
	st->hung_at = s->now;
	sim_at(s, s->now + 5 * S, K_SILENT, st->instance, 0, st, NULL);
	sim_at(s, s->now + for_us, K_HUNG_END, st->instance, 0, st, NULL);
}

void stepd_silent(struct sim *s, struct simstep *st)
{
	if (st->stepd && st->hung)
		tell_agent(s, st, AE_STEPD_SILENT, NULL, 0);
}

void stepd_hang_end(struct sim *s, struct simstep *st)
{
	struct stepd_event *held = TAKE_PTR(st->held);
	size_t n = st->n_held;

	st->n_held = 0;
	if (st->stepd && st->hung) {
		st->hung = false;
		st->hung_at = s->now;
		tell_agent(s, st, AE_STEPD_UP, NULL, MS);
	}
	for (size_t i = 0; i < n; i++) {
		if (st->stepd && !st->hung)
			stepd_event(s, st, &held[i]);
		else if (sim_attempt(s, st->job, st->attempt))
			sim_attempt(s, st->job, st->attempt)->lossy = true;
		mo_desc_done(&note_desc, &held[i].note);
	}
	free(held);
	arm(s, st);
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

int64_t stepd_sweep(struct sim *s, struct simstep *st)
{
	int64_t until = s->now;

	if (st->stepd)
		sim_violation(s, "the agent sweeps j-%lld attempt %lld under a living supervisor",
			      (long long)st->job, (long long)st->attempt);
	for (size_t i = 0; i < st->n_procs; i++) {
		drop_child(s, &st->procs[i]);
		if (st->procs[i].alive && st->procs[i].stuck)
			until = MO_MAX(until, st->procs[i].stuck_until + 1);
		else
			proc_end(s, &st->procs[i], MO_NONE, SIGKILL);
	}
	return until;
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

void step_free_all(struct sim *s, struct simstep *st)
{
	(void)s;
	stepd_core_free(st->core);
	mo_desc_done(&launch_desc, &st->launch);
	notes_close(st);
	for (size_t i = 0; i < st->n_held; i++)
		mo_desc_done(&note_desc, &st->held[i].note);
	free(st->held);
	free(st->procs);
	free(st);
}
