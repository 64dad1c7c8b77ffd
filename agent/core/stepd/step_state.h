/* State of the step core, for its own two files: step.c (the machine) stands over step_facts.c (the
 * notes it writes, and what lines and datagrams of the ranks say). */
#pragma once
#include "agent/core/stepd/step.h"

#define SAMPLE_US 1000      /* room for one sample: 1,000 a second in the long run, */
#define SAMPLES_BURST 20000 /* and so many at once */

enum state { NEW, PREPARING, PORTS, READING, UP, STOPPING, DOWN, GONE, _STATE_N };

struct local_rank {
	bool started, failed, exited;
	int64_t pid;
	struct rank_progress progress;
};

struct step_core {
	struct launch launch;
	enum state state;
	bool ports_held, refused, stopped; /* stopped: a planned stop was begun */
	struct local_rank *ranks;
	size_t n_ranks;
	size_t n_started, n_ended; /* ended: exited or failed to start */
	int64_t n_notes;
	int64_t prepare_due;            /* PREPARING: its end */
	int64_t kill_at, kill_again_us; /* STOPPING: end of grace; DOWN: next repetition */
	bool pending;
	struct note sample;          /* the sample that waits for more pieces */
	int64_t room_us, room_at;    /* time saved up for further samples */
	int64_t left_out, left_told; /* iterations that came too fast to be told each; how many of
				      * them a note said */
	int64_t sample_due, sample_last; /* sample_last: highest iteration written */
	int phase;
	size_t phase_rank;       /* the step's phase is that of its lowest rank that reports any */
	int64_t saving, resumed; /* iterations last told, MO_NONE none */
	char *saves_to;          /* told before any save: where all of them go */
	char *saving_to;
	bool saving_beside; /* of the last one told: its place; and it was told of a second one */
	struct note checkpoint; /* last one told */
	int64_t *stuck;
	size_t n_stuck;
};

/* What an event does in a state. */
typedef void (*step_fn)(struct step_core *s, const struct step_event *e, int64_t now,
			struct step_out *out);

struct step_effect *step_effect(struct step_out *out, int type); /* appends */
/* Appends a note with its number; from: the fact told by the shell, NULL none. The caller may fill
 * the rest of the returned note. A sample that waits is written first, so that the journal never
 * shows a checkpoint before its iteration. */
struct note *step_note(struct step_core *s, struct step_out *out, int kind,
		       const struct note *from);
void step_flush_sample(struct step_core *s, struct step_out *out);
/* NULL: it is none of ours. */
struct local_rank *step_rank_of(struct step_core *s, const struct note *n);

/* What a rank's lines and datagrams say. */
void step_on_sample(struct step_core *s, const struct step_event *e, int64_t now,
		    struct step_out *out);
void step_on_phase(struct step_core *s, const struct step_event *e, int64_t now,
		   struct step_out *out);
void step_on_ready(struct step_core *s, const struct step_event *e, int64_t now,
		   struct step_out *out);
void step_on_checkpoint(struct step_core *s, const struct step_event *e, int64_t now,
			struct step_out *out);
void step_on_saving(struct step_core *s, const struct step_event *e, int64_t now,
		    struct step_out *out);
void step_on_resumed(struct step_core *s, const struct step_event *e, int64_t now,
		     struct step_out *out);
