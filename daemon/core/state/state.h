/* What moed knows: plain described values (lib/base/desc.h), in ascending order of id, name or seq.
 *
 * Changed only by daemon/core/update applying records; read by everyone (rules, views, the shell,
 * moectl's simulations) through const pointers, which is what the finders here return. A job and
 * a node stay where they are until they are forgotten; what they hold (steps, checkpoints, GPUs)
 * is good until the next record, which may move it.
 *
 * Replay = a snapshot (this struct, written by its description) and the records after it. So what
 * is described here is on disks of released versions: a field is added with a meaning for
 * "unknown" (that is how an older snapshot reads), and never renamed or used anew.
 *
 * What is not here: what a beat tells and may be forgotten, and what can be derived (live.h); how
 * things are shown (view/); what a job was asked (lib/model/recipe.h). */
#pragma once
#include "daemon/core/state/job_shown.h"
#include "lib/base/desc.h"
#include "lib/base/error.h"
#include "lib/model/env_profile.h"
#include "lib/model/job.h"
#include "lib/model/message.h"
#include "lib/model/recipe.h"

/* What the planner said of a job when it was submitted, calibrated by what was measured until
 * then. error_pct: of the step time; anchors: measured runs that it rests on. */
struct promise {
	double step_time_s, memory_gb, bubble, error_pct;
	int64_t anchors;
};
/* What a job does, against its promise (plan_drift.c): median of the steady steps of an attempt,
 * most memory. steps: iterations behind it; iteration, time: when it was measured. */
struct measured {
	int64_t steps, attempt, iteration, time;
	double step_time_s, memory_gb;
};
/* A measured run that calibrates later plans; it stays when its job is forgotten. Stack:
 * software (engine), version (ROCm of its nodes, NULL = not reported), gpu, precision, model. */
struct anchor {
	char *software, *version, *gpu, *precision, *model;
	int64_t job;
	struct measured measured;
	char *recipe_text;    /* as submitted */
	struct recipe recipe; /* with what the planner chose */
};
/* What of the engine may be the recipe's own: metrics.lines, checkpoint.layout,
 * checkpoint.resume_args, and where hooks prepare it engine.args_unchecked. */
struct engine_own {
	struct line_rule *rules;
	size_t n_rules;
	char **resume;
	size_t n_resume;
	struct ckpt_layout layout;
	struct kv *owned;
	size_t n_owned;
};
/* A submitted job as the shell hands it in: parsed, checked, data files resolved. */
struct submit {
	char *user; /* authenticated submitter, never from the request */
	/* the submitter is root/admin on the UNIX socket or local cluster: may run ranks as the
	 * agent's root if the agent allows it */
	bool allow_root;
	char *idempotency_key, *digest; /* scope = caller; digest = SHA-256 hex of the body */
	char *recipe_text;
	struct recipe recipe;
	struct engine engine;
	char **argv;
	size_t n_argv; /* expanded command without resume/fresh words */
	char **prepare;
	size_t n_prepare; /* words of engine.prepare, none = nothing to prepare */
	/* where the ranks write engine.heartbeat.file, NULL = nowhere */
	char *heartbeat_dir;
	/* what engine file and recipe say themselves */
	struct env_item *env;
	size_t n_env;
	/* those that fit the recipe, in ascending precedence; each node gets those that fit it */
	struct env_profile *profiles;
	size_t n_profiles;
	char **warnings;
	size_t n_warnings;
	/* of cluster.gpu at the recipe's precision, for MFU; unknown without cluster.gpu */
	double peak_tflops;
	struct promise *promise; /* NULL: the planner could not say anything */
	/* only in stored texts (daemon/journal.c): engine and env are those of this id; MO_NONE
	 * here */
	int64_t parts;
	/* only in stored texts, as above: what of the engine is not that of the parts; NULL here */
	struct engine_own *own;
	/* not described: whose engine and profiles are (shared.h); NULL = its own */
	struct shared *shared;
	/* not described: but for engine_own of them, which is this job's */
	bool owns;
};
/* What the node of rank 0 read of the engine's own configuration, as the shell judged it
 * (daemon/node_config.c). */
struct config_read {
	char *hash; /* of the files there */
	/* what they break together with the recipe, with FILE:LINE; NULL: nothing */
	char *refused;
	char *unjudged; /* why nothing can be said of them; NULL: they were judged */
	/* where the engine saves by their names; NULL: where the recipe says, or unknown */
	char *directory;
	char *directory_said; /* the place of the last of those names */
	char **warnings;
	size_t n_warnings;
	struct recipe *recipe;   /* the recipe with what they say; NULL: refused, unjudged */
	struct promise *promise; /* the plan with them; NULL: it can say nothing */
};
struct prepared {
	char *node;
	int64_t ms;
}; /* engine.prepare there */
/* Ranks of one attempt on one node: contiguous. */
struct place {
	char *node;
	int64_t first_rank, n_ranks;
	int64_t *gpus;
	size_t n_gpus;
};

