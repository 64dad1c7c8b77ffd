/* Jobs, ranks, steps, checkpoints, events, reports: the values that moed keeps and the REST
 * interface shows. */
#pragma once
#include "lib/base/desc.h"
#include "lib/model/engine.h"
#include "lib/model/launch.h"
#include "lib/model/note.h"
#include "lib/model/sample.h"

enum job_state {
	JOB_QUEUED,
	JOB_STARTING,
	JOB_RUNNING,
	JOB_RECOVERING,
	JOB_STOPPING,
	JOB_PAUSED,
	JOB_COMPLETED,
	JOB_FAILED,
	JOB_CANCELLED,
	_JOB_STATE_N
};
extern const char *const job_state_names[_JOB_STATE_N];
static inline bool job_state_final(int s)
{
	return s == JOB_COMPLETED || s == JOB_FAILED || s == JOB_CANCELLED;
}

/* LOST: its node is silent */
enum rank_state { RANK_WAITING, RANK_RUNNING, RANK_EXITED, RANK_LOST, _RANK_STATE_N };
extern const char *const rank_state_names[_RANK_STATE_N];

enum node_state { NODE_UP, NODE_SUSPECT, NODE_DOWN, NODE_DRAINING, NODE_DRAINED, _NODE_STATE_N };
extern const char *const node_state_names[_NODE_STATE_N];

enum checkpoint_state {
	CKPT_SAVING,
	CKPT_COMPLETE,
	CKPT_VERIFIED,
	CKPT_TORN,
	CKPT_SUPERSEDED,
	CKPT_PINNED,
	CKPT_DELETED,
	CKPT_SUSPECT,
	CKPT_TAINTED, /* shown only: tainted, and else of use */
	_CKPT_STATE_N
};
extern const char *const checkpoint_state_names[_CKPT_STATE_N];

struct rank_coords {
	int64_t tp, pp, ep, cp, dp;
};
struct rank_exit {
	int64_t code, signal;
	char *cause;
};
/* Rank of the REST interface. */
/* What a rank does, as far as anybody can tell: by the words of its engine, and by what moves while
 * its job is suspected to hang (daemon/core/rules/rank_doing.h). */
enum rank_doing {
	RANK_IMPORTING,
	RANK_COMPILING,
	RANK_LOADING,
	RANK_STEPPING,
	RANK_SAVING,
	RANK_EVALUATING,
	RANK_COLLECTIVE_STUCK, /* its GPU spins, else its processors do; nothing comes of it */
	RANK_HOST_STUCK,       /* stopped, waits in the kernel, asleep, or leaves its GPU idle */
	RANK_GPU_HUNG,         /* its GPU has a finding, and it does nothing */
	RANK_SILENT,           /* its node is */
	RANK_UNKNOWN,          /* nobody can read it */
	_RANK_DOING_N
};
extern const char *const rank_doing_names[_RANK_DOING_N];
struct rank {
	int64_t rank;
	char *node;
	int64_t local_rank, pid;
	int state;
	char *cpus;
	int64_t numa_node, gpu;
	char *nic;
	int8_t bind_verified;
	char *bind_note;
	int64_t iteration;
	double step_ms;
	struct rank_coords *coords;
	struct rank_exit *exit;
	int64_t exit_mono_ns; /* not shown */
	int64_t start_time;   /* not shown */
	char **tail;
	size_t n_tail;    /* last lines at exit; not shown */
	char *gpu_note;   /* made when it is shown, NULL in state; */
	int doing;        /* the same, -1: enum rank_doing */
	double own_times; /* the same, MO_NONE_F */
};
/* Checkpoint of the REST interface. */
struct checkpoint {
	int64_t iteration;
	char *path;
	int state;
	char *level;
	int64_t bytes;
	int64_t saved_at, verified_at;
	int64_t attempt; /* 0: behind the backup that was restored; MO_NONE: it lay there before */
	char *reason;
	char *fixed; /* NULL = any */
	char *held;
	/* digest of its files as they were verified (agent/core/ckpt/manifest.h), NULL = not
	 * verified; not shown */
	char *manifest;
	/* the engine said that it is complete: of this save, and in whatever state it is by now;
	 * not shown */
	bool announced;
	/* what was wrong with the loss when it was saved; NULL: nothing. It is of no use then,
	 * whatever its state */
	char *tainted;
	/* attempts in a row that loaded it and died before a new iteration, of nothing else that
	 * is known; MO_NONE = none. At the second it is suspect */
	int64_t failed_loads;
	/* its content was read and compared since; not shown */
	bool compared;
	/* when its files were written, by the clock of their file system, the newest that was seen;
	 * MO_NONE: not seen since it is written; not shown */
	int64_t seen_at;
};
/* Event of the REST interface. data: a JSON object as text. */
struct event {
	int64_t seq, time;
	char *type;
	int64_t job;
	char *node;
	int64_t rank, attempt;
	char *message, *data;
};
/* ms outside; kept in ms */
struct waterfall {
	int64_t unfinished, detect, stop, place, image, launch, init, load, recompute;
};
struct incident {
	int64_t time, attempt;
	char *class;
	int64_t first_rank;
	char *node, *cause;
	char **evidence;
	size_t n_evidence;
	char *action;
	/* what its nodes told after that was decided */
	char **later;
	size_t n_later;
	/* signature that decided, what it means; NULL: the exit or the node's end did */
	char *rule, *why;
	int64_t gpu;       /* slot of first_rank; MO_NONE none */
	char *device;      /* its PCI address; NULL: not known, or of before */
	int64_t iteration; /* highest that the job had reached; MO_NONE none */
	bool elsewhere;    /* the next attempts avoid the node */
	int64_t lost_iterations;
	struct waterfall waterfall;
	char *open; /* phase that lasts: what it took so far is in the waterfall; views only */
};
/* GPU-microseconds per category; they add up to total exactly. Shown as GPU seconds. */
enum ledger_category {
	GPU_PRODUCTIVE,
	GPU_QUEUE,
	GPU_LAUNCH,
	GPU_INIT,
	GPU_LOAD,
	GPU_RECOMPUTE,
	GPU_SAVE,
	GPU_HANG,
	GPU_DETECT,
	GPU_DRAIN,
	GPU_IDLE,
	GPU_IMAGE,
	_GPU_CATEGORY_N
};
extern const char *const ledger_category_names[_GPU_CATEGORY_N];

extern const char *const job_prefix[1]; /* "j" */
extern const struct mo_desc rank_coords_desc, rank_exit_desc, rank_desc, rank_view_desc,
	checkpoint_desc, checkpoint_view_desc, event_desc, waterfall_desc, incident_desc;

/* TP fastest, then CP, then DP, then PP (Megatron's order tp-cp-ep-dp-pp: ep divides dp x cp).
 * All sizes >= 1. */
struct rank_coords rank_coords_of(int64_t rank, int64_t tp, int64_t cp, int64_t ep, int64_t dp,
				  int64_t pp);
