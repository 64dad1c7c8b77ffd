/* What follows from losses that are no numbers, or far too high (daemon/core/state/numbers.h):
 * events at once, and where they stay a fault of class `numerical`, from which the job goes back to
 * a checkpoint of before (policy.c, remedy.c). */
#pragma once
#include "daemon/core/state/numbers.h"

struct turn;

/* How often a loss or a gradient norm was worth telling. */
struct numbers_told {
	int64_t episodes, grads;
};
struct numbers_told numbers_told(const struct job *j);
/* What a record of notes changed. before: as it was. */
void numbers_tell(struct turn *t, int64_t id, const struct numbers_told *before);
/* It is tainted. */
void numbers_tell_tainted(struct turn *t, int64_t id, const struct checkpoint *c);
/* The job went back from there as often as recovery.loss_spike.max says. */
bool numbers_spent(const struct job *j);
/* Another window of data is left out after a failure of that class, by recovery.loss_spike.skip. */
bool numbers_may_skip(const struct job *j, int class);
/* As many are as it says. */
bool numbers_skipped_all(const struct job *j);
/* The next one: from the newest checkpoint that it can go back to, or a margin before the first bad
 * loss, through the last one. Where no loss told of it, the iteration that was not finished. */
struct skip numbers_skip(const struct job *j, int64_t now);
/* The newest is recorded: told. */
void numbers_tell_skip(struct turn *t, int64_t id);
/* "the data of iterations 900 to 1016 are left out from now on (1 of 3 windows)"; caller frees. */
char *numbers_skip_text(const struct job *j);
/* Words of a fault. The cause is the same for each of its kind. Callers free. */
char *numbers_cause(const struct job *j);
char *numbers_next(const struct job *j);
char *numbers_stop(const struct job *j, const char *cause);
void numbers_evidence(const struct job *j, char ***texts, size_t *n);
