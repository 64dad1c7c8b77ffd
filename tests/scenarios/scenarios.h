/* build/scenarios: each kind of failure in each phase of a job's life, in virtual time, on the
 * production core of the controller with the toy agents of tests/unit/dcore (whose every turn is
 * checked and replayed). A cell is one job of four ranks on two of four nodes, to which one thing
 * happens at one moment; what the controller made of it is a sentence, which must be that of the
 * table. Files: job (what the job does, second by second), kinds (what happens to it), verdict (the
 * sentence), table (what it must be, or why the cell is impossible), main. */
#pragma once
#include "tests/unit/dcore/world.h"

#define NODES 4
#define LOCAL 2
#define MINUTE (60 * S)
#define MOVES INT64_MAX
#define STEPS 60
#define EVERY 10   /* steps from save to save */
#define EVAL_AT 35 /* it evaluates once */
#define FOUND 10   /* what lies there when it begins; and another at half of that */

enum at {
	AT_QUEUED,
	AT_LAUNCHING,
	AT_IMPORTING,
	AT_LOADING,
	AT_FIRST, /* it compiles for 20 silent minutes */
	AT_STEPPING,
	AT_SAVING,     /* for half an hour */
	AT_EVALUATING, /* for an hour */
	AT_FINISHING,
	AT_BACKING_OFF,
	AT_RESUMING, /* the second attempt loads */
	_AT_N
};
enum kind {
	K_NOTHING,
	K_SEGV,
	K_KILLED,
	K_EXIT,
	K_RAS_SAID,
	K_RAS_PROVED,
	K_WATCHDOG,
	K_OOM_HOST,
	K_OOM_GPU,
	K_NO_SPACE,
	K_REBOOT,
	K_QUICK_REBOOT,
	K_CUT,
	K_CUT_SPARE,
	K_FLAPPING,
	K_AGENT,
	K_SUPERVISOR,
	K_STOPPED,
	K_ASLEEP,
	K_COLLECTIVE,
	K_COLLECTIVE_UNREAD,
	K_DISK,
	K_NFS,
	K_STRAGGLER,
	K_NAN,
	K_SPIKE,
	K_TORN,
	K_ROTTEN,
	K_VANISHED,
	K_LOG_DISK,
	K_STATE_DISK,
	K_CLOCK,
	K_CONTRADICTION,
	K_LIAR,
	K_ANNOUNCED,
	_KIND_N
};
extern const char *const at_names[_AT_N], *const kind_names[_KIND_N], *const kind_means[_KIND_N];

/* What the ranks do, as their agents see it. */
enum doing { DO_NOTHING, DO_IMPORT, DO_LOAD, DO_FIRST, DO_STEP, DO_SAVE, DO_EVAL, DO_FINISH };

struct play {
	struct world w;
	int kind, at;
	int64_t id, steps;
	/* the attempt that is played, on these nodes, and what it does until then */
	size_t on[2];
	int64_t attempt, until, iteration, saving;
	int doing;
	bool over; /* its ranks have ended, or cannot go on */
	/* the cell's moment came; n_before, attempt_before: what was before it */
	bool hurt;
	int64_t hurt_at, attempt_before, newest_before;
	size_t n_before;
	/* whom it happens to */
	size_t node;
	int64_t rank;
	/* what is wrong from then on */
	bool stuck, slow, lies;
	double loss; /* MO_NONE_F: it is well */
	int64_t rotten, asleep_until, back_at, flaps, powers;
	bool absent; /* no controller */
	int64_t changed_at;
	size_t n_seen; /* what is seen of the job, for changed_at */
};

/* job.c */
void play_begin(struct play *p, int kind, int at);
void play_run(struct play *p);
int64_t play_pace(struct play *p); /* to the next turn; sets what counts as silent */
const struct job *play_job(const struct play *p);
bool play_lives(const struct play *p, size_t toy); /* ranks of the newest attempt live there */
/* Rank r of the job ends so, with that as its last words. */
void play_ends(struct play *p, int64_t rank, int64_t code, int64_t signal, const char *cause,
	       const char *words);
int64_t play_newest(const struct play *p); /* whole checkpoint in the directory; MO_NONE none */
/* kinds.c */
void kind_happens(struct play *p);
void kind_goes_on(struct play *p); /* each turn after that */
void kind_moves(struct play *p);   /* what agents see move */
/* verdict.c; the caller frees */
char *verdict_words(const struct play *p);
/* table.c */
struct row {
	int kind;
	unsigned at; /* bits of enum at */
	const char *verdict, *impossible;
};
extern const struct row rows[];
extern const size_t n_rows;
const struct row *row_of(int kind, int at); /* NULL: none, or more than one */
