/* The step supervisor's decisions: the ranks of one attempt on one node, from launch to "gone".
 *
 * stepd_core_decide() is called by moe-stepd for each thing that happened, one after the other, and
 * by the simulator; effects are carried out in their order before the next event. What each event
 * does in each state is the table at the end, which stepd_core_decide() runs by and docs/states.md
 * prints: an event without a cell does nothing there. stepd_facts.c has what ranks say of
 * themselves.
 *
 * Invariants: notes are numbered from 1 without gaps; NOTE_GONE is written exactly once, last, and
 * only when no process of the step is left; every rank that started has one NOTE_EXIT before it.
 *
 * What never happens: a touch of the world; a rank that is started a second time (a new attempt is
 * a new supervisor); a kill that is called done because a signal was sent: only SE_EMPTY proves
 * it, and until it comes the kill is repeated, ever more rarely. */
#include "agent/core/stepd/stepd_core_state.h"

#include <signal.h>

#include "lib/base/assert.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

#define KILL_AGAIN_US 1000000      /* a tree that forks while it is killed; doubles */
#define KILL_AGAIN_MAX_US 16000000 /* of processes that cannot die */
#define STUCK_MAX 64               /* unkillable pids that are reported */

struct stepd_core *stepd_core_new(const struct launch *l)
{
	struct stepd_core *s = mo_alloc(sizeof(*s));

	mo_desc_init(&launch_desc, &s->launch);
	mo_desc_copy(&launch_desc, &s->launch, l);
	mo_desc_init(&note_desc, &s->sample);
	mo_desc_init(&note_desc, &s->checkpoint);
	s->room_us = (int64_t)SAMPLES_BURST * SAMPLE_US;
	s->n_ranks = l->n_local > 0 ? (size_t)l->n_local : 0;
	s->ranks = mo_alloc_array(s->n_ranks + 1, sizeof(*s->ranks));
	for (size_t i = 0; i < s->n_ranks; i++) {
		mo_desc_init(&rank_progress_desc, &s->ranks[i].progress);
		s->ranks[i].progress.rank = l->first_rank + (int64_t)i;
	}
	s->phase = PHASE_NONE;
	s->phase_rank = SIZE_MAX;
	s->sample_last = s->saving = s->resumed = MO_NONE;
	mo_assert(s->state == NEW && s->n_started == 0);
	return s;
}

struct stepd_core *stepd_core_free(struct stepd_core *s)
{
	if (!s)
		return NULL;
	mo_desc_done(&launch_desc, &s->launch);
	mo_desc_done(&note_desc, &s->sample);
	mo_desc_done(&note_desc, &s->checkpoint);
	free(s->saves_to);
	free(s->saving_to);
	free(s->ranks);
	free(s->stuck);
	free(s);
	return NULL;
}

void stepd_out_done(struct stepd_out *out)
{
	for (size_t i = 0; i < out->n_effects; i++)
		mo_desc_done(&note_desc, &out->effects[i].note);
	free(out->effects);
	*out = (struct stepd_out){ 0 };
}

bool note_urgent(const struct note *n)
{
	bool exit = n->kind == NOTE_EXIT &&
		    !mo_streq(n->cause,
			      /* the killed ones travel with the proof that all are gone, a moment
			 * later */
			      "killed");

	return exit || n->kind == NOTE_REFUSED || n->kind == NOTE_LOST || n->kind == NOTE_GONE ||
	       n->kind == NOTE_RUNNING || n->kind == NOTE_UNKILLABLE || n->kind == NOTE_STOPPING;
}

static void release_ports(struct stepd_core *s, struct stepd_out *out)
{
	if (s->ports_held)
		stepd_effect(out, SX_RELEASE_PORTS);
	s->ports_held = false;
}

static void go_gone(struct stepd_core *s, struct stepd_out *out, const char *text)
{
	mo_assert(s->state != GONE); /* NOTE_GONE is written once */
	release_ports(s, out);
	mo_assert(!s->ports_held);
	s->state = GONE;
	mo_str_set(&stepd_core_note(s, out, NOTE_GONE, NULL)->text, text);
	stepd_effect(out, SX_DONE);
}

static void kill_tree(struct stepd_core *s, int64_t now, struct stepd_out *out)
{
	mo_assert(s->state != NEW && s->state != GONE);
	release_ports(s, out);
	s->state = DOWN;
	s->kill_again_us = KILL_AGAIN_US;
	s->kill_at = now + s->kill_again_us;
	stepd_effect(out, SX_KILL_TREE);
}

