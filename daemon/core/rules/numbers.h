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
/* Words of a fault. The cause is the same for each of its kind. Callers free. */
char *numbers_cause(const struct job *j);
char *numbers_next(const struct job *j);
char *numbers_stop(const struct job *j);
void numbers_evidence(const struct job *j, char ***texts, size_t *n);
