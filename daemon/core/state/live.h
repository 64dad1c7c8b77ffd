/* What a core holds while it runs: the state, and beside it only what can be derived from it or
 * may be forgotten (indexes, what was sent, when to check again).
 *
 * Everything in daemon/core below the shell includes it; the shell knows `struct core` by its name
 * alone (core.h). Indexes are made by update/index.c and maintained by update.c; what beats say
 * without a record (heard, progress between samples, sensors) is written by the rules that take
 * them: silence.c, fleet.c, reports.c, readings.c.
 *
 * What never happens: a decision that only this memory would explain. It is gone with the process:
 * after a start, and in every replay, the same records lead to the same state without it. */
#pragma once
#include "daemon/core/state/activity.h"
#include "daemon/core/state/core_config.h"
#include "daemon/core/state/node_clock.h"
#include "daemon/core/state/prefetch.h"
#include "daemon/core/state/shared.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/state/state.h"
#include "daemon/core/state/waiting.h"

/* What a job that is not over names as its own; see update/claims.h. */
struct claim {
	char *text;
	int64_t job;
};
struct claims {
	struct claim *items;
	size_t n;
};

/* A step that a node reports and that moed does not have. ours: we stored it once and forgot it
 * since: it may be forgotten again. */
struct stray {
	int64_t job, attempt, written;
	bool gone, ours;
};
/* A step that its node does not start yet: the job before it has not given back a GPU. */
struct step_wait {
	int64_t job, attempt;
	int64_t since; /* when that was heard first */
	char *text;    /* which GPU, and what is found there */
};
/* Of one node, at the place in core.lives that the node has in state.nodes; stays at its address
 * as the node does. Never stored. */