/* One attempt of a job on one node, as moed knows it. Kept until the agent forgot it. */
struct step {
	/* boot the launch was made for; a launch is repeated only to the same node and boot */
	char *node, *boot_id;
	int64_t attempt;
	int64_t through; /* highest note applied */
	/* the agent reported the step (spooled): a launch is no longer due */
	bool accepted;
	bool started; /* NOTE_RUNNING seen */
	bool refused; /* NOTE_REFUSED seen */
	bool gone;    /* proved: NOTE_GONE, changed boot id, or fence */
	char *gone_how;
	bool forgotten; /* the agent dropped it */
	/* hung supervisor, or the agent no longer knows the step: neither is proof of death */
	bool hung;
	char *refused_cause, *refused_text; /* of NOTE_REFUSED */
	bool lost;                          /* NOTE_LOST seen: the supervisor died */
	bool outside; /* somebody on its machine stopped it, not the controller */
	/* NOTE_GONE applied: nothing more comes; gone without ended = boot id or fence */
	bool ended;
	/* every rank is reaped or a D-state process with SIGKILL pending: dead for the job, not
	 * for the node */
	bool unkillable;
	int64_t *stuck_pids;
	size_t n_stuck_pids; /* of NOTE_UNKILLABLE */
	/* how long its preparation took is in the job's sum (prepared.c) */
	bool prepared;
	bool missing; /* hung because the agent no longer knows it */
	int64_t first_rank, n_ranks, n_exited, n_bad; /* n_bad: exits that are not code 0 */
};
enum intent {
	INTENT_NONE,
	INTENT_CANCEL,
	INTENT_PAUSE,
	INTENT_RESTART,
	INTENT_DRAIN,
	INTENT_TIME_LIMIT,
	_INTENT_N
};
extern const char *const intent_names[_INTENT_N];

/* Where the present attempt runs, or the last one ran. */
struct job_run {
	struct place *places;
	size_t n_places; /* current attempt; empty while queued */
	int64_t port;
	struct rank *ranks;
	size_t n_ranks;
	int64_t resume; /* iteration that it resumed from, -1 fresh */
	/* engine.prepare, the slowest node first (prepared.c) */
	struct prepared *prepared;
	size_t n_prepared;
};
/* The engine's own configuration as the newest attempt's first node read it (note.config). */
struct job_config {
	char *text;      /* NULL = none did */
	char *node;      /* which node that was */
	bool due;        /* it is not judged yet: the shell is asked (FX_CONFIG, IN_CONFIG) */
	int64_t attempt; /* the newest whose first node reported one; MO_NONE none */
	char *hash;      /* of the files there, once it is judged */
	char *refused;   /* what it breaks together with the recipe: the attempt's end */
};
/* Scan of checkpoint.dir before an attempt, and after the last one. */
struct job_scan {
	/* attempt it is done for; < attempt + 1 = due when there is a directory */
	int64_t attempt;
	/* core time of the last one: an older one than SCAN_FRESH_US is done again */
	int64_t at;
	char *error;
	bool writable;
	bool at_end; /* completed; the scan that verifies its last checkpoints is due */
	struct unread_state *unread;
	size_t n_unread;
	int64_t unread_more; /* of the last scan */
	/* of them, those over which an attempt was ordered to start afresh */
	struct unread_state *passed_over;
	size_t n_passed_over;
};
/* Where and how often it saves. An iteration beside a directory is that of the save. */
struct job_saves {
	char *dir; /* mo_path_clean() of the recipe's, to compare with other jobs' */
	/* the same with links resolved, as the last scan said; NULL = it has none, or nobody
	 * said */
	char *real;
	/* where the engine saves by its own configuration, without a checkpoint.dir; no two
	 * unfinished jobs */
	char *by_config;
	bool path_refused; /* a checkpoint was announced outside dir: reported once */
	/* where the engine said that it had saved, and the node that this is not checkpoint.dir;
	 * NULL = nowhere else */
	char *elsewhere;
	char *began; /* where it began to save, which is not checkpoint.dir */
	int64_t began_at;
	/* where a save may have gone: a node is asked (doubt.c); NULL = nowhere */
	char *doubt;
	int64_t doubt_at;
	/* where the last save went that was not taken as a checkpoint; NULL = none */
	char *refused;
	int64_t refused_at;
	/* checkpoint.every: auto: iterations between checkpoints of the present attempt, 0 = the
	 * recipe's */
	int64_t every;
	int64_t n; /* whose time is in ledger[GPU_SAVE] */
};
/* Verification of the newest announced checkpoint, under way (verify.c). */
struct job_verify {
	int64_t iteration;   /* MO_NONE = none */
	int64_t serial;      /* how many there were so far */
	int64_t parts, done; /* done: which of the parts are, a bit each */
};
struct job_progress {
	int64_t iteration; /* newest of this attempt, MO_NONE none */
	int64_t watermark; /* highest ever: below it again = recompute */
	/* core time of the newest iteration that a record tells; job_progress_at() */
	int64_t at;
	int phase; /* of the job: enum phase */
	struct sample *samples;
	size_t n_samples;
	struct job_shown shown;
	/* iteration of the newest loss that was no number, or far above those before it; MO_NONE
	 * none */
	int64_t spike;
	/* iterations without a sample because they came too fast, of all attempts; MO_NONE none */
	int64_t left_out;
	struct measured *measured; /* NULL: nothing to set against the promise yet */
};
/* Failure of the current attempt, decided once. */
struct job_failure {
	bool decided;
	int64_t at;
	int64_t rank; /* who was first */
	char *node, *class, *cause;
	char **evidence;
	size_t n_evidence;
	int64_t exit_mono_ns; /* of the first dead rank, on its node */
	int64_t exit0_at;     /* first rank that ended 0: the rest has 300 s */
	int64_t detect_us;    /* age of the first death when it was reported */
	bool waiting_node;    /* recovering because a node is down, nothing killed */
};
/* Failures in a row, without a new checkpoint between. */
struct job_streak {
	int64_t same; /* of the same signature */
	char *signature;
	int64_t checkpoint; /* the newest complete one at the last of them */
	int64_t cycles;     /* of whatever signature */
	int64_t ports_busy; /* attempts in a row that found their ports busy */
};
/* On-failure checks before the next attempt (cordon.c): nodes that were asked after `attempt`
 * and did not answer yet, those that did, until when they are waited for; both empty = no wait. */