static bool has_files(const struct launch *l)
{
	for (size_t i = 0; i < l->n_env; i++)
		if (l->env[i].file)
			return true;
	return false;
}

/* Files of variables and the engine's own configuration are read where the ranks will run, before
 * any of them. */
static void go_up(struct stepd_core *s, struct stepd_out *out)
{
	bool read = s->launch.config || s->launch.n_inputs || has_files(&s->launch);

	mo_assert(s->state == PREPARING || s->state == PORTS || s->state == NEW);
	s->state = read ? READING : UP;
	stepd_effect(out, read ? SX_READ_CONFIG : SX_FORK_ALL);
}

static void go_on(struct stepd_core *s, struct stepd_out *out)
{
	if (!s->launch.hold_ports) {
		go_up(s, out);
		return;
	}
	s->state = PORTS;
	stepd_effect(out, SX_HOLD_PORTS);
}

static void on_launch(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		      struct stepd_out *out)
{
	int64_t limit = s->launch.prepare_limit_us;

	mo_assert(s->state == NEW);
	if (!s->launch.n_prepare) {
		go_on(s, out);
		return;
	}
	s->state = PREPARING;
	s->prepare_due = limit > 0 && limit < INT64_MAX - now ? now + limit : INT64_MAX;
	stepd_effect(out, SX_PREPARE);
}

/* No rank was started, and none will be; what the preparation has started goes. */
static void refuse_prepare(struct stepd_core *s, const struct note *fact, int64_t now,
			   struct stepd_out *out)
{
	struct note *n = stepd_core_note(s, out, NOTE_REFUSED, fact);

	n->rank = MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup("prepare");
	if (!n->text)
		n->text = mo_printf("engine.prepare has not ended after %lld s and was killed",
				    (long long)(s->launch.prepare_limit_us / 1000000));
	s->refused = true;
	kill_tree(s, now, out);
}

static void on_prepared(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			struct stepd_out *out)
{
	if (e->ok)
		go_on(s, out);
	else
		refuse_prepare(s, &e->note, now, out);
}

static void on_ports(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		     struct stepd_out *out)
{
	mo_assert(s->state == PORTS && !s->ports_held);
	if (e->ok) {
		s->ports_held = true;
		go_up(s, out);
		return;
	}
	struct note *n = stepd_core_note(s, out, NOTE_REFUSED, &e->note);
	n->rank = MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup("port-busy");
	go_gone(s, out, "no rank was started: a port of the job is in use");
}

/* No rank was started, and none will be; who reads is in the tree. */
static void on_config_read(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out)
{
	if (e->ok) {
		s->state = UP;
		stepd_effect(out, SX_FORK_ALL);
		return;
	}
	struct note *n = stepd_core_note(s, out, NOTE_REFUSED, &e->note);
	if (!n->cause)
		n->cause = mo_strdup("config");
	s->refused = true;
	kill_tree(s, now, out);
}

static bool rank_started(struct stepd_core *s, const struct note *fact, struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, fact);

	if (!r || r->started || r->failed)
		return false;
	r->started = true;
	r->pid = fact->pid;
	mo_assert(s->n_started < s->n_ranks);
	stepd_core_note(s, out, NOTE_STARTED, fact);
	if (++s->n_started == s->n_ranks && !s->refused) {
		release_ports(s, out);
		stepd_core_note(s, out, NOTE_RUNNING, NULL);
	}
	return true;
}

static void on_started(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		       struct stepd_out *out)
{
	rank_started(s, &e->note, out);
}

/* It was forked before the kill and is found now. */
static void on_started_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			    struct stepd_out *out)
{
	if (rank_started(s, &e->note, out))
		kill_tree(s, now, out);
}

/* No process of this rank is left; true: reported for the first time. */
static bool rank_failed(struct stepd_core *s, const struct note *fact)
{
	struct local_rank *r = stepd_core_rank_of(s, fact);

	if (!r || r->failed || r->started)
		return false;
	r->failed = true;
	s->n_ended++;
	mo_assert(s->n_ended <= s->n_ranks);
	return true;
}

static void refuse_rank(struct stepd_core *s, const struct note *fact, const char *cause,
			int64_t now, struct stepd_out *out)
{
	struct note *n = stepd_core_note(s, out, NOTE_REFUSED, fact);

	s->refused = true;
	if (!n->cause)
		n->cause = mo_strdup(cause);
	kill_tree(s, now, out);
}

static void on_start_failed(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			    struct stepd_out *out)
{
	if (rank_failed(s, &e->note))
		refuse_rank(s, &e->note, "exec", now, out);
}