struct live {
	const struct node *node; /* whose it is */
	/* of those in its state, beside who was heard before and after it (silence.c); watch: the
	 * one of core.watches that it stands in, NULL none */
	struct live *earlier, *later, **watch;
	/* core time of its last message; of a start, until it is heard; node_heard_at() */
	int64_t heard_at;
	struct node_clock clock; /* of its boot */
	/* what that clock said in the newest message: one that says less was sent before it */
	int64_t newest_ns;
	/* of this instance: older ones (reordered) prove nothing about absence */
	int64_t last_beat;
	int64_t *jobs;
	size_t n_jobs; /* jobs with a step here that is not forgotten */
	struct stray *strays;
	size_t n_strays;
	int64_t *scans;
	size_t n_scans; /* jobs whose scan is asked from this node */
	int64_t *pulls;
	size_t n_pulls; /* jobs whose image it is to have */
	int64_t *prefetches;
	size_t n_prefetches;         /* of struct core, which it is to serve */
	bool pulled;                 /* it was to have some after the pass before */
	bool asks;                   /* it stands in core.askers */
	bool brings;                 /* its agent does that (agent_sync.pulls) */
	bool tells_motion;           /* its agent does (agent_sync.motion) */
	bool doubts;                 /* its agent has programs for that (agent_sync.doubts) */
	struct image_report *images; /* what it said of them last */
	size_t n_images;
	struct step_wait *waits;
	size_t n_waits;
	uint64_t commands_sent; /* hash of the commands of the last reply */
	int64_t *checks;
	size_t n_checks; /* jobs that wait for on-failure checks here */
	/* version of node_health that is stored, or says the same; MO_NONE = ask the state */
	int64_t health_seen;
	int64_t store_until, tell_until; /* rates (cordon.c) */
	int64_t hellos_until;            /* rate of agents that began anew (fleet.c) */
	/* rates of events that it causes, by kind (events.c); NULL = none yet */
	struct teller *tellers;
	int64_t n_muted; /* changes since the last event that were not reported */
	bool capped;     /* it was reported that it is not cordoned */
	bool held;       /* the same, because it is new */
	bool powering;   /* the shell was told to run fence_command for it (power.c) */
	/* newest of each GPU, and of each card */
	struct gpu_sensors *sensors;
	size_t n_sensors;
	struct nic_sensors *nics;
	size_t n_nics;
	int64_t sensors_at;
	/* what it has for jobs, as core.slots has it; what of it core.tally has; stale: that is not
	 * of now, it stands in core.stale */
	struct node_slots slots;
	struct {
		int64_t gpus, free, awaited, nodes;
		int state;
	} counted;
	bool stale;
	bool wakes; /* it stands in core.wake_nodes */
	/* an instance that was welcomed and not heard since */
	struct agent_hello *candidate;
	int64_t candidate_at;
};
/* What beats tell of the newest attempt of a job beyond its records; never stored. */
#define OWN_WINDOW 16  /* of its newest steps */
#define OWN_MS_MAX 1e9 /* no step takes longer */
struct rank_beat {
	int64_t iteration;
	double step_ms;
	/* its own times of steps, a ring; how many there were, and of which iteration the last */
	double own_ms[OWN_WINDOW];
	int64_t n_own, own_at;
	bool own_busy; /* they are what of a step was no waiting; else all of it */
	/* the least median of such a window in this attempt, and what they deviated from it;
	 * MO_NONE_F: there was none */
	double usual_ms, usual_sigma;
	struct rank_motion motion;
	int64_t motion_at;              /* when that was heard; MO_NONE never */
	struct rank_recorder *recorder; /* NULL: nothing was heard of it */
	int64_t recorder_at;
	struct rank_acts acts;
	int phase; /* enum phase, as its own program said; PHASE_NONE: it did not */
	int doing; /* enum rank_doing, as it was judged last (hang.c) */
};
struct job_beats {
	int64_t job, attempt, advanced_at;
	int64_t word_at;     /* last word of its engine that is no iteration; MO_NONE none */
	int64_t judged_at;   /* whether it hangs (hang.c); 0 never */
	int64_t recorder_at; /* the last of ranks[].recorder; MO_NONE none */
	int64_t doing_until; /* ranks[].doing and seen are of use; 0: it was not judged */
	/* what that judgement saw, for who asks while it is only suspected; NULL: it is not */
	char *seen;
	char **evidence;
	size_t n_evidence;
	/* which rank makes it slow (straggler.c): when that was judged, 0 never; who stood out, by
	 * which sign, since when and since which of its steps */
	int64_t paced_at, odd, odd_at, odd_n;
	int odd_sign;
	/* for the straggler found at room_at, room elsewhere was searched in that pass
	 * (core.passes) */
	int64_t room_pass, room_at;
	/* windows of its ranks were told since that was judged by them; by them: the same two of
	 * who stood out, when that was judged, and since when one does */
	bool acted;
	int64_t acted_at, act_odd, act_odd_at;
	int act_odd_sign;
	struct rank_beat *ranks;
	size_t n_ranks;
};
/* Bytes of a job's texts that count (retained.c). */
struct job_texts {
	int64_t job, bytes;
};
/* events about checkpoints of this minute, by user (events.c) */
struct talker {
	char *user;
	int64_t n;
};
struct core {
	struct core_config config;
	/* the shell's (core_signatures()); NULL: what ranks said is not read */
	const struct classifier *signatures;
	/* One and the same: `owned` is for those who make, change and index it (state/live.c,
	 * update, core.c, aside.c). */
	union {
		const struct state state;
		struct state owned;
	};
	/* state.n_nodes entries; as state.lives for who may not change them */
	struct live **lives;
	/* update/slots.h; as state.tally. scored_at: of lemon in it, MO_NONE: not of now */
	struct slots slots;
	struct tally tally;
	struct live **stale;
	int64_t scored_at;
	/* nodes by state, who was heard longest ago first; since the start of this run */
	struct live *watches[NODE_DOWN + 1];
	struct job_beats *beats;
	size_t n_beats; /* ascending job; as state.beats */
	int64_t *unfinished;
	size_t n_unfinished; /* ascending ids of jobs that are not final */
	/* update/claims.h: what these are called, and where they save */
	struct claims names, dirs;
	int64_t *dirty;
	size_t n_dirty; /* jobs to visit in this turn */
	/* ascending ids of completed jobs whose last checkpoints are still to be scanned
	 * (end_scan) */
	int64_t *ending;
	size_t n_ending;
	/* jobs just submitted: the queue is otherwise as the last pass left it */
	int64_t *fresh;
	size_t n_fresh;
	/* jobs whose commands may have changed in this turn, on all their nodes */
	int64_t *wake_jobs;
	size_t n_wake_jobs;
	struct live **wake_nodes;
	size_t n_wake_nodes; /* nodes whose commands may have changed */
	uint32_t *idem_heads;
	size_t n_idem_heads; /* idems.c */
	size_t node_last;    /* of the state: which node was asked for last */
	size_t n_draining;   /* nodes whose drain is not done */
	size_t n_leaving;    /* nodes whose machine goes down in order */
	size_t n_spares;     /* nodes that are a spare of a job */
	size_t n_scanning;   /* scans wanted of all nodes */
	size_t n_pulling;    /* images wanted of all nodes */
	struct live **askers;
	size_t n_askers;   /* nodes that are to have an image, or were after the pass before */
	bool room_awaited; /* a node may be not cordoned because enough are (cordon.c) */
	struct prefetch **prefetches;
	size_t n_prefetches;        /* ascending id: those that go on, and the newest that ended */
	int64_t n_prefetched;       /* that there were so far */
	size_t n_checking;          /* jobs that were given slots and wait for checks */
	size_t n_cordoned;          /* nodes that a finding drains; */
	size_t n_cordoned_hardware; /* of these, for proven hardware */
	/* events about health: rate, how many were not reported since the start */
	int64_t tell_until, n_muted;
	struct talker *talkers;
	size_t n_talkers;
	int64_t talkers_until;
	struct shared_pool shared;
	struct job_texts *texts;
	size_t n_texts; /* ascending job: whose texts count, and how much */
	/* retained.c: finished jobs with large texts, by the time of their end; */
	int64_t *retained;
	size_t n_retained;
	int64_t retained_bytes, active_bytes; /* texts of these, and of unfinished jobs */
	bool queue_dirty;                     /* the whole queue must be judged */
	int64_t passes; /* over the queue: what decides of places is as it was at the last one */
	/* the job that kept all behind it waiting, in the last pass */
	bool blocked;
	int64_t blocked_id, blocked_priority;
	struct queue queue;  /* what every waiting job waits for, by the last pass */
	int64_t liveness_at; /* no node's silence can matter before; a lower bound */
	int64_t terms_at;    /* no node's time of learning or trial ends before; a lower bound */
	int64_t jobs_at;     /* next deadline of any job or of the queue */
	int64_t history_at;  /* when it is looked for what is too old */
	int64_t hangs_at;    /* when a job may be overdue next, or is to be judged again */
	/* nobody is overdue for the time before: this process did not hear of it, or its clock was
	 * set */
	int64_t heard_from;
	/* Nodes and jobs that passes over many of them have looked at so far: what an input adds to
	 * it is what the cost of that input grows with (test_cost.c). */
	int64_t looked;
};

