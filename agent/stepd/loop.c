/* The turn: (1) every ready source queues events (wake.h), deaths in the order they happened in;
 * (2) the core answers each event with effects, carried out in order; (3) all notes of the turn go
 * to the journal in one write; (4) agents are notified. One timer serves the core's deadline and
 * the periodic work. */
#include <signal.h>
#include "agent/core/text/lines.h"
#include "agent/stepd/loop.h"
#include "agent/stepd/config.h"
#include "agent/stepd/exec.h"
#include "agent/stepd/files.h"
#include "agent/stepd/hook.h"
#include "agent/stepd/journal.h"
#include "agent/stepd/link.h"
#include "agent/stepd/namespace.h"
#include "agent/stepd/output.h"
#include "agent/stepd/ports.h"
#include "agent/stepd/process.h"
#include "agent/stepd/ranks.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/threads.h"
#include "agent/stepd/tree.h"
#include "agent/stepd/wake.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/proc.h"

static void on_time(struct stepd *s)
{
	int64_t now = mo_clock_boot_us();
	if (now >= stepd_core_deadline(s->core))
		stepd_queue(s, SE_TICK, NULL);
	if (now < s->tick_at_us)
		return;
	s->tick_at_us = INT64_MAX;
	ranks_settle(s, true);
	namespace_tick(s);
	files_tick(s);
	config_tick(s);
	output_tick(s);
	tree_tick(s);
	link_tick(s);
	threads_tick(s);
}

static void on_child(struct stepd *s)
{
	s->child_died = true;
}

/* The ranks get their planned stop. */
static void on_end(struct stepd *s)
{
	struct stepd_event *e = stepd_queue(s, SE_STOP, NULL);

	e->outside = true;
	e->signal = s->spool.launch.stop_signal > 0 ? s->spool.launch.stop_signal : SIGTERM;
	e->grace_us = MO_MAX(s->spool.launch.stop_grace_us, 0);
}

static void hold_ports(struct stepd *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = ports_hold(s, &err);
	struct stepd_event *e = stepd_queue(s, SE_PORTS, NULL);
	e->ok = r == 0;
	if (r == 0)
		return;
	e->note.code = -r;
	e->note.text = mo_strdup(mo_error_text(&err, r));
}

static void put_note(struct stepd *s, struct note *n)
{
	hook_note(s, n);
	if (n->time == MO_NONE)
		n->time = mo_clock_wall_us();
	if (n->mono_ns == MO_NONE)
		n->mono_ns = mo_clock_mono_ns();
	journal_add(s, n);
}

/* What was not read, or not reported: counted, and said at the end. */
static void say_limits(struct stepd *s)
{
	_cleanup_(mo_freep) char *rules =
		lines_gave_up(s->lines) > 0 ? lines_gave_up_rules(s->lines) : NULL;
	if (rules)
		mo_log(MO_WARNING, NULL, NULL,
		       "rules of the engine file gave up on lines, their patterns backtrack too "
		       "much: %s",
		       rules);
	if (stepd_core_left_out(s->core) > 0)
		mo_log(MO_NOTICE, NULL, NULL,
		       "%lld iterations came faster than 1,000 a second: their metrics are left "
		       "out",
		       (long long)stepd_core_left_out(s->core));
	if (stepd_core_words_left(s->core) > 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "%lld phases, saves and resumes came faster than 100 a second: they are "
		       "left out; what does the program announce?",
		       (long long)stepd_core_words_left(s->core));
}

static void carry_out(struct stepd *s, struct stepd_effect *x)
{
	switch (x->type) {
	case SX_NAMESPACE: namespace_start(s); break;
	case SX_PREPARE: hook_start(s); break;
	case SX_HOLD_PORTS: hold_ports(s); break;
	case SX_READ_CONFIG: config_start(s); break;
	case SX_FORK_ALL: ranks_start(s); break;
	case SX_RELEASE_PORTS: ports_release(s); break;
	case SX_SIGNAL_RANKS: process_signal_ranks(s, (int)x->signal); break;
	case SX_KILL_TREE: tree_kill(s); break;
	case SX_NOTE: put_note(s, &x->note); break;
	case SX_DONE:
		say_limits(s);
		ports_forget(s); /* before anybody reads that the step is gone */
		s->done = true;
		break;
	}
}

static void decide(struct stepd *s)
{
	for (size_t i = 0; i < s->n_queue; i++) { /* effects may queue more */
		struct stepd_event e = s->queue[i];
		struct stepd_out out = { 0 };
		stepd_core_decide(s->core, &e, mo_clock_boot_us(), &out);
		for (size_t k = 0; k < out.n_effects; k++)
			carry_out(s, &out.effects[k]);
		stepd_out_done(&out);
		mo_desc_done(&note_desc, &e.note);
	}
	free(s->queue); /* MO_GROW's storage rule: a counter set back needs fresh storage */
	s->queue = NULL;
	s->n_queue = 0;
}

/* Everything that has died. */
static void reap(struct stepd *s)
{
	for (;;) {
		siginfo_t si = { 0 };

		if (mo_proc_wait(P_ALL, 0, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0)
			return;
		if (!hook_reaped(s, &si) && !files_reaped(s, &si) && !config_reaped(s, &si) &&
		    !exec_reaped(s, &si))
			ranks_reaped(s, &si);
	}
}

void stepd_turn(struct stepd *s)
{
	if (s->child_died) {
		s->child_died = false;
		reap(s);
	}
	do {
		tree_check_empty(s);
		decide(s);
		/* a kill that found nothing: reported in the same turn */
	} while (s->killing && !s->empty_reported && tree_is_empty(s));
	ranks_settle(s, false); /* before anybody reads that they run */
	journal_flush(s);
	link_turn(s);
	wake_at(s, MO_MIN(s->tick_at_us, stepd_core_deadline(s->core)));
}

int stepd_open_loop(struct stepd *s, struct mo_error *err)
{
	static const struct wake_calls calls = {
		.on_time = on_time,
		.on_child = on_child,
		.on_end = on_end,
	};

	s->tick_at_us = INT64_MAX;
	return wake_open(s, &calls, err);
}

bool stepd_is_over(const struct stepd *s)
{
	return s->done && s->journal.pending.len == 0;
}

int stepd_run(struct stepd *s, struct mo_error *err)
{
	int r = 0;

	while (r == 0) {
		stepd_turn(s);
		if (stepd_is_over(s))
			return 0;
		r = wake_wait(s, err);
	}
	return r;
}
