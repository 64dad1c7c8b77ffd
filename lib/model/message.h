/* Agent protocol between moe-agent and moed (JSON over HTTP, POST
 * /v1/agent/{hello,sync,news,answer}), version MO_PROTOCOL. Sequence: docs/protocol.md.
 *   agent                                   moed
 *   hello {node,boot_id,instance,...} ->    <- welcome {epoch,beat_ms,steps[through]}
 *                                           (or error: protocol, token, duplicate node)
 *   sync {beat, steps[notes, progress]} ->  held until a command is due or beat_ms passed <-
 *                                           reply {epoch, acks, commands}
 *   news {steps[notes]} ->                  answered as soon as the records are synced <- reply
 *                                           {epoch, acks}
 *                                           (second, short connection: deaths)
 *   answer {id, ...} ->                     <- {}   (result of a query command: logs)
 * Commands are level-triggered: every sync reply repeats all that are due for the node; agents
 * answer repeats from the spool. Lower epochs are refused by the agent. */
#pragma once
#include "lib/base/desc.h"
#include "lib/model/health.h"
#include "lib/model/image.h"
#include "lib/model/launch.h"
#include "lib/model/nodeinfo.h"
#include "lib/model/note.h"
#include "lib/model/recorder.h"

#define MO_PROTOCOL 1
#define MO_BEAT_MS 1000
/* starts of the controller in one incarnation of its state: what is above in an epoch names it */
#define MO_EPOCH_STARTS (1LL << 20)

/* Progress of one local rank in a beat; only those that changed since the last acknowledged
 * beat. */
struct rank_progress {
	int64_t rank, iteration;
	double step_ms;
	int phase;
	double busy_ms; /* of the step, what it did not wait for others; MO_NONE_F: not said */
};
extern const struct mo_desc rank_progress_desc;

/* What moved of one local rank, asked for while its job is overdue (CMD_MOTION): milliseconds since
 * then, but for cards and GPUs at most as long as the agent looked (watched_ms); MO_NONE = that
 * cannot be read here. */
enum process_state {
	PROCESS_RUNS,
	PROCESS_WAITS,   /* for a disk or a device, D: it takes no signal */
	PROCESS_STOPPED, /* by a signal, T */
	_PROCESS_STATE_N
};
extern const char *const process_state_names[_PROCESS_STATE_N];
struct rank_motion {
	int64_t rank, watched_ms;
	int64_t log_ms, io_ms; /* bytes in its log; bytes that its processes read and wrote */
	int64_t cpu_ms;        /* its processes used the processor */
	/* its cards moved a good deal: RDMA and XGMI; MO_NONE also: never since its job came */
	int64_t net_ms;
	/* its GPU computed; that is busy and computes nothing: as long, MO_NONE also: it is not so.
	 * Said to controllers that read them (agent_welcome.gpus) */
	int64_t gpu_work_ms, gpu_spin_ms;
	/* enum process_state of its main process, waits: of one below it too; -1 = not known */
	int state;
};
extern const struct mo_desc rank_motion_desc;

/* What one local rank did in one window of its agent (agent/core/agent/activity.h): percent of that
 * time, means; MO_NONE_F = that cannot be read here. */
struct rank_activity {
	int64_t rank;
	int64_t window;            /* its number, ascending; anew with each agent */
	double cpu_pct, delay_pct; /* its processes used a processor; could run, and had none */
	double busy_pct, mem_pct, power_w; /* of its GPU; of the GPU's memory */
};
extern const struct mo_desc rank_activity_desc;

/* What an agent says of one step it knows. */
enum step_state {
	STEP_SPOOLED,
	STEP_STARTING,
	STEP_RUNNING,
	STEP_STOPPING,
	STEP_GONE,
	STEP_HUNG,
	_STEP_STATE_N
};
extern const char *const step_state_names[_STEP_STATE_N];
struct step_report {
	int64_t job, attempt;
	int state; /* enum step_state; HUNG = lock held, no answer for 5 s */
	int64_t written;
	struct note *notes;
	size_t n_notes;
	struct rank_progress *progress;
	size_t n_progress;
	struct rank_motion *motion;
	size_t n_motion; /* while MOTION is due */
	/* the same, once each time that they were asked; a rank without one is left out */
	struct rank_recorder *recorder;
	size_t n_recorder;
	struct rank_activity *activity;
	size_t n_activity; /* of the newest window, until it is acknowledged */
	/* spooled: which of its GPUs the job before it has not given back, and what is found there;
	 * NULL: it waits for none */
	char *waits;
};
struct agent_hello {
	char *node, *boot_id, *instance;
	int64_t protocol;
	char *version, *address;
	struct nodeinfo info;
	bool health;
	/* a root agent's: it runs none of accounts that cannot log in either */
	int64_t min_uid;
	int64_t metrics_port; /* of its GET /metrics; MO_NONE: it has none */
	struct step_report *steps;
	size_t n_steps; /* without notes */
};
/* known false: keep it, it is reported step.unknown */
struct step_ack {
	int64_t job, attempt, through;
	bool known;
};
/* info: NULL, or the node as it was known of this boot, when the hello lacks a GPU of it: the
 * agent may have lost its memory of this boot (state_dir) */
