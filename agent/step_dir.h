/* One step directory as the agent lives with it: its journal, its lock (whoever gets it has proof
 * that stepd is dead), its end. What was ordered there is step_entry.h's, how it is spoken with
 * step_talk.h's. Nothing here ever kills a stepd. */
#pragma once
#include "agent/core/stepd/spool.h"
#include "agent/journal.h"
#include "agent/manager.h"
#include "lib/base/proc.h"

struct supervisor;
struct step_dir {
	struct manager *manager;
	int64_t job, attempt;
	char *path;
	int fd;
	struct spool spool;
	struct journal journal;
	int lock_fd; /* held by us: its stepd is proved dead */
	bool held;   /* to be started: it has none of its GPUs yet (release.c) */
	bool gone;   /* the journal ends with NOTE_GONE */
	/* its files are removed at the end of the turn: what starts now does not wait for it */
	bool forgotten;
	bool *exited;
	size_t n_exited; /* per local rank: NOTE_EXIT was read */
	/* connection to stepd */
	struct supervisor *supervisor;
	struct mo_buf in;
	bool answered, up_reported, silent_reported;
	/* orders are repeated until the step ended, log entries are not */
	bool stop_logged, kill_logged;
	int64_t quiet_since_us; /* when an answer became due; 0 = none is */
	struct mo_timer *timer;
	struct helper *starter;  /* stepd's starting process */
	struct helper *recorder; /* asks its ranks' flight recorders (recorder.c) */
	/* sweep */
	struct mo_timer *sweep_timer;
	int64_t sweep_step_us;
	bool sweeping;
	struct mo_hunt hunt;
};

/* NULL: there is none. */
struct step_dir *step_dir_find(struct manager *m, int64_t job, int64_t attempt);
struct step_dir *step_dir_new(struct manager *m, int64_t job, int64_t attempt);
struct step_dir *step_dir_free(struct step_dir *d);
void step_dir_read(struct step_dir *d);   /* new notes of the journal -> AE_NOTE */
void step_dir_reread(struct step_dir *d); /* the same from the journal's beginning */
bool step_dir_lock(struct step_dir *d);   /* true: it is ours, and no stepd lives */
/* The lock is ours: reads the journal to its end, AE_STEPD_LOST. */
void step_dir_lost(struct step_dir *d, const char *text);
/* In one change, before anybody hears of it: of an agent that is killed half-way nothing is left
 * that its successor would take for a step. */
void step_dir_forget(struct step_dir *d);
void step_dir_remove(struct step_dir *d); /* one that is forgotten; frees d */