struct job_checks {
	char **nodes;
	size_t n_nodes;
	char **done;
	size_t n_done;
	int64_t attempt, until;
};
/* Over the steps of the current attempt, so that one note of one of 12,500 nodes costs no pass
 * at the others. */
struct job_counts {
	int64_t started; /* said NOTE_RUNNING */
	int64_t dead;    /* step_dead() */
	/* refused, lost, dead without all exits, or with an exit that is not code 0 */
	int64_t trouble;
	int64_t exited;    /* ranks */
	int64_t silent;    /* not dead, on a node that is down */
	int64_t drained;   /* on a node with a drain */
	int64_t forgotten; /* over all attempts: still in steps, to be swept together */
};
/* What of the last incident's waterfall is being measured (waterfall.c), since when. */
struct job_waterfall {
	int64_t stage, at;
	/* iteration the last failed attempt had reached: recompute ends there */
	int64_t lost_mark;
	int64_t gone_at; /* when all steps of the last attempt were proved gone */
};

struct job {
	int64_t id; /* j-<id>, never reused */
	struct submit spec;
	int state;                 /* enum job_state */
	int64_t attempt, restarts; /* restarts: attempts after a failure only */
	/* numbers up to it may have been used after the backup that the job comes from; MO_NONE */
	int64_t attempt_floor;
	bool after_failure;   /* the next attempt follows a failure: it counts as a restart */
	int intent;           /* a planned stop under way, and why */
	bool intent_now;      /* cancel --now: no grace */
	int64_t restart_from; /* restart --from ITER; MO_NONE = newest usable */
	char *reason;
	int64_t created_at, started_at, ended_at, state_since, queued_since;
	int64_t not_before; /* recovery.grace: next attempt not earlier */
	struct job_run run;
	struct step *steps; /* of all attempts, until their agents forgot them */
	size_t n_steps;
	struct job_counts counts;
	struct job_config config;
	struct job_scan scan;
	struct job_saves saves;
	struct checkpoint *checkpoints;
	size_t n_checkpoints;
	struct job_verify verify;
	struct job_progress progress;
	struct job_failure failure;
	struct job_streak streak;
	struct job_checks checks;
	struct incident *incidents;
	size_t n_incidents;
	struct job_waterfall waterfall;
	/* GPU-microsecond ledger: ledger[c] add up to the total exactly; charged up to ledger_at */
	int64_t *ledger;
	size_t n_ledger;
	int64_t ledger_at;
	/* of engine.prepare of all attempts, in ledger[GPU_LAUNCH]; MO_NONE: none */
	int64_t prepare_us;
	/* a step of some attempt ended without having reported everything: the job may have gone
	 * beyond its watermark */
	bool unheard;
	/* events of this job that the ring does not hold any more (ring.h); MO_NONE none */
	int64_t events_gone;
	/* bytes of spec.recipe_text, config, words and variables that it has no more (retained.c);
	 * MO_NONE none */
	int64_t let_go;
};
/* Its machine since it was started. */
struct node_boot {
	char *id;
	/* ids that were replaced, newest last: they cannot come back */
	char **past;
	size_t n_past;
	/* going down in order; until the next boot, or it does not after all */
	bool leaving;
};
/* The agent there, as its hello and its beats say. */
struct node_agent {
	char *instance;
	/* instances that were replaced: a late copy of an old hello must not count */
	char **past;
	size_t n_past;
	char *version, *address;
	int64_t protocol;
	int64_t obeys;   /* epoch above this controller's that it obeyed; MO_NONE */
	bool reconciled; /* said hello since this controller started */
	/* it speaks with a token that has expired: its node gets no new work, everything else
	 * goes on */
	bool token_expired;
	bool tells_health; /* it tells node_health */
	int64_t min_uid;   /* as in its hello; MO_NONE: it did not say */
};
struct node_drain {
	bool asked;
	char *when; /* idle | checkpoint | now */
	int64_t at; /* when it was asked for */
	bool done;  /* no rank is left */
	char *reason;
	/* "gpu.ras_ue 0000:9f:00.0": made by this finding; NULL = by an operator */
	char *cordon;
	bool hardware; /* the finding of `cordon` proves broken hardware */
};
/* Steps there that moed never stored. */
struct node_strays {
	bool any; /* it gets no work */
	/* "j-7.a3"; none in records of earlier versions */
	char **steps;
	size_t n_steps;
	char **discard;
	size_t n_discard; /* those that an operator wants ended */
};
/* What operators, and the node's newness, make of the findings of its health. */
struct node_findings {
	/* those of unproven checks are only reported until then (health.h); MO_NONE = over, or a
	 * node of 0.1 */
	int64_t learn_until;
	/* in spite of which an operator gave the node back; until they are OK, or the next
	 * boot */
	char **waived;
	size_t n_waived;
	/* of each: check_result.count then; MO_NONE = none, or an earlier version */
	int64_t *waived_counts;
	size_t n_waived_counts;
	/* since the boot, that an operator knows of: they keep no job away; until they are OK, or
	 * the next boot */
	char **acked;
	size_t n_acked;
	int64_t *acked_counts;
	size_t n_acked_counts; /* of each, as above */
};
/* Of health.stack, and of what stack.same compares; derived, not stored; 0 = not made. */
struct node_stack {
	uint64_t hash, same;
};
struct node {
	char *name;
	struct nodeinfo info;
	/* UP SUSPECT DOWN; shown as draining/drained when drain is set */
	int state;
	char *reason; /* of the state */
	int64_t registered_at;
	/* not heard since the state was restored: may hold what the backup does not know */
	bool unseen;
	struct node_boot boot;
	struct node_agent agent;
	struct node_drain drain;
	struct node_strays strays;
	struct node_health *health; /* newest word of the agent in this boot; NULL = none yet */
	struct node_findings findings;
	struct node_stack stack;
	/* events about this node that the ring does not hold any more; MO_NONE none */
	int64_t events_gone;
};
/* hash: SHA-256 hex of the secret. A token of role agent speaks for the node `user`; without one
 * (a local cluster's, and those of earlier versions) on loopback only. Role join: no caller, but
 * good for tokens of `nodes` nodes until it expires. */
