/* What moves of the ranks of a step, from readings of their processes: "it last did that N ms ago",
 * by kind. Looked at only while the controller asks (CMD_MOTION), which it does for a job that is
 * overdue. Pure; agent/motion.c reads, and so does the simulator.
 *
 * A reading that is lower than the one before counts as moved: processes came and went. One that
 * comes late says nothing of the time between: everything begins anew. */
#pragma once
#include "lib/model/message.h"

struct agent_core;
struct agent_event;
struct agent_out;
struct agent_step;

/* One process as /proc shows it. */
struct motion_process {
	int64_t pid, ppid, cpu_us;
	int64_t root; /* pid of the rank that it descends from, or is; 0: of none */
	char state;
};
/* What a rank's GPUs compute; motion_work(). */
struct motion_work {
	int64_t worked_at;   /* one of them did last; MO_NONE: not known */
	int64_t spins_since; /* all of them only spin; MO_NONE: one does not */
};
/* Of one rank; MO_NONE: that cannot be read. */
struct motion_reading {
	int64_t rank, pid;
	int64_t log_bytes, io_bytes, cpu_us;
	int64_t net_at; /* motion_net() */
	struct motion_work work;
	int state; /* enum process_state of its main process; -1 */
};
/* A card that a rank sends by, or the links of its GPU. */
struct motion_card {
	/* as health_traffic() says */
	int64_t read_at, moved_at;
	bool shared; /* ranks of another job send by it too */
};
/* One of its GPUs: as health_work() says. */
struct motion_gpu {
	int64_t read_at, worked_at, spins_since;
	bool shared; /* another rank computes on it, by a partition of its own */
};
struct motion_mark {
	int64_t value, moved_at; /* MO_NONE: cannot be read */
};
struct motion_marks {
	int64_t since, at; /* looked at since then, last then; 0: not looked at */
	struct motion_mark log, io, cpu;
	int64_t net_at;
	struct motion_work work;
	int state;
};

/* Sets root of each by the ranks' pids; sorts them. */
void motion_trees(struct motion_process *all, size_t n, const struct motion_reading *ranks,
		  size_t n_ranks);
int motion_state(char state); /* enum process_state */
/* When a rank last sent or received a good deal by any of its cards; MO_NONE: it is not known, or
 * it never did since its job came. Not that it stands still: one card that cannot be read, or moves
 * for who knows which job, hides that; one that moves is enough to say that it moves. */
int64_t motion_net(const struct motion_card *cards, size_t n, int64_t now);
/* Both MO_NONE unless each of its GPUs is its own and was read lately. */
struct motion_work motion_work(const struct motion_gpu *gpus, size_t n, int64_t now);
/* Whether the slots of others (n of them) have the device of this slot too: their GPU (partitions),
 * or the network card beside it. */
bool motion_shared(const struct nodeinfo *info, const struct gpu_slot *slot, bool nic,
		   const int64_t *others, size_t n);
void motion_take(struct motion_marks *m, const struct motion_reading *r, int64_t now);
/* False: it is not looked at. What cards moved, or GPUs did, may be longer ago than that. */
bool motion_tell(const struct motion_marks *m, int64_t rank, struct rank_motion *ret);

/* A command: has the shell look (AX_MOTION), no more often than twice a beat, and ask the flight
 * recorders once (AX_RECORDER): their dump moves something, by which a hang would never be one. */
void agent_core_motion(struct agent_core *s, const struct command *c, int64_t now,
		       struct agent_out *out);
/* The ranks that are to be looked at, without values: rank and pid. Caller frees. */
struct motion_reading *agent_core_ranks(const struct agent_core *s, int64_t job, int64_t attempt,
					size_t *ret_n);
/* AE_RECORDER: told in the next sync, once. */
void agent_step_recorder(struct agent_step *e, const struct recorder_answer *answer);
/* AE_MOTION */
void agent_step_motion(struct agent_step *e, const struct agent_event *ev, int64_t now);
/* The reply to a sync names what is still asked. */
void agent_core_motion_due(struct agent_core *s, const struct sync_reply *r);