static void on_start_failed_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
				 struct stepd_out *out)
{
	rank_failed(s, &e->note);
}

/* The rank runs, but not where it was asked for; it is killed with the rest. */
static void on_bind_failed(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out)
{
	const struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (r && !r->failed)
		refuse_rank(s, &e->note, "bind", now, out);
}

static const char *exit_cause(const struct stepd_core *s, const struct note *n)
{
	bool signalled = n->signal != MO_NONE && n->signal > 0;

	if (s->state == DOWN && n->signal == SIGKILL)
		return "killed";
	if (s->stopped)
		return "stopped";
	return signalled ? "signalled" : "exited";
}

static bool rank_exited(struct stepd_core *s, const struct note *fact, struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, fact);

	if (!r || r->exited || r->failed)
		return false;
	r->exited = true;
	struct note *n = stepd_core_note(s, out, NOTE_EXIT, fact);
	if (n->pid == MO_NONE)
		n->pid = r->started ? r->pid : MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup(exit_cause(s, n));
	n->iteration = r->progress
			       /* the last word of its progress: beats may not have carried it */
			       .iteration;
	s->n_ended++;
	mo_assert(s->n_ended <= s->n_ranks);
	return true;
}

/* What the ranks left behind is killed: nothing of it is of use any more. */
static void on_exit_of_rank(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			    struct stepd_out *out)
{
	if (rank_exited(s, &e->note, out) && s->n_ended == s->n_ranks)
		kill_tree(s, now, out);
}

static void on_exit_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out)
{
	rank_exited(s, &e->note, out);
}

static void tell_outside(struct stepd_core *s, const struct stepd_event *e, struct stepd_out *out)
{
	if (e->outside)
		mo_str_set(&stepd_core_note(s, out, NOTE_STOPPING, NULL)->text,
			   "its supervisor was told to end by its machine (SIGTERM: systemctl "
			   "stop, or a shutdown)");
}

static int64_t grace_end(const struct stepd_event *e, int64_t now)
{
	return e->grace_us > INT64_MAX - now ? INT64_MAX : now + MO_MAX(e->grace_us, 0);
}

static void on_stop_early(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out)
{
	tell_outside(s, e, out);
	go_gone(s, out, "stopped before any rank was started");
}

static void on_stop_unforked(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			     struct stepd_out *out)
{
	tell_outside(s, e, out);
	kill_tree(s, now, out);
}

static void on_stop(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out)
{
	tell_outside(s, e, out);
	s->state = STOPPING;
	s->stopped = true;
	s->kill_at = grace_end(e, now);
	stepd_effect(out, SX_SIGNAL_RANKS)->signal = e->signal > 0 ? e->signal : SIGTERM;
	mo_assert(s->kill_at >= now);
}

static void on_stop_again(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out)
{
	s->kill_at = MO_MIN(s->kill_at, grace_end(e, now));
	mo_assert(s->state == STOPPING && s->stopped);
}

static void on_kill_early(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out)
{
	go_gone(s, out, "killed before any rank was started");
}

static void on_kill(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out)
{
	kill_tree(s, now, out);
}

static void on_empty(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		     struct stepd_out *out)
{
	for (size_t i = 0; i < s->n_ranks; i++) {
		struct local_rank *r = &s->ranks[i];

		if (!r->started || r->exited)
			continue;
		r->exited = true;
		struct note *n = stepd_core_note(s, out, NOTE_EXIT, NULL);
		n->rank = r->progress.rank;
		n->pid = r->pid;
		n->cause = mo_strdup(
			"unknown"); /* the status went to nobody: reported rather than left out */
	}
	go_gone(s, out,
		s->n_started ? "every process of the step was reaped" : "no rank was started");
}

static void on_binding(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		       struct stepd_out *out)
{
	const struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (r && !r->exited)
		stepd_core_note(s, out, NOTE_BINDING, &e->note);
}

static void on_stuck(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		     struct stepd_out *out)
{
	for (size_t i = 0; i < s->n_stuck; i++)
		if (s->stuck[i] == e->note.pid)
			return;
	if (s->n_stuck == STUCK_MAX)
		return;
	mo_ints_add(&s->stuck, &s->n_stuck, e->note.pid);
	stepd_core_note(s, out, NOTE_UNKILLABLE, &e->note);
	mo_assert(s->n_stuck <= STUCK_MAX);
}

static void on_tick_preparing(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			      struct stepd_out *out)
{
	if (now >= s->prepare_due)
		refuse_prepare(s, NULL, now, out);
}

