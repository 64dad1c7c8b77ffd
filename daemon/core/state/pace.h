/* How long an iteration of a job takes, against the best that it was seen to keep up: the job's
 * own history, from its samples. In a training that synchronises all ranks iterate alike, so this
 * says that the job is slow and never who makes it so (rules/straggler.h).
 *
 * Medians of the last PACE_WINDOW samples of one attempt: a save, an evaluation, a pause moves
 * none. The first PACE_SETTLE of an attempt compile and load. The best one stays over attempts of
 * as many GPUs. Made by update/pace.c. */
#pragma once
#include "daemon/core/state/job.h"

#define PACE_SETTLE 8
#define PACE_WINDOW 16
#define PACE_SLOWER 1.15 /* so much of the best is slower; */
#define PACE_USUAL 1.07  /* below it an episode is over */

struct pace {
	int64_t attempt, judged; /* newest iteration of it that counted; MO_NONE: none */
	int64_t n;               /* samples of it that counted */
	int64_t gpus;            /* of the job when it was best */
	/* the best median, how much its samples deviated, the iteration that it was reached at */
	double best_ms, spread_ms;
	int64_t best_at;
	double now_ms; /* median of the newest; MO_NONE_F: too few */
	/* The newest episode of being slower: whether it lasts, and about where it began. */
	bool slow;
	int64_t since, episodes;
};
extern const struct mo_desc pace_desc;

/* Step times of the newest samples of the attempt that are training, at most PACE_WINDOW, the
 * newest first, with their iterations. */
size_t pace_window(const struct job *j, double *ret_ms, int64_t *ret_iterations);
bool pace_counts(const struct job *j, const struct sample *s);
/* The present attempt is slower than the job was. */
bool pace_slow(const struct job *j);
/* It is known to be as fast as it was. */
bool pace_usual(const struct job *j);
/* It iterates: its newest iteration, of progress_at, is not long ago. */
bool pace_trains(const struct job *j, int64_t progress_at, int64_t now);
/* Percent of its time that it loses against its best; 0: it is not slow. */
double pace_lost_pct(const struct job *j);
/* That in words, of the newest episode. Caller frees. */
char *pace_text(const struct job *j);
