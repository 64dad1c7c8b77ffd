/* State of the supervisor's core, for its files: stepd_core.c asks stepd_table.c what an event
 * does, and that is a function of stepd_start.c, stepd_end.c or stepd_facts.c (which has the notes
 * that are written, and what lines and datagrams of the ranks say). */
#pragma once
#include "agent/core/stepd/stepd_core.h"

#define SAMPLE_US 1000      /* room for one sample: 1,000 a second in the long run, */
#define SAMPLES_BURST 20000 /* and so many at once */
/* Room for what else a rank says (phases, saves, what it resumed from): 100 a second in the long
 * run, and so many at once; a longer text costs as many as its pieces of so many bytes. */
#define WORD_US 10000
#define WORDS_BURST 5000
#define WORD_BYTES 512

enum state { NEW, NAMESPACE, PREPARING, PORTS, READING, UP, STOPPING, DOWN, GONE, _STATE_N };

struct local_rank {
	bool started, failed, exited;
	int64_t pid;
	struct rank_progress progress;
};

struct stepd_core {
	struct launch launch;
	enum state state;
	bool own_namespace;
	bool ports_held, refused, stopped; /* stopped: a planned stop was begun */
	struct local_rank *ranks;
	size_t n_ranks;
	size_t n_started, n_ended; /* ended: exited or failed to start */
	int64_t n_notes;
	int64_t prepare_due;            /* PREPARING: its end */
	int64_t kill_at, kill_again_us; /* STOPPING: end of grace; DOWN: next repetition */
	bool pending;
	struct note sample; /* the sample that waits for more pieces */
	struct room {
		int64_t us, at; /* time saved up; when that was counted */
	} samples, words;
	int64_t words_left; /* what was left out for want of room, beside iterations */
	/* iterations that came too fast to be reported each; how many of them a note said */
	int64_t left_out, left_reported;
	int64_t sample_due, sample_last; /* sample_last: highest iteration written */
	int phase;
	size_t phase_rank;       /* the step's phase is that of its lowest rank that reports any */
	int64_t saving, resumed; /* iterations last reported, MO_NONE none */
	char *saves_to;          /* reported before any save: where all of them go */
	char *saving_to;
	bool saving_beside; /* of the last one reported: its place; and a second one was reported */
	struct note checkpoint; /* last one reported */
	int64_t *stuck;
	size_t n_stuck;
};

/* What an event does in a state. */
typedef void (*stepd_fn)(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out);

struct stepd_effect *stepd_effect(struct stepd_out *out, int type); /* appends */
/* Appends a note with its number; from: the fact that the shell saw, NULL none. The caller may fill
 * the rest of the returned note. A sample that waits is written first, so that the journal never
 * shows a checkpoint before its iteration. */
struct note *stepd_core_note(struct stepd_core *s, struct stepd_out *out, int kind,
			     const struct note *from);
void stepd_core_flush_sample(struct stepd_core *s, struct stepd_out *out);
/* NULL: it is none of ours. */
struct local_rank *stepd_core_rank_of(struct stepd_core *s, const struct note *n);