static void on_tick(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out)
{
	if (s->pending && now >= s->sample_due)
		stepd_core_flush_sample(s, out);
}

static void on_tick_stopping(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			     struct stepd_out *out)
{
	on_tick(s, e, now, out);
	if (now >= s->kill_at)
		kill_tree(s, now, out);
}

static void on_tick_down(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out)
{
	on_tick(s, e, now, out);
	if (now < s->kill_at)
		return;
	s->kill_again_us = MO_MIN(s->kill_again_us * 2, KILL_AGAIN_MAX_US);
	s->kill_at = now + s->kill_again_us;
	stepd_effect(out, SX_KILL_TREE);
	mo_assert(s->kill_again_us <= KILL_AGAIN_MAX_US);
}

/* ---- the table ---- */

/* What an event does, and how docs/states.md says it. */
struct cell {
	stepd_fn fn;
	const char *text;
};

static const struct cell launch = { on_launch,
				    "preparing where there is engine.prepare, else as prepared" };
static const struct cell prepared = {
	on_prepared,
	"it ended with 0: ports, or without any to hold as ports held; else: refused, kill, down"
};
static const struct cell ports = { on_ports,
				   "held: reading where files of variables or the engine's "
				   "configuration are to be read, "
				   "else up, and all ranks are forked; in use: refused, gone" };
static const struct cell config_read = {
	on_config_read,
	"read, or not to be had: up, all ranks are forked; else: refused, kill, down"
};
static const struct cell started = {
	on_started, "started; running with the last one, and the ports are let go"
};
static const struct cell started_late = { on_started_late, "started, and the kill begins anew" };
static const struct cell start_failed = { on_start_failed, "refused, kill, down" };
static const struct cell start_failed_late = { on_start_failed_late, "it counts as ended" };
static const struct cell bind_failed = { on_bind_failed, "refused, kill, down" };
static const struct cell binding = { on_binding, "reported" };
static const struct cell rank_exit = { on_exit_of_rank,
				       "reported; after the last one: kill, down" };
static const struct cell exit_late = { on_exit_late, "reported" };
static const struct cell stop_early = { on_stop_early, "gone" };
static const struct cell stop_unforked = { on_stop_unforked, "kill, down" };
static const struct cell stop = { on_stop, "signal to the ranks, stopping" };
static const struct cell stop_again = {
	on_stop_again, "the earlier end of grace counts: a repeated order never gives more time"
};
static const struct cell kill_early = { on_kill_early, "gone" };
static const struct cell kill_all = { on_kill, "kill, down" };
static const struct cell kill_again = { on_kill, "kill again" };
static const struct cell empty = {
	on_empty, "who started and has no exit is reported with cause unknown; gone"
};
static const struct cell stuck = { on_stuck, "reported, once of each" };
static const struct cell tick_preparing = {
	on_tick_preparing, "engine.prepare has had its time: refused, kill, down"
};
static const struct cell tick = { on_tick, "a sample that waited is reported" };
static const struct cell tick_stopping = {
	on_tick_stopping, "a sample that waited is reported; at the end of grace: kill, down"
};
static const struct cell tick_down = {
	on_tick_down, "a sample that waited is reported; kill again, each time after twice as long"
};
static const struct cell sample = { stepd_core_on_sample, "reported once of each iteration" };
static const struct cell phase = { stepd_core_on_phase,
				   "noted when the lowest rank that reports any changes it" };
static const struct cell ready = { stepd_core_on_ready, "as a phase, `train` when it names none" };
static const struct cell checkpoint = { stepd_core_on_checkpoint, "reported once" };
static const struct cell saving = { stepd_core_on_saving, "reported once of each place" };
static const struct cell resumed = { stepd_core_on_resumed, "reported once" };

#define FACTS \
	[SE_SAMPLE] = &sample, [SE_PHASE] = &phase, [SE_CHECKPOINT] = &checkpoint, \
	[SE_SAVING] = &saving, [SE_RESUMED] = &resumed, [SE_READY] = &ready

