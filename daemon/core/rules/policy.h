/* What a failure means for its job. Decided once per attempt at the first evidence (every other
 * rank is then killed: peers of a dead rank cannot save), judged when every step is proved gone
 * (by then all exits are known), and followed by the next attempt or the end. Called by jobs.c.
 * No attempt follows here before policy_all_dead(), and silence alone fails none. */
#pragma once
#include "daemon/core/state/state.h"

struct turn;

/* Decides that the attempt failed; true when it did now. */
bool policy_fail(struct turn *t, int64_t id);
/* The current attempt's steps are proved dead. */
bool policy_all_dead(const struct job *j);
/* All steps are dead: what follows. */
void policy_conclude(struct turn *t, int64_t id);
/* What its program made beyond `steps`, in words (the caller's); NULL: nothing was reported. */
char *policy_beyond_steps(const struct job *j);
