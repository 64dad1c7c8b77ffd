/* Nodes, the steps on them, their processes: what is there in truth, by its own files. */
#pragma once
#include "agent/core/stepd/stepd_core.h"
#include "agent/core/agent/agent_core.h"
#include "tests/sim/clock.h"

#define NODES 64
#define GPUS 4

struct supervisor;
struct writer;
struct simstep;
struct shell;
struct promised;
/* A rank's process (with its children, which outlive it until the tree is killed). */
struct proc {
	struct simstep *step;
	int64_t rank, gpu, pid;
	bool started, alive, stuck, reported;
	bool frozen; /* stopped by a signal */
	int64_t code, signal, stuck_until;
	int64_t ended_at, ended_mono_ns; /* true time, and by the clock of its node */
	bool child;
};
/* One attempt of a job on one node: spool entry, journal, supervisor, processes. */
struct simstep {
	int node;
	int64_t job, attempt;
	int64_t boot; /* boot it was made in */
	struct launch launch;
	bool spooled;     /* something of it is on disk */
	bool stepd, hung; /* the supervisor lives; it is stopped */
	int64_t hung_at;  /* when it was last stopped or let go on, 0 never */
	struct stepd_core *core;
	char *step_id;           /* by which its processes are found */
	struct writer *writer;   /* its journal, as a supervisor has it (notes.h) */
	struct supervisor *line; /* an agent is connected (line.c) */
	bool asked;              /* it owes that agent an answer */
	int last_kind;           /* of its notes */
	int64_t in_segment;
	bool done; /* the supervisor ends when all is written */
	/* its segments are short: so many of its first notes are deleted */
	bool bulky;
	size_t trimmed;
	struct proc *procs;
	size_t n_procs;
	bool forked, killing;
	int64_t tick_at;
	struct stepd_event *held;
	size_t n_held; /* what came while hung */
	/* of the supervisor: events for an earlier one are dropped */
	int64_t instance;
	bool disowned; /* a person said that its node is off, or none knows of it, and it lives */
	bool ordered, resolved; /* a stop or kill reached it; a person wants its end */
	int64_t outside_at;     /* its machine stops it since, 0 not */
	int64_t freed_at; /* its GPUs are given back by the job before; 0: that was not asked */
};
struct order {
	int64_t job, attempt, done_at;
};
struct simnode {
	char name[16];
	bool power, agent_up;
	bool before;            /* its agent is of the release before */
	int64_t boot, instance; /* counters */
	struct sim_clock clock;
	struct agent_core *agent;
	int64_t tick_at;
	struct shell *shell; /* shell.h */
	/* what its fence has promised: an epoch, and attempts of this boot */
	int64_t obeyed;
	struct promised *promised;
	size_t n_promised;
	int64_t mute_until, deaf_until; /* nothing that it says passes; that it would hear */
	/* that it spoke with, and nobody took away; that may have taken its place on disk since */
	char *own_token, *new_token;
	int64_t helped_at, refused_since; /* its tokens are, 0 they are not */
	int64_t bad_since, ok_since;      /* when the controller could (not) reach it */
	/* last time something went wrong between it and the controller */
	int64_t trouble_at;
	struct proc *gpus[GPUS]; /* who uses the slot in truth */
	/* until then the slot takes slow_pct of the time of a healthy one for a step */
	int64_t slow_until[GPUS], slow_pct[GPUS];
	struct node_health health; /* what its agent finds */
	/* looked_at: its preflight checks are done from then on */
	int64_t health_acked, looked_at;
	bool leaving;       /* goes down in order */
	int64_t idle_since; /* leaving: no supervisor lives since, 0 one does */
	struct order *orders;
	size_t n_orders; /* to check after a failure */
};
