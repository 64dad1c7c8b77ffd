/* build/campaign: one job of a large cluster for a month, on the production core of the controller
 * in virtual time, with the failures of a cluster of that size; what became of its GPU time by the
 * job's own ledger. Files: node (agents), train (what the job does, and what goes wrong), expect
 * (what the parameters imply), main (options, the run, what it prints).
 *
 * What is simplified: failures come while the job trains (none is lost by that: it comes 10 s
 * later), hangs between two saves. Nodes speak when they have something to say or are woken, 50 ms
 * later; each second only while one of them is silent, since the beats of 2,048 nodes in 30 days
 * change nothing of the ledger. Ranks do not tell what a step takes them, so the straggler is found
 * by a person, who drains it ten minutes later, and the ledger calls that time productive: main
 * prints it beside. What is broken is back after an hour. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/core/state/job.h"
#include "lib/base/util.h"

#define S 1000000LL
#define DAY (86400 * S)
#define NEVER (INT64_MAX / 4)
#define LOCAL 8     /* GPUs of a node */
#define INIT_S 30.0 /* of each attempt */
#define LOAD_S 20.0
#define RETURNS (3600 * S)
#define SLOWER 1.2 /* steps, while a straggler takes part */
#define DRAINED (600 * S)
#define LOOKS (4 * S) /* between two looks at what moves */
#define READS (5 * S) /* between two readings of a GPU */

/* what goes wrong; the last is no failure, but ends an attempt too */
enum fault { FAULT_RANK, FAULT_NODE, FAULT_STOPPED, FAULT_SPINS, FAULT_SLOW, _FAULT_N };
extern const char *const fault_names[_FAULT_N];

struct options {
	int64_t seed, nodes, every; /* every: iterations from save to save */
	double days, failures;      /* failures: of 1,000 node-days */
	double step_s, stall_s;     /* stall: what a save takes from the training */
	double write_s;             /* after it the save is whole, beside the training */
	double lease_s, power_s;    /* recovery.lease; what fence_command takes */
	int64_t net;                /* the counters of the network's cards can be read */
	int64_t gpus;               /* whether GPUs compute can be read */
};
struct cnode {
	char name[12];
	int64_t boot, beat, job, attempt, first, written, through, returns_at;
	int64_t asked_at, ends_at; /* 0 not */
	bool has, gone, dead, queued, exited[LOCAL];
	struct note *notes;
	size_t n_notes;
	struct scan_result *scans;
	size_t n_scans;
};
enum stage { STAGE_NONE, STAGE_INIT, STAGE_LOAD, STAGE_STEP, STAGE_SAVE };
struct times {
	double *s;
	size_t n;
};
struct world {
	struct options o;
	struct core *core;
	int64_t now, began, until;
	uint64_t rng;
	struct cnode *nodes;
	int n_all, *woken, n_woken;
	/* the job. unsaved: iterations since the last save began; saving: what will be whole at
	 * whole_at; lead: node of rank 0 */
	int stage, lead;
	int64_t attempt, iteration, resume, next_at;
	int64_t unsaved, saving, whole_at, saved_iteration, saved_at, n_launched;
	/* what is wrong. pending: the fault that no attempt has answered yet, -1 none */
	int pending, slow, silent, hung; /* slow, silent: nodes; hung: enum fault; -1 none */
	int64_t fault_at, faulted_at, drain_at, look_at, beat_at, power_at, end_at, return_at;
	int64_t hung_rank, slow_since;
	bool decided;
	/* what came of it. early: hangs within the first iterations of an attempt, and how long
	 * they are documented to take */
	double early_s;
	int64_t faults[_FAULT_N], early[_FAULT_N], n_slow, slow_us, n_saves, suspected, wrong;
	struct times detected[_FAULT_N], restarted;
	char broken[400]; /* the first thing that must not be; "" nothing */
};
extern struct world w;

double chance(void);
/* Remembers the first one. */
void broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
void times_add(struct times *t, int64_t us);
const struct job *the_job(void);

/* node.c */
int64_t decide(struct core_input *in); /* status of the reply; 0 none */
void node_hello(int i);
void node_beat(int i);
void node_wake(int i);
/* The rank of node i ends, by its first death so do its steps. */
void node_rank_ends(int i, int64_t rank, int64_t signal);
void node_all_end(int i);
void node_boots(int i);
void lead_says(int kind, int phase, int64_t iteration);

/* train.c */
int64_t train_next(void); /* when something happens */
void train_act(void);
void train_event(const char *type, int64_t rank);
void train_power_asked(const char *node);
void train_launched(const struct cnode *n);

/* expect.c: the share that trains, as the parameters and the faults that were drawn imply. */
/* What a hang takes to be ended in the first iteration of an attempt, or the 19 after it; again:
 * not the job's first attempt. */
double expected_early_s(int fault, bool first, bool again);
double expected_ettr(const struct world *of);
