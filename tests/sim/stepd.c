/* moe-stepd's shell in virtual time; its processes: proc.c. */
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

static void run_effect(struct sim *s, struct simstep *st, const struct stepd_effect *x)
{
	switch (x->type) {
	case SX_NAMESPACE: make_namespace(s, st); break;
	case SX_HOLD_PORTS: hold_ports(s, st); break;
	case SX_READ_CONFIG: read_files(s, st); break;
	case SX_FORK_ALL: proc_fork_all(s, st); break;
	case SX_SIGNAL_RANKS: proc_signal_ranks(s, st); break;
	case SX_KILL_TREE: proc_kill_all(s, st); break;
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

/* The sample whose note it was about to write, and the one that waits for the next. */
static void lose_two(struct sim *s, const struct simstep *st)
{
	struct attempt *a = sim_attempt(s, st->job, st->attempt);

	if (a)
		a->in_hands = 2;
}

static void end_turn(struct sim *s, struct simstep *st)
{
	if (!st->stepd)
		return;
	if (!notes_flush(s, st)) {
		if (st->last_kind == NOTE_SAMPLE)
			lose_two(s, st);
		stepd_kill(s, st);
	} else if (st->done && !notes_wait(st)) {
		st->stepd = false;
		line_end(s, st);
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
		if (st->stepd && sim_fault(s, F_STEPD_BETWEEN_EFFECTS, 0.0004)) {
			if (e->type == SE_SAMPLE)
				lose_two(s, st);
			stepd_kill(s, st);
		}
	}
	stepd_out_done(&out);
	end_turn(s, st);
	if (e->type == SE_EXIT)
		proc_look_empty(s, st, 100);
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

bool stepd_start(struct sim *s, struct simstep *st)
{
	struct stepd_event e;

	/* the lock is held: the second one exits without a word */
	if (st->stepd)
		return true;
	st->instance++;
	if (!notes_open(s, st))
		return false;
	st->stepd = true;
	st->done = false;
	st->last_kind = -1;
	st->core = stepd_core_free(st->core); /* of one that died before its first note */
	st->core = stepd_core_new(&st->launch, true);
	stepd_event_init(&e, SE_LAUNCH);
	stepd_later(s, st, sim_between(s, MS, 10 * MS), &e);
	return true;
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
	line_end(s, st);
}

void stepd_hang(struct sim *s, struct simstep *st, int64_t for_us)
{
	if (!st->stepd || st->hung)
		return;
	sim_trace(s, "%s: supervisor of j-%lld.a%lld is stopped", s->nodes[st->node].name,
		  (long long)st->job, (long long)st->attempt);
	st->hung = true;
	st->hung_at = s->now;
	sim_at(s, s->now + for_us, K_HUNG_END, st->instance, 0, st, NULL);
}

void stepd_hang_end(struct sim *s, struct simstep *st)
{
	struct stepd_event *held = TAKE_PTR(st->held);
	size_t n = st->n_held;

	st->n_held = 0;
	if (st->stepd && st->hung) {
		st->hung = false;
		st->hung_at = s->now;
		if (st->asked)
			line_up(s, st);
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
	free(st->step_id);
	free(st);
}
