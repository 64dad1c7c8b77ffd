/* The agent's decisions about the steps of its node: spool answers, adoption, forwarding of
 * notes. Pure; moe-agent and the simulator are its shells. Spool: one entry per (job, attempt),
 * written BEFORE acting; it survives the agent. A lower epoch or attempt is refused as stale.
 * Start-up of the shell: AE_FENCE for each saved fence entry, then per step directory
 * AE_SPOOLED_STEP and an AE_NOTE for each line of its journal, then AE_STARTED. The shell reads
 * a journal to its end before it reports AE_STEPD_LOST, and fills time and mono_ns of a note to
 * write that has MO_NONE there. It starts two stepds for one step only when the first is dead or
 * about to die: the second fails to get the lock and must exit without a word. */
#pragma once
#include "lib/model/message.h"

struct agent_core;
struct activity_reading;
struct motion_reading;
enum agent_event_type {
	/* start-up: a step found in the spool; lock_held, boot_same, notes read so far */
	AE_SPOOLED_STEP,
	/* start-up: a line of the saved fence: epoch (job 0), or job and its highest attempt */
	AE_FENCE,
	AE_STARTED, /* all spooled steps were announced; hello may go out */
	AE_WELCOME, /* welcome */
	/* reply: acks and commands; ok = it answers the sync, !ok = it answers an urgent message
	 * (acks only) */
	AE_REPLY,
	AE_SPOOL_DONE, /* job, attempt: entry is on disk (ok) or not (text) */
	AE_FENCE_DONE, /* job, attempt: an AX_FENCE of them is on disk (ok) or not (text) */
	/* job, attempt: AX_RELEASE goes on: text says which of its GPUs is not given back yet, and
	 * what is found */
	AE_HELD,
	/* job, attempt: answer to AX_RELEASE: its GPUs are given back, as far as can be read (ok),
	 * or not: text says which, and what is found */
	AE_RELEASED,
	AE_STEPD_UP, /* job, attempt: stepd answers on its socket */
	/* job, attempt: the lock could be taken (and is held by the agent from now on): proved
	 * dead. text: why, when known (it could not be started) */
	AE_STEPD_LOST,
	AE_STEPD_SILENT, /* job, attempt: lock held, no answer in 5 s */
	AE_SWEPT,        /* job, attempt: environment scan found no process of the step any more */
	AE_NOTE,         /* job, attempt, note: a new line of the journal */
	/* job, attempt: AE_NOTEs from here on are the journal's from its beginning (AX_REREAD) */
	AE_REREAD,
	AE_PROGRESS, /* job, attempt, progress of one rank */
	AE_MOTION,   /* job, attempt, readings of its ranks (AX_MOTION) */
	/* job, attempt, recorder: what the flight recorders of its ranks said (AX_RECORDER) */
	AE_RECORDER,
	AE_ACTIVITY, /* job, attempt, activities of its ranks (AX_ACTIVITY) */
	AE_SCANNED,  /* scan result of the helper */
	/* image, report: how far it is: digest, done, total, unpacking; ok: that was the end of it:
	 * ready, or error and refused */
	AE_IMAGE,
	/* health_awaited(): the shell adds what is known of health to the next urgent message */
	AE_CHECKED,
	/* ok: the hello or sync failed: moed does not answer or says hello again; !ok: an urgent
	 * message failed. after_us: how long moed wants to be left alone; 0: it does not say */
	AE_NO_ANSWER,
	AE_TICK,
	_AE_N
};
struct agent_event {
	int type;
	int64_t job, attempt;
	int64_t epoch, after_us;
	bool ok, lock_held, boot_same;
	const char *text;
	const struct launch *launch;
	const struct note *note;
	const struct rank_progress *progress;
	const struct agent_welcome *welcome;
	const struct sync_reply *reply;
	const struct scan_result *scan;
	int64_t image; /* number of AX_IMAGE */
	const struct image_report *report;
	const struct motion_reading *readings;
	size_t n_readings;
	const struct recorder_answer *recorder;
	const struct activity_reading *activities;
	size_t n_activities;
};
enum agent_effect_type {
	/* job, attempt, epoch: save before the next effect: never again act on a lower epoch,
	 * nor (job != 0) on an attempt of job up to this without its spool entry; then
	 * AE_FENCE_DONE when job != 0 */
	AX_FENCE,
	/* job, attempt, command->launch: write the spool entry durably, then AE_SPOOL_DONE */
	AX_SPOOL,
	/* job, attempt, on disk and fenced: look whether the jobs before it have given back its
	 * GPUs, which may take them a while (AE_HELD), then AE_RELEASED */
	AX_RELEASE,
	AX_START, /* job, attempt: start stepd with the spooled launch */
	AX_STOP,  /* to stepd: signal, grace_us */
	AX_KILL,  /* to stepd */
	/* kill every process whose environment carries the step id until none is found, then
	 * AE_SWEPT */
	AX_SWEEP,
	/* job, attempt, note: continue the journal of a dead stepd (n given), then AE_NOTE */
	AX_WRITE_NOTE,
	AX_SCAN,        /* command: run the checkpoint helper, then AE_SCANNED */
	AX_IMAGE,       /* image, command->image: bring it, then AE_IMAGE */
	AX_IMAGE_STOP,  /* image: it is not wanted any more */
	AX_IMAGES_TIDY, /* none is wanted: what killed ones left goes, and what takes too much */
	AX_QUERY,       /* command: logs */
	/* job, attempt: read the journal again from its beginning: AE_REREAD, then AE_NOTE of each
	 * line */
	AX_REREAD,
	AX_MOTION, /* job, attempt: read what its ranks did (agent_core_ranks()), then AE_MOTION */
	/* job, attempt: ask the flight recorders of its ranks, then AE_RECORDER */
	AX_RECORDER,
	AX_ACTIVITY, /* job, attempt: the same of what they did in all, then AE_ACTIVITY */
	AX_FORGET,   /* job, attempt: remove spool entry and step directory (logs stay) */
	AX_HELLO,    /* send hello (agent_core_hello fills the steps) */
	AX_SYNC,     /* send the next sync (agent_core_sync) */
	/* send urgent notes, finished scans and awaited checks now (agent_core_urgent) */
	AX_SEND_URGENT,
};
struct agent_effect {
	int type;
	int64_t job, attempt, epoch, signal, grace_us;
	int64_t image; /* number of this try's image */
	struct command *command;
	struct note *note;
};
struct agent_out {
	struct agent_effect *effects;
	size_t n_effects;
};
struct agent_core *agent_core_new(const char *node, const char *boot_id, const char *instance);
struct agent_core *agent_core_free(struct agent_core *s);
MO_DEFINE_CLEANUP(struct agent_core, agent_core_free)
void agent_core_decide(struct agent_core *s, const struct agent_event *e, int64_t now_us,
		       struct agent_out *out);
int64_t agent_core_deadline(const struct agent_core *s);
void agent_out_done(struct agent_out *out);
void agent_core_hello(const struct agent_core *s, struct agent_hello *ret); /* fills steps[] */
/* beat number, unacknowledged notes (at most MO_NOTES_PER_SYNC), changed progress, scans due */
void agent_core_sync(struct agent_core *s, struct agent_sync *ret);
/* Something that the controller waits for is not acknowledged. */
bool agent_core_has_urgent(const struct agent_core *s);
/* unacknowledged notes up to the last urgent one, scans not sent yet; false = nothing urgent,
 * health neither */
bool agent_core_urgent(struct agent_core *s, struct agent_sync *ret);
/* What the ranks of a step told of last that began and did not end. Caller frees. */
struct rank_progress *agent_core_progress(const struct agent_core *s, int64_t job, int64_t attempt,
					  size_t *ret_n);
/* Digests of the images that the controller wants here now. False: of one that is being brought it
 * is not known yet. */
bool agent_core_images(const struct agent_core *s, char ***ret, size_t *n_ret);
/* highest acknowledged note: journal segments up to it may be deleted; 0 none */
int64_t agent_core_through(const struct agent_core *s, int64_t job, int64_t attempt);
