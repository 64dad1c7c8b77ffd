/* One step as the agent knows it: what its journal says, which notes the controller has not
 * acknowledged, what was asked of it. Only for agent_core.c and report.c. */
#pragma once
#include "agent/core/agent/activity.h"
#include "agent/core/agent/agent_core.h"
#include "agent/core/agent/motion.h"
#include "lib/model/limits.h"

/* unacknowledged notes in memory while no controller answers; above it every second sample of
 * the older half goes, as the controller does */
#define STEP_NOTES_MAX 40000

enum agent_step_phase {
	AS_SPOOLING, /* AX_SPOOL is out */
	AS_FENCING,  /* to be started: its spool entry is on disk, AX_FENCE is out */
	AS_HELD,     /* its fence is on disk; AX_RELEASE is out: its GPUs may not be given back */
	/* on disk, proved without processes, never started: starts when the launch is repeated */
	AS_IDLE,
	AS_STARTING, /* a stepd was started or holds the lock; not heard of yet */
	AS_UP,       /* answers */
	AS_HUNG,     /* lock held, silent: reported, never killed */
	AS_SWEEPING, /* stepd proved dead: what is left of the step is being killed */
	AS_WRITING,  /* swept: the last notes are being written in the dead stepd's place */
	AS_GONE,     /* the journal ends with NOTE_GONE */
	AS_REFUSED,  /* nothing was made: the answer lives in memory until it is acknowledged */
};
struct agent_step_rank {
	bool started, exited;
	int64_t pid;
	struct rank_progress now, sent, acked;
	struct motion_marks motion;
	struct activity_marks activity;
};
struct agent_step {
	int64_t job, attempt;
	enum agent_step_phase phase;
	bool has_gpus; /* its launch names some */
	int64_t first_rank;
	struct agent_step_rank *ranks;
	size_t n_ranks;
	/* journal */
	int64_t written, through; /* highest note, highest acknowledged */
	int64_t read;             /* the last one taken of this reading; 0 none yet */
	/* AX_REREAD is out: until AE_REREAD what comes is left of the reading before */
	bool rereading;
	/* its beginning was deleted: who started and exited is not fully known */
	bool trimmed;
	bool running, refused, lost, gone;
	struct note *notes;
	size_t n_notes; /* above through */
	/* orders */
	/* ordered_at: when stepd was last sent them, MO_NONE since it (re)connected */
	bool stop, kill;
	int64_t signal, grace_us, ordered_at;
	bool never_started; /* found at start-up without lock and notes */
	bool known;         /* false: the controller never stored it */
	char *text;         /* why stepd was lost, when known */
	char *waits;        /* AS_HELD: for which GPU, and why */
	int64_t looked_at;  /* AX_MOTION was last out; 0 never */
	/* AX_RECORDER was out since somebody asks what moves; what came, until it is taken */
	bool recorder_asked, recorder_sent;
	struct recorder_answer recorder;
	int64_t retry_at; /* AS_WRITING: write again what has not come back */
};
struct agent_step *agent_step_new(int64_t job, int64_t attempt, const struct launch *l);
struct agent_step *agent_step_free(struct agent_step *e);
/* a line of the journal; repetitions are dropped */
void agent_step_note(struct agent_step *e, const struct note *n);
void agent_step_ack(struct agent_step *e, int64_t through);
/* The controller was restored from a backup and knows less than it once acknowledged: the journal
 * is to be read again, from its beginning; then agent_step_reread(). */
void agent_step_rewind(struct agent_step *e, int64_t through);
void agent_step_reread(struct agent_step *e);
/* The notes still missing at the end of the journal of a dead stepd: lost, an exit for every
 * rank that has none, gone. Numbered. Appends. */
void agent_step_last_notes(const struct agent_step *e, struct note **notes, size_t *n_notes);
int agent_step_state(const struct agent_step *e); /* enum step_state */