struct token {
	char *id, *hash, *role, *user;
	int64_t created_at, expires_at;
	bool revoked;
	/* agent: id of the token that it was traded for; NULL = made by an admin */
	char *from;
	/* agent: its node has spoken with it: what it was traded for is then of no more use */
	bool used;
	int64_t nodes; /* join: how many nodes may trade it; MO_NONE of other roles */
	char **joined;
	size_t n_joined; /* join: those that did */
	/* agent: revoked by hand then: kept to keep the name out while others could bring it
	 * back */
	int64_t revoked_at;
	int64_t tries; /* agent: how many that were never used it took the place of */
};
/* hash, next: derived (idems.c), never stored */
struct idem {
	char *caller, *key, *digest;
	int64_t job, time;
	uint64_t hash;
	uint32_t next;
};

struct queue;
struct live;
struct job_beats;
struct state {
	int64_t epoch; /* +1 at each controller start; every command carries it */
	int64_t next_job, next_port, next_event_seq;
	int64_t time; /* of the last record */
	/* clock.h: core time clock_time was CLOCK_BOOTTIME clock_boot of boot clock_boot_id;
	 * since clock_doubt no time service vouched for the wall clock at a start, MO_NONE: one
	 * did */
	char *clock_boot_id;
	int64_t clock_time, clock_boot, clock_doubt;
	/* incarnation.h: jobs below are of a backup, MO_NONE: never restored; until when they
	 * get no attempt, MO_NONE: until a time after the next start */
	int64_t restored_jobs, restored_wait;
	/* second (INCARNATION_ZERO_US) of the first incarnation; MO_NONE: the epoch of now tells
	 * it */
	int64_t born;
	/* A job and a node stay at their address until they are forgotten: a job when a newer one
	 * is submitted (or by moed --quarantine), a node never. */
	struct job **jobs;
	size_t n_jobs; /* ascending id; find with job_find() */
	struct node **nodes;
	size_t n_nodes; /* ascending name */
	/* MO_EVENTS_MAX at most, ascending seq: ring.h */
	struct event *events;
	size_t n_events;
	struct token *tokens;
	size_t n_tokens;
	struct idem *idems;
	size_t n_idems;
	struct anchor *anchors;
	size_t n_anchors; /* oldest first; a few of each stack */
	/* ascending ids of jobs that `moed --quarantine` took out: what nodes hold of them is
	 * kept there */
	int64_t *aside;
	size_t n_aside;
	/* Not described, not stored: ascending ids of jobs that have steps, owned by the core.
	 * NULL (a copy, a dry run) = visit all jobs. */
	int64_t *holders;
	size_t n_holders;
	/* Not described, not stored: what the last pass over the queue found (waiting.h); the
	 * core's. NULL (a copy, a dry run) = there was none. */
	const struct queue *queue;
	/* Neither: what beats change without a record (live.h), owned by the core. NULL (a copy,
	 * a dry run) = nothing was heard. */
	const struct live *lives;
	const struct job_beats *beats;
	size_t n_beats;
};
extern const struct mo_desc prepared_desc, config_read_desc, submit_desc, place_desc, step_desc,
	job_desc, node_desc, token_desc, idem_desc, state_desc, promise_desc, measured_desc,
	anchor_desc;