/* the rules visit it in this turn */
void core_touch(struct core *c, int64_t job);
struct live *core_live(struct core *c, const char *node); /* NULL if unknown */
/* the same, for who only reads */
const struct live *live_of(const struct core *c, const char *node);
/* before the lives from `at` on */
struct live *core_live_insert(struct core *c, size_t at, size_t n_lives);
void core_lives_clear(struct core *c);
void live_waits_clear(struct live *l);
/* taken out by `moed --quarantine` */
bool job_is_out(const struct state *s, int64_t job);
/* One iteration of a rank of the job's present attempt, and its step time (MO_NONE_F = not
 * reported), as a beat reported it. True when it advances the rank. */
bool core_beat(struct core *c, const struct job *j, int64_t rank, int64_t iteration, double step_ms,
	       int64_t now);
/* What its node says that moves of a rank of the job's present attempt. */
void core_motion(struct core *c, const struct job *j, const struct rank_motion *m, int64_t now);
/* The same of its flight recorder. */
void core_recorder(struct core *c, const struct job *j, const struct rank_recorder *k, int64_t now);
/* What its agent says that a rank of the job's present attempt did in a window. usual: the job is
 * as fast as it was. */
void core_activity(struct core *c, const struct job *j, const struct rank_activity *a, bool usual,
		   int64_t now);
/* What a rank of the job's present attempt does, as its program says. */
void core_phase(struct core *c, const struct job *j, const struct rank_progress *p);
/* What each rank of it does, as it was judged: of use until then. */
void core_doing(struct core *c, const struct job *j, const int *doing, int64_t until);
/* What that judgement saw of the whole, while it is suspected; takes all three. */
void core_hang_seen(struct core *c, const struct job *j, char *text, char **evidence, size_t n);
/* What a step took a rank of the job's present attempt by itself, as a beat reported it. */
void core_own(struct core *c, const struct job *j, const struct rank_progress *p);
/* Its engine said something that is no iteration. */
void core_word(struct core *c, const struct job *j, int64_t now);
/* It is judged now whether the job hangs. False: that was done less than `every` ago. */
bool core_judge(struct core *c, const struct job *j, int64_t now, int64_t every);
/* What beats tell of its attempt, for who judges now which rank makes it slow. NULL: that was done
 * less than `every` ago, or nothing was heard. */
struct job_beats *core_pace(struct core *c, const struct job *j, int64_t now, int64_t every);
/* Room elsewhere is searched now, for the job's straggler. False: it was before, and nothing that
 * decides of places has changed since. */
bool core_search_room(struct core *c, const struct job *j);
void core_beats_drop(struct core *c, int64_t job); /* the job has no ranks any more */
/* with the clock: when nodes were heard and jobs advanced */
void core_live_shift(struct core *c, int64_t shift);
bool ids_has(const int64_t *ids, size_t n, int64_t id); /* ascending */
void ids_add(int64_t **ids, size_t *n, int64_t id);
void ids_remove(int64_t *ids, size_t *n, int64_t id);