/* token: NULL, or what is to be done about the token that the agent spoke with: renew (trade it
 * for a new one), unbound (trade it for one of this node), expired (no new work comes: trade
 * what token_file holds now). Also in sync_reply. */
struct agent_welcome {
	int64_t epoch, beat_ms;
	struct step_ack *steps;
	size_t n_steps;
	struct nodeinfo *info;
	char *token;
	bool orders;
	bool pulls;    /* syncs may say `pulls`, and report images */
	bool motion;   /* syncs may say `motion`, and report it */
	bool doubts;   /* syncs may say `doubts` */
	bool busy;     /* progress may say busy_ms */
	bool space;    /* scan results may say free_bytes */
	bool waits;    /* reports of steps may say waits */
	bool recorder; /* and recorder */
	bool activity; /* and activity */
	bool gpus;     /* motion may say gpu_work_ms and gpu_spin_ms */
};

/* Result of a checkpoint scan (one for each scan command that is due). */
struct found_checkpoint {
	int64_t iteration;
	char *path;
	int64_t bytes;
	bool complete;
	char *reason;
	int64_t saved_at;
	/* NULL = only its manifest was compared, or it is not complete */
	char *level;
	char *manifest; /* agent/core/ckpt/manifest.h; NULL = not taken */
	char *fixed;    /* NULL = any, or it was not checked */
	char *held;
};
extern const struct mo_desc found_checkpoint_desc;
/* What looks like a model's state and is no checkpoint that the layout can read: a file, or a
 * directory ("/" at its end) with such files in it. */
struct unread_state {
	char *name;
	int64_t bytes, saved_at;
	int64_t iteration; /* MO_NONE = the name is none of an entry */
	char *where;
};
extern const struct mo_desc unread_state_desc;
/* What is scanned in a checkpoint directory, and why. An order has a kind and an id, and its
 * answer names both (orders.h: as older peers name them). */
