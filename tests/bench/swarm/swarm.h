/* A fleet of emulated agents in one process: the protocol of docs/protocol.md by the messages of
 * lib/model, each agent with its own connections, clocks and steps. Nothing runs: a launch is
 * answered by the notes that a supervisor would write, after spawn_ms.
 *
 * What it leaves out of an agent: health, images, logs, questions, tokens that are traded, a spool.
 * Figures of it are called emulated. */
#pragma once
#include "lib/model/message.h"
#include "tests/bench/swarm/line.h"

#define LATE_BUCKETS 100000 /* of 100 us */

struct swarm_step {
	int64_t job, attempt, first_rank, n_ranks;
	int state;          /* enum step_state */
	struct note *notes; /* those that were not acknowledged */
	size_t n_notes;
	int64_t written, iteration;
	int64_t due_ns; /* when its ranks run, or end; INT64_MAX never */
	bool first;     /* it has rank 0, whose iterations are samples too */
};
enum agent_state { AGENT_AWAY, AGENT_HELLO, AGENT_UP };
struct agent {
	struct swarm *swarm;
	enum agent_state state;
	size_t index;
	int64_t boot, start; /* counts: they make boot_id and instance */
	int64_t epoch, beat, beat_ms;
	int64_t next_ns, wait_ns; /* away: the next hello, and what is waited after that */
	int64_t limit_ns;         /* for the answer to a hello */
	struct line sync, news;
	bool urgent;
	struct swarm_step *steps;
	size_t n_steps;
	struct scan_result *scans; /* for the next sync */
	size_t n_scans;
};

/* since the start; lost: from up to away */
struct counts {
	int64_t hellos, welcomes, syncs, news, refused, lost, launches, running, ended, failed;
};
struct swarm {
	struct lines lines;
	struct agent *agents;
	size_t n_agents, n_up, next; /* next: whose turn it is in swarm_tick() */
	uint32_t chance;
	int64_t gpus, spawn_ms, exit_ms; /* exit_ms -1: until it is killed */
	bool progress;                   /* each rank's iteration in each beat */
	struct counts counts;
	/* wall clock, us, of launch commands and of ranks that run; 0 none; both of the time since
	 * swarm_mark() */
	int64_t launch_first, launch_last;
	int64_t late[LATE_BUCKETS]; /* beats by how long after their time they were answered */
};

/* All are away, and say hello at once. */
void swarm_begin(struct swarm *s, size_t n_agents);
void swarm_done(struct swarm *s);
/* What is due: hellos, ranks that run and end, answers that are given up. */
void swarm_tick(struct swarm *s, int64_t now_ns);
void swarm_ready(struct swarm *s, struct line *l, uint32_t events);
/* Power back: every node has a new boot, no steps, no connection, and says hello. */
void swarm_reboot(struct swarm *s);
/* Every connection is cut; the agents are the same. */
void swarm_cut(struct swarm *s);
/* One rank of each of the first n steps that run dies by a signal. */
void swarm_fail(struct swarm *s, int64_t n);
void swarm_mark(struct swarm *s);

/* of the message: what the node consists of */
void swarm_nodeinfo(const struct agent *a, struct nodeinfo *ret);
