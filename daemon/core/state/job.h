/* A job as moed knows it, in parts; its steps, and questions about one job alone. Stored by its
 * description, as all of state.h. */
#pragma once
#include "daemon/core/state/fabric_check.h"
#include "daemon/core/state/job_hang.h"
#include "daemon/core/state/job_shown.h"
#include "daemon/core/state/job_straggler.h"
#include "daemon/core/state/promise.h"
#include "daemon/core/state/submit.h"
#include "lib/base/desc.h"
#include "lib/model/job.h"
#include "lib/model/message.h"
#include "lib/model/sample.h"
#include "lib/model/skip.h"

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
	/* PHASE_SAVE or PHASE_EVAL that is not over by its words, and the rank that said so;
	 * PHASE_NONE: neither */
	int pause;
	int64_t pause_rank;
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
	int64_t resume;    /* iteration that it resumed from, -1 fresh */
	int64_t placed_at; /* when the attempt was given its places; MO_NONE: by a version before */
	int64_t start_us;  /* from then to its first iteration; MO_NONE: it did not get there */
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
/* engine.container: the image that its first attempt was given, and all later ones are. */
struct job_image {
	char *digest; /* NULL: no node has said yet which one the recipe means, or it is a dir: */
	char *node;   /* that did */
	int64_t at;
	bool waits; /* its next places are kept for it until they have it */
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
	/* enum space_level that was told, until there is enough again; MO_NONE none */
	int64_t space_told;
	int64_t space_at; /* when what is free there was measured; MO_NONE: never, or before */
};
/* Verification of the newest announced checkpoint, under way (verify.c). */
struct job_verify {
	int64_t iteration;   /* MO_NONE = none */
	int64_t serial;      /* how many there were so far */
	int64_t parts, done; /* done: which of the parts are, a bit each */
};
struct numbers;
struct pace;
struct data_order;
struct job_progress {
	int64_t iteration; /* newest of this attempt, MO_NONE none */
	int64_t watermark; /* highest ever: below it again = recompute */
	/* core time of the newest iteration that a record tells; job_progress_at() */
	int64_t at;
	int phase; /* of the job: enum phase */
	/* of a save or an evaluation under way: the iteration that it is of, and when it was said,
	 * by the clock of its node; MO_NONE: not known */
	int64_t phase_of, phase_said;
	struct sample *samples;
	size_t n_samples;
	struct job_shown shown;
	/* iteration of the newest loss that was no number, or far above those before it; MO_NONE
	 * none */
	int64_t spike;
	struct numbers *numbers; /* what the losses say; NULL: none was said yet */
	struct pace *pace;       /* how long iterations take; NULL: none was timed yet */
	/* whether the newest resume went on with its data; NULL: none was heard of yet */
	struct data_order *data_order;
	/* iterations without a sample because they came too fast, of all attempts; MO_NONE none */
	int64_t left_out;
	struct measured *measured; /* NULL: nothing to set against the promise yet */
	/* from its places to its first iteration, of the attempt before this one that took longest;
	 * MO_NONE: none got there */
	int64_t longest_start_us;
};
/* Failure of the current attempt, decided once. */
struct job_failure {
	bool decided;
	int64_t at;
	int64_t rank; /* who was first */
	char *node, *class, *cause;
	char **evidence;
	size_t n_evidence;
	int64_t exit_mono_ns;  /* of the first dead rank, on its node */
	int64_t exit0_at;      /* first rank that ended 0: the rest has 300 s */
	int64_t detect_us;     /* age of the first death when it was reported */
	int64_t unfinished_us; /* from the last charge of the ledger to that death */
	bool waiting_node;     /* recovering because a node is down, nothing killed */
};
/* Failures in a row, without a new checkpoint between. */
struct job_streak {
	int64_t same; /* of the same signature */
	char *signature;
	int64_t checkpoint; /* the newest complete one at the last of them */
	int64_t cycles;     /* of whatever signature */
	int64_t ports_busy; /* attempts in a row that found their ports busy */
	int64_t since;      /* failures before it do not count: a person dealt with them */
};
/* On-failure checks before the next attempt (cordon.c): nodes that were asked after `attempt`
 * and did not answer yet, those that did, until when they are waited for; both empty = no wait. */
struct job_checks {
	char **nodes;
	size_t n_nodes;
	char **done;
	size_t n_done;
	int64_t attempt, until;
	bool thorough; /* with the programs of doubt, on node `doubted`; NULL: on all */
	char *doubted;
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
/* What a ledger was at a moment: GPU-microseconds of each category. */
struct ledger_mark {
	int64_t at;
	/* in the order of job.ledger; none: a version before this one made the mark, and it says
	 * nothing */
	int64_t *us;
	size_t n_us;
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
	/* how long it was over, before somebody restarted it: no part of its time limit and of its
	 * ledger; MO_NONE never */
	int64_t over_us;
	struct job_run run;
	struct step *steps; /* of all attempts, until their agents forgot them */
	size_t n_steps;
	struct job_counts counts;
	struct job_config config;
	struct job_scan scan;
	struct job_image image;
	struct job_saves saves;
	struct checkpoint *checkpoints;
	size_t n_checkpoints;
	struct job_verify verify;
	struct job_progress progress;
	struct job_failure failure;
	struct job_hang hang;
	struct job_straggler straggler;
	struct job_streak streak;
	struct job_checks checks;
	struct incident *incidents;
	size_t n_incidents;
	struct fabric_check *fabric; /* the newest that was told; NULL: none was */
	struct skip *skips;          /* data that its attempts leave out, oldest first */
	size_t n_skips;
	struct job_waterfall waterfall;
	/* GPU-microsecond ledger: ledger[c] add up to the total exactly; charged up to ledger_at */
	int64_t *ledger;
	size_t n_ledger;
	int64_t ledger_at;
	/* GPU-microseconds of nodes that were its spares, beside the ledger; MO_NONE none. Those of
	 * now are added when they are spares no more (node_spare) */
	int64_t spare_us;
	/* what it was at some moments, oldest first: the submit, and the nearer the denser
	 * (ledger.c) */
	struct ledger_mark *ledger_marks;
	size_t n_ledger_marks;
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
extern const struct mo_desc config_read_desc, prepared_desc, place_desc, step_desc, job_desc;
extern const struct mo_desc ledger_mark_desc;

int64_t job_next_attempt(const struct job *j);
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
/* of the time from its submit to `end`, what it was not over */
int64_t job_age(const struct job *j, int64_t end);
/* when its time limit is reached; INT64_MAX: it has none, or it has not begun */
int64_t job_time_up(const struct job *j);
bool job_live(const struct job *j); /* some step is not proved dead */
