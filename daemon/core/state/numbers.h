/* What the losses of a job say of its model. Losses in a row that are no numbers, or far above
 * those before them, are an episode: it is over when a good one follows. What was saved in one that
 * is not over is tainted: no attempt resumes from it by itself. One that stays is a fault, after
 * which the job goes back to a checkpoint of before it.
 *
 * Judged by update/numbers.c as samples come, in the order of iterations, each once; those of
 * another attempt and those that come late say nothing. What follows is rules/numbers.c. Pure
 * readers, called by updates, rules and views. */
#pragma once
#include "daemon/core/state/state.h"

/* losses in a row that are no numbers: an engine that skips such a step says a number again at the
 * next one */
#define NUMBERS_NAN_STAYS 5
/* losses in a row that are far too high: most spikes are over before */
#define NUMBERS_SPIKE_STAYS 16
/* a spike that nobody goes back from is by then how high the loss is, from a change of data, say */
#define NUMBERS_LEVEL 64
#define NUMBERS_FACTOR 3.0 /* recovery.loss_spike.factor */
#define NUMBERS_GRAD_FACTOR 10.0
#define NUMBERS_ROLLBACKS_MAX 2 /* recovery.loss_spike.max */

enum number_kind { NUMBER_NONE, NUMBER_GOOD, NUMBER_NAN, NUMBER_SPIKE, _NUMBER_KIND_N };
extern const char *const number_kind_names[_NUMBER_KIND_N];

struct numbers {
	/* whose losses were judged last, and through which iteration; MO_NONE: none of its own */
	int64_t attempt, judged;
	/* newest iteration of the attempt with a good loss, or where it began */
	int64_t good;
	/* Its lines say losses: with an engine that leaves a NaN out, it may be that it prints
	 * none at all. */
	bool trusted;
	int kind; /* enum number_kind: NUMBER_GOOD: no episode; else how bad the last loss was */
	/* The newest episode, which may be over: its first iteration; of its last losses of one
	 * kind the first iteration, how many, the first one, and the median before the episode */
	int64_t begin, since, row;
	double loss, usual;
	/* how many are worth telling, for one may follow another closely; the last one that is, of
	 * the attempt; MO_NONE: none */
	int64_t episodes, told;
	int told_kind;
	/* gradient norms far above those before them, or no numbers: how many were worth telling;
	 * the last one, its iteration, and the median before it (MO_NONE_F: it is no number). They
	 * are told and nothing follows: what they break shows in the losses */
	int64_t grads, grad_at;
	double grad, grad_usual;
	/* where the job went back from last, and how often from there; MO_NONE: never */
	int64_t place, rollbacks;
};
extern const struct mo_desc numbers_desc;

/* What this sample says of the loss by itself: NUMBER_NONE: nothing. */
enum number_kind number_of_sample(const struct sample *s);
/* A loss that is a number, against those of the attempt before it; *ret_usual: their median,
 * MO_NONE_F where they are too few to judge by. at: index of the sample. */
bool numbers_spike(const struct job *j, size_t at, double *ret_usual);
/* The same of its gradient norm, which jumps more than a loss does. */
bool numbers_grad_spike(const struct job *j, size_t at, double *ret_usual);
/* An episode is not over, and its checkpoints are of no use. */
bool numbers_bad(const struct job *j);
/* What is saved at that iteration by the present attempt is tainted. */
bool numbers_taint(const struct job *j, int64_t iteration);
/* A spike that stays does, by the recipe. */
bool numbers_goes_back(const struct job *j);
/* Its recipe is of a version before: the job never goes back by itself. */
bool numbers_only_told(const struct job *j);
/* The episode stays, and the job goes back. */
bool numbers_fault(const struct job *j);
/* What is wrong with the loss of the newest episode, and since when. Caller frees. */
char *numbers_text(const struct job *j);