enum scan_order {
	ORDER_SCAN,      /* all of it, before an attempt; id: that attempt */
	ORDER_VERIFY,    /* one checkpoint, after its save; id: counted by the controller */
	ORDER_PRUNE,     /* what checkpoint.keep gives up goes; id: the newest iteration of it */
	ORDER_LAST_SCAN, /* all of it, once the job has ended; id: the attempt that would follow */
	_ORDER_N
};
extern const char *const scan_order_names[_ORDER_N];
struct scan_result {
	/* SCAN, LAST_SCAN: the attempt it was asked for (the next one); else MO_NONE */
	int64_t job, attempt;
	int order; /* enum scan_order */
	int64_t id;
	char *error;
	bool writable;
	int64_t free_bytes; /* there, for the job's user; MO_NONE unknown */
	char *real;
	char *place; /* NULL = nobody asked, or it is not known */
	char *alias;
	struct found_checkpoint *items;
	size_t n_items;
	struct unread_state *unread;
	size_t n_unread;
	int64_t unread_more;
};
struct agent_sync {
	char *node, *boot_id, *instance;
	int64_t epoch, beat;
	int64_t mono_ns; /* for the mapping of its clock */
	struct step_report *steps;
	size_t n_steps;
	struct scan_result *scans;
	size_t n_scans;
	struct node_health *health; /* NULL = nothing that was not acknowledged */
	struct gpu_sensors *sensors;
	size_t n_sensors;
	struct nic_sensors *nics;
	size_t n_nics;
	bool leaving; /* no new work, and its jobs move */
	bool pulls;   /* it obeys IMAGE */
	bool motion;  /* it obeys MOTION */
	bool doubts;  /* it has programs for a CHECK that is thorough */
	struct image_report *images;
	size_t n_images; /* all that are ordered */
};
enum command_kind {
	CMD_LAUNCH,
	CMD_STOP,
	CMD_KILL,
	CMD_FORGET,
	CMD_SCAN,
	CMD_QUERY,
	CMD_CHECK,
	CMD_IMAGE,
	CMD_MOTION, /* job, attempt: report what moves of its ranks, while it is due */
	_COMMAND_KIND_N
};
extern const char *const command_kind_names[_COMMAND_KIND_N];
#define LOG_SINCE_WHAT "log_since"
struct command {
	int64_t epoch;
	int kind;
	int64_t job, attempt;
	char *node;
	/* boot of the node that it is meant for: a later boot obeys nothing that was said to an
	 * earlier one; NULL = any */
	char *boot_id;
	struct launch *launch; /* LAUNCH */
	/* SCAN: enum scan_order and its id; attempt as in scan_result */
	int order;
	int64_t id;
	/* STOP: planned stop: signal the main pids, SIGKILL after grace */
	int64_t signal, grace_us;
	/* SCAN: the directory that the recipe named, where the engine's own lies below it: what
	 * lies there is no checkpoint, and reported; NULL */
	char *named;
	char *dir;
	struct ckpt_layout *layout;
	char *user;
	char *level;
	int64_t world; /* SCAN */
	/* SCAN: the submitter may run ranks as root; the agent must allow it too */
	bool allow_root;
	/* SCAN: iteration (and path, when known) of what is removed first (checkpoint.keep) */
	struct found_checkpoint *prune;
	size_t n_prune;
	/* CHECK: job, attempt: run the on-failure checks; due until node_health.checked names it.
	 * Job 0: before the node comes back from a cordon. thorough: with the programs of doubt,
	 * said to agents that say `doubts` */
	bool thorough;
	/* SCAN: what is known of an iteration. manifest: it was verified, that is compared and
	 * nothing else; else complete: the engine announced it (and path: where), level: it may be
	 * resumed from, its files are opened */
	struct found_checkpoint *known;
	size_t n_known;
	/* SCAN: verify this iteration alone, after its save; MO_NONE = scan all */
	int64_t only;
	/* with only: where it was announced, NULL = by its name */
	char *path;
	/* with only: a save went there by its text: is that `dir` by another name? NULL = not
	 * asked */
	char *doubt;
	/* with only: the engine itself said that it is complete */
	bool announced;
	/* SCAN: where each save writes over the last one (layout.unnumbered) and none is whole,
	 * the copy that was kept is put back */
	bool restore;
	/* with only and level crc: checksums of this part of the files; part = parts: put the
	 * parts together, of one part: both at once */
	int64_t part, parts;
	/* QUERY: id of the question; not durable, asked again by the client */
	int64_t query;
	/* QUERY: NULL = log of a rank | log_since = the same, of what was written since_ms ago or
	 * later (an older agent says that it does not know it) | env = what stepd recorded of its
	 * ranks' environments (agent/core/bind/env_record.h as JSON) | exec = a command (exec.h):
	 * exec_result */
	char *what;
	int64_t rank, offset, lines, wait_ms; /* QUERY: offset -1 = last `lines` lines */
	int64_t since_ms;                     /* QUERY log_since */
	/* QUERY exec: the command beside the rank; wait_ms: its deadline */
	char **argv;
	size_t n_argv;
	struct image_order *image; /* IMAGE */
};
struct sync_reply {
	int64_t epoch, health; /* version stored; MO_NONE = none */
	struct step_ack *acks;
	size_t n_acks;
	struct command *commands;
	size_t n_commands;
	char *token;
};
/* POST /v1/agent/token: trades the token that it is sent with. */
struct token_trade {
	char *node;
};
struct token_traded {
	char *id, *token;
	int64_t expires_at;
};
struct query_answer {
	char *node;
	int64_t query;
	char *error;
	char *text;
	int64_t offset;
	bool more, end;
};
extern const struct mo_desc step_report_desc, agent_hello_desc, step_ack_desc, agent_welcome_desc,
	scan_result_desc, agent_sync_desc, command_desc, sync_reply_desc, query_answer_desc,
	token_trade_desc, token_traded_desc;
/* Of a result that no message will ever bring whole (MO_PORTION_BYTES), what is found is left
 * out, and its error says so. */
void scan_result_fit(struct scan_result *s);
