/* The ranks (ranks.c): forked all together, proved, read back, reaped. */
#pragma once
#include "agent/stepd/stepd.h"

void ranks_start(struct stepd *s); /* SX_FORK_ALL: failures become SE_START_FAILED */
/* What can wait until the ranks' own start is over: none before its exec, or now. */
void ranks_settle(struct stepd *s, bool now);
void ranks_reaped(struct stepd *s, const siginfo_t *si); /* if it was a rank that died */