/* NULL: it is ignored. */
static const struct cell *const table[_STATE_N][_SE_N] = {
	[NEW] = {
		[SE_LAUNCH] = &launch,
		[SE_STOP] = &stop_early, [SE_KILL] = &kill_early, [SE_STUCK] = &stuck,
	},
	[PREPARING] = {
		[SE_PREPARED] = &prepared,
		[SE_STOP] = &stop_unforked, [SE_KILL] = &kill_all, [SE_STUCK] = &stuck,
		[SE_TICK] = &tick_preparing,
	},
	[PORTS] = {
		[SE_PORTS] = &ports,
		[SE_STOP] = &stop_early, [SE_KILL] = &kill_early, [SE_STUCK] = &stuck,
	},
	[READING] = {
		[SE_CONFIG_READ] = &config_read,
		[SE_STOP] = &stop_unforked, [SE_KILL] = &kill_all, [SE_STUCK] = &stuck,
	},
	[UP] = {
		[SE_STARTED] = &started, [SE_START_FAILED] = &start_failed,
		[SE_BIND_FAILED] = &bind_failed, [SE_BINDING] = &binding, [SE_EXIT] = &rank_exit,
		[SE_STOP] = &stop, [SE_KILL] = &kill_all, [SE_EMPTY] = &empty, [SE_STUCK] = &stuck,
		[SE_TICK] = &tick, FACTS,
	},
	[STOPPING] = {
		[SE_STARTED] = &started, [SE_START_FAILED] = &start_failed,
		[SE_BIND_FAILED] = &bind_failed, [SE_EXIT] = &rank_exit,
		[SE_STOP] = &stop_again, [SE_KILL] = &kill_all, [SE_EMPTY] = &empty,
		[SE_STUCK] = &stuck, [SE_TICK] = &tick_stopping, FACTS,
	},
	[DOWN] = {
		[SE_STARTED] = &started_late, [SE_START_FAILED] = &start_failed_late,
		[SE_EXIT] = &exit_late,
		[SE_KILL] = &kill_again, [SE_EMPTY] = &empty, [SE_STUCK] = &stuck,
		[SE_TICK] = &tick_down, FACTS,
	},
};

static const char *const state_names[_STATE_N] = {
	[NEW] = "new", [PREPARING] = "preparing", [PORTS] = "ports", [READING] = "reading",
	[UP] = "up",   [STOPPING] = "stopping",   [DOWN] = "down",   [GONE] = "gone",
};

static const char *const event_names[_SE_N] = {
	[SE_LAUNCH] = "launch",
	[SE_PREPARED] = "engine.prepare ended",
	[SE_PORTS] = "ports",
	[SE_CONFIG_READ] = "the engine's configuration was read",
	[SE_STARTED] = "a rank started",
	[SE_START_FAILED] = "a rank could not be started",
	[SE_BIND_FAILED] = "a rank is bound otherwise (`strict`)",
	[SE_BINDING] = "a later check of a rank's threads",
	[SE_EXIT] = "a rank ended",
	[SE_STOP] = "stop",
	[SE_KILL] = "kill",
	[SE_EMPTY] = "no process is left",
	[SE_STUCK] = "a process cannot be killed",
	[SE_TICK] = "time",
	[SE_SAMPLE] = "a sample",
	[SE_PHASE] = "a phase",
	[SE_CHECKPOINT] = "a checkpoint",
	[SE_SAVING] = "a save begins",
	[SE_RESUMED] = "resumed",
	[SE_READY] = "ready",
};

static const struct cell *cell_of(int state, int event)
{
	bool known = state >= 0 && state < _STATE_N && event >= 0 && event < _SE_N;

	return known ? table[state][event] : NULL;
}

const char *stepd_state_name(int state)
{
	return state >= 0 && state < _STATE_N ? state_names[state] : NULL;
}

const char *stepd_event_name(int event)
{
	return event >= 0 && event < _SE_N ? event_names[event] : NULL;
}

const char *stepd_follows(int state, int event)
{
	const struct cell *c = cell_of(state, event);

	return c ? c->text : NULL;
}

void stepd_core_decide(struct stepd_core *s, const struct stepd_event *e, int64_t now_us,
		       struct stepd_out *out)
{
	const struct cell *c = cell_of((int)s->state, e->type);

	assert(e->type >= 0 && e->type < _SE_N && s->state < _STATE_N);
	if (c)
		c->fn(s, e, now_us, out);
}

int64_t stepd_core_deadline(const struct stepd_core *s)
{
	int64_t d = INT64_MAX;

	if (s->state == GONE)
		return d;
	if (s->pending)
		d = s->sample_due;
	if (s->state == PREPARING)
		d = s->prepare_due;
	if (s->state == STOPPING || s->state == DOWN)
		d = MO_MIN(d, s->kill_at);
	mo_assert(s->state != GONE);
	return d;
}

void stepd_core_progress(const struct stepd_core *s, size_t i, struct rank_progress *ret)
{
	assert(i < s->n_ranks);
	*ret = s->ranks[i].progress;
}

int64_t stepd_core_left_out(const struct stepd_core *s)
{
	return s->left_out;
}