extern const struct mo_desc engine_own_desc;

int64_t job_next_attempt(const struct job *j);
/* Is it there? ret: its index, or that at which it would stand. */
bool job_at(const struct state *s, int64_t id, size_t *ret);
bool node_at(const struct state *s, const char *name, size_t *ret); /* name may be NULL */
/* NULL if none; the pointer is valid until the job is forgotten (struct state) */
const struct job *job_find(const struct state *s, int64_t id);
size_t state_n_holders(const struct state *s);
/* i-th job that may hold GPUs */
const struct job *state_holder(const struct state *s, size_t i);
/* the same; no node is forgotten */
const struct node *node_find(const struct state *s, const char *name);
/* ranks: as many as GPUs, or as nodes when the engine runs one process per node */
int64_t job_world(const struct job *j);
int64_t job_gpus(const struct job *j); /* recipe.gpus */
/* iteration of the newest complete/verified/pinned one, MO_NONE */
int64_t state_newest_checkpoint(const struct job *j);
/* NULL if none or forgotten */
const struct step *step_find(const struct job *j, int64_t attempt, const char *node);
/* of the lowest attempt above `after`; -1 = first; NULL = no more */
const struct step *step_next(const struct job *j, const char *node, int64_t after);
/* of the current attempt, NULL if none */
const struct place *place_of(const struct job *j, const char *node);
/* no process of it runs user code any more: proved */
bool step_dead(const struct step *s);
bool job_live(const struct job *j); /* some step is not proved dead */
/* Core time of the node's last message, or of the start before it is heard; 0 = nothing is
 * known. */
int64_t node_heard_at(const struct state *s, const struct node *n);
/* Core time of the job's newest iteration, by records or beats. */
int64_t job_progress_at(const struct state *s, const struct job *j);
/* Of the rank at this place in job.ranks: the newest of records and beats. */
void rank_progress_of(const struct state *s, const struct job *j, size_t rank,
		      int64_t *ret_iteration, double *ret_step_ms);
