/* What follows from losses that are no numbers, or far too high (daemon/core/state/numbers.h):
 * events at once, and where they stay a fault of class `numerical`, from which the job goes back to
 * a checkpoint of before (policy.c, remedy.c). */
#pragma once
#include "daemon/core/state/numbers.h"

struct turn;

/* What a record of notes changed. episodes: how many were told of before it. */
int64_t numbers_episodes(const struct job *j);
void numbers_tell(struct turn *t, int64_t id, int64_t episodes);
/* It is tainted. */
void numbers_tell_tainted(struct turn *t, int64_t id, const struct checkpoint *c);
/* The job went back from there as often as recovery.loss_spike.max says. */
bool numbers_spent(const struct job *j);
/* Words of a fault. The cause is the same for each of its kind. Callers free. */
char *numbers_cause(const struct job *j);
char *numbers_next(const struct job *j);
char *numbers_stop(const struct job *j);
void numbers_evidence(const struct job *j, char ***texts, size_t *n);
