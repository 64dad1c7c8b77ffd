/* The step supervisor's decisions (moe-stepd): ranks of one attempt on one node. Pure; stepd and
 * the simulator are its shells.
 *   launch -> [namespace] -> [prepare] -> [hold ports] -> [read files and configuration]
 *   -> fork all
 *   -> each exec proved + read back -> running -> exits -> gone
 *   stop: signal main pids, SIGKILL the whole tree after grace
 *   kill: SIGKILL the whole tree at once
 * docs/states.md prints what each event does in each state, from the table that stepd_core_decide()
 * runs by. The shell: (1) fills time and mono_ns of a note that has MO_NONE there; (2) writes
 * the effects of one event in order, notes before anything they announce; (3) for one rank
 * reports SE_STARTED or SE_START_FAILED before SE_EXIT, and no SE_EXIT for a child that never
 * reached exec; (4) reports SE_EMPTY only after every exit status was taken, and again after
 * each SX_KILL_TREE that found nothing to kill. */
#pragma once
#include "lib/model/message.h"

struct stepd_core;
enum stepd_event_type {
	SE_LAUNCH, /* begin: ports are bound by the shell first */
	/* ok: the step's own mount namespace was made, or cannot be and the step does without it:
	 * three nets do; !ok: text: what was asked of it is not so, and nothing may run outside */
	SE_NAMESPACE,
	/* ok: engine.prepare ended with 0; !ok: text, code, tail: why no rank can start */
	SE_PREPARED,
	SE_PORTS, /* ok: ports held (or not wanted); !ok: busy */
	/* ok: the files of variables were read, and the engine's configuration, or that cannot be;
	 * !ok: rank, cause, text: why no rank can start */
	SE_CONFIG_READ,
	SE_STARTED,      /* rank, pid, start_time, cpus..: exec proved and read back */
	SE_START_FAILED, /* rank, cause, text, code = errno */
	SE_BIND_FAILED,  /* rank, text: verify strict */
	SE_BINDING,      /* rank, bind_verified, bind_note: a later check of its threads */
	SE_EXIT,         /* rank, code/signal, mono_ns, tail */
	SE_STOP,         /* signal, grace_us */
	SE_KILL,
	SE_EMPTY, /* ECHILD and populated 0 */
	SE_STUCK, /* pid: D state with SIGKILL pending */
	SE_TICK,
	/* facts of rank's lines or datagrams (note's fields) */
	SE_SAMPLE,
	SE_PHASE,
	SE_CHECKPOINT,
	SE_SAVING,
	SE_RESUMED,
	SE_READY,
	_SE_N
};
/* outside: of SE_STOP: nobody ordered it through the controller, which has to hear of it. */
/* note: rank, pid, ... of the fact */
struct stepd_event {
	int type;
	bool ok, outside;
	int64_t signal, grace_us;
	struct note note;
	double busy_ms; /* SAMPLE: no part of the note; 0, MO_NONE_F: not said */
};
/* NAMESPACE: make it, answer with SE_NAMESPACE. PREPARE: run launch.prepare once, answer with
 * SE_PREPARED. READ_CONFIG: likewise, SE_CONFIG_READ. SIGNAL_RANKS: every main pid not yet reaped.
 * KILL_TREE may come repeatedly, also when nothing is left. DONE: nothing follows; stepd may exit.
 */
enum stepd_effect_type {
	SX_HOLD_PORTS,
	SX_FORK_ALL,
	SX_RELEASE_PORTS,
	SX_SIGNAL_RANKS,
	SX_KILL_TREE,
	SX_NOTE,
	SX_DONE,
	SX_PREPARE,
	SX_READ_CONFIG,
	SX_NAMESPACE
};
/* NOTE: note with n given; urgent = exits, refused, lost, gone, running */
struct stepd_effect {
	int type;
	int64_t signal;
	struct note note;
};
struct stepd_out {
	struct stepd_effect *effects;
	size_t n_effects;
};

/* own_namespace: ranks get a mount namespace of the step (spool.own_namespace). */
struct stepd_core *stepd_core_new(const struct launch *l, bool own_namespace);
struct stepd_core *stepd_core_free(struct stepd_core *s);
MO_DEFINE_CLEANUP(struct stepd_core, stepd_core_free)
void stepd_core_decide(struct stepd_core *s, const struct stepd_event *e, int64_t now_us,
		       struct stepd_out *out);
/* The table by which it runs: names are NULL past the last, what follows is NULL where nothing
 * does. */
const char *stepd_state_name(int state);
const char *stepd_event_name(int event);
const char *stepd_follows(int state, int event);
/* now_us of the next SE_TICK; INT64_MAX none */
int64_t stepd_core_deadline(const struct stepd_core *s);
void stepd_out_done(struct stepd_out *out);
/* Progress of local rank i (iteration MO_NONE = none yet). */
void stepd_core_progress(const struct stepd_core *s, size_t i, struct rank_progress *ret);
/* Iterations whose samples were left out because they came faster than 1,000 a second (20,000 at
 * once pass). */
int64_t stepd_core_left_out(const struct stepd_core *s);
/* Phases, saves and resumes that were: they came faster than 100 a second (5,000 at once pass). */
int64_t stepd_core_words_left(const struct stepd_core *s);
/* must leave the node at once: exit (not of what stepd killed itself), refused, lost, gone,
 * running, unkillable */
bool note_urgent(const struct note *n);
